"""The output of the process for log lines. It imports structlog with the first line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from ctrlruntime.log.options import INFO, Options


class Output(Protocol):
    """Writes lines at or above its threshold."""

    @property
    def threshold(self) -> int: ...

    def write(self, level: int, name: str, event: str, fields: Mapping[str, object]) -> None: ...


class Sink:
    """Has the current output. A process has one stderr, so it has one of these."""

    __slots__ = ("output",)

    def __init__(self, output: Output) -> None:
        self.output = output


class _BeforeSetup:
    """The console form from info on, created with the first line because the import of structlog is slow."""

    threshold = INFO

    def write(self, level: int, name: str, event: str, fields: Mapping[str, object]) -> None:
        from ctrlruntime.log.chain import Chain

        chain = Chain(Options(devel=True, log_level="info", stacktrace_level="error"))
        # A thread may have called `setup` meanwhile.
        if sink.output is self:
            sink.output = chain
        chain.write(level, name, event, fields)


sink: Final = Sink(_BeforeSetup())
