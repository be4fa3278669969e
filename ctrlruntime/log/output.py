"""Where lines go: the one output of the process. Knows nothing of structlog until a line is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from ctrlruntime.log.options import INFO, Options


class Output(Protocol):
    """Takes the lines whose level is at or above its threshold."""

    @property
    def threshold(self) -> int: ...

    def write(self, level: int, name: str, event: str, fields: Mapping[str, object]) -> None: ...


class Sink:
    """Holds the output that is in use. A process has one stderr, so it has one of these."""

    __slots__ = ("output",)

    def __init__(self, output: Output) -> None:
        self.output = output


class _BeforeSetup:
    """The console form from info on, built when the first line asks for it: structlog takes its time to import."""

    threshold = INFO

    def write(self, level: int, name: str, event: str, fields: Mapping[str, object]) -> None:
        from ctrlruntime.log.chain import Chain

        chain = Chain(Options(devel=True, log_level="info", stacktrace_level="error"))
        # A thread may have called `setup` meanwhile.
        if sink.output is self:
            sink.output = chain
        chain.write(level, name, event, fields)


sink: Final = Sink(_BeforeSetup())
