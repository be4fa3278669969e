"""What runs in the simulated containers: commands of `exec`, answered by annotations on the Pod or by a function of a test.

The annotation `simulation.ctrlruntime.dev/exec` (or `exec.CONTAINER`) is a YAML list. The first entry whose `command`, a regular expression,
is the whole command (its arguments joined by blanks) answers:

    - command: redis-cli ping
      stdout: PONG
    - command: pg_dump .*
      stderr: no such database
      exitCode: 1

The annotation `simulation.ctrlruntime.dev/port.5432: "15432"` puts port 15432 of this machine behind port 5432 of the Pod.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.apiserver.behaviour import PREFIX
from ctrlruntime.schema.trees import Document

EXEC_ANNOTATION: Final = f"{PREFIX}exec"
PORT_ANNOTATION: Final = f"{PREFIX}port."


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a client runs in a container."""

    pod: Document
    container: str
    arguments: Sequence[str]
    stdin: AsyncIterator[bytes]
    """What the client sends, until it closes its side; ends at once without `stdin`."""
    write: Callable[[bytes], Awaitable[None]]
    """Send standard output to the client."""
    write_error: Callable[[bytes], Awaitable[None]]
    """Send standard error to the client; on a terminal it is standard output."""


Handler: TypeAlias = Callable[[Command], Awaitable[int | None]]
"""Runs a command and returns its exit code, or None for a command that it does not know."""


PortHandler: TypeAlias = Callable[[Document, int], Awaitable[int | None]]
"""Returns the local port behind a port of a Pod, or None for one that it does not know."""


class CommandError(Exception):
    """A command that nothing answers; the text is for the client."""


class PortError(Exception):
    """A port of a Pod that nothing is behind; the text is for the client."""


class Containers:
    """Answers commands and ports: the functions of `handle` and `forward` first, the latest first, then the annotations of the Pod."""

    def __init__(self) -> None:
        self._handlers: list[Handler] = []
        self._port_handlers: list[PortHandler] = []

    def handle(self, handler: Handler) -> Callable[[], None]:
        """Answer commands with a function, which runs on the server's loop. Returns what takes it away again."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler) if handler in self._handlers else None

    async def run(self, command: Command) -> int:
        """Return the exit code. Raises: CommandError when nothing answers."""
        for handler in reversed(self._handlers):
            code = await handler(command)
            if code is not None:
                return code
        text = " ".join(command.arguments)
        for entry in _entries(command):
            if _matches(str(entry.get("command", "")), text):
                await command.write(_lines(entry.get("stdout")))
                await command.write_error(_lines(entry.get("stderr")))
                return int(entry.get("exitCode", 0))
        raise CommandError(
            f'exec: "{command.arguments[0]}": executable file not found in $PATH. The container is simulated: answer the command with the '
            f"annotation {EXEC_ANNOTATION} of the Pod"
        )

    def forward(self, handler: PortHandler) -> Callable[[], None]:
        """Name the local ports behind ports of Pods with a function, which runs on the server's loop. Returns what takes it away again."""
        self._port_handlers.append(handler)
        return lambda: self._port_handlers.remove(handler) if handler in self._port_handlers else None

    async def port_of(self, pod: Document, port: int) -> int:
        """Return the port of 127.0.0.1 behind a port of a Pod. Raises: PortError when nothing is."""
        for handler in reversed(self._port_handlers):
            local = await handler(pod, port)
            if local is not None:
                return local
        name = f"{PORT_ANNOTATION}{port}"
        text = (pod["metadata"].get("annotations") or {}).get(name)
        if text is None:
            raise PortError(
                f"connection refused. The container is simulated: name a local port with the annotation {name} of the Pod"
            )
        if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65536):
            raise PortError(f"the annotation {name} must be a port from 1 to 65535, not {text[:20]!r}")
        return int(text)

    def clear(self) -> None:
        """Forget the functions of `handle` and `forward`."""
        self._handlers.clear()
        self._port_handlers.clear()


def _entries(command: Command) -> list[Mapping[str, Any]]:
    """Return the answers of a Pod. Raises: CommandError for an annotation that cannot be read."""
    from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml

    annotations: Document = command.pod["metadata"].get("annotations") or {}
    name = f"{EXEC_ANNOTATION}.{command.container}"
    name = name if name in annotations else EXEC_ANNOTATION
    if name not in annotations:
        return []
    try:
        tree, _ = read_yaml(annotations[name].encode())
    except YAMLProblem as error:
        raise CommandError(f"cannot read the annotation {name}: {error}") from None
    if not isinstance(tree, list):
        raise CommandError(
            f"cannot read the annotation {name}: it must be a list of answers with command, stdout, stderr and exitCode"
        )
    entries = [cast("Mapping[str, Any]", entry) for entry in tree if isinstance(entry, dict)]
    for entry in entries:
        code = entry.get("exitCode", 0)
        if type(code) is not int or not 0 <= code <= 255:
            raise CommandError(
                f"cannot read the annotation {name}: exitCode must be a number from 0 to 255, not {code!r}"
            )
    return entries


def _matches(pattern: str, text: str) -> bool:
    """Raises: CommandError for a pattern that cannot be read."""
    from ctrlruntime.cel.patterns import compile_pattern

    try:
        return compile_pattern(f"(?s)^(?:{pattern})$").matches(text)
    except ValueError as error:
        raise CommandError(
            f"cannot read the command {pattern!r} of the annotation {EXEC_ANNOTATION}: {error}"
        ) from None


def _lines(text: Any) -> bytes:
    """Return what a program prints: a text ends with a line break."""
    if text is None or text == "":
        return b""
    shown = str(text)
    return (shown if shown.endswith("\n") else f"{shown}\n").encode()


__all__ = ["EXEC_ANNOTATION", "Command", "CommandError", "Containers", "Handler", "PortError", "PortHandler"]
