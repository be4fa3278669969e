"""The one place where commands write, and where they read the texts that arguments name.

What a terminal would obey is escaped; what goes into a file or a pipe stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from ctrlruntime.errors import ConfigError
from ctrlruntime.terminal import escaped, is_terminal

if TYPE_CHECKING:
    from ctrlruntime.project.deployment.applyset import Member

__all__ = ["Coloured", "ask", "read_text", "say", "say_objects", "source_name", "warn"]

_LISTED: Final = 5
_WARNINGS: Final = "ctrlruntime.warnings"
"""Where the context of a command keeps the warnings that it printed."""


class Coloured(NamedTuple):
    """A part of a line that has a colour on a terminal."""

    text: str
    colour: str | None


def say(*parts: str | Coloured, err: bool = False, nl: bool = True) -> None:
    """Write the parts as one text to standard output (`err`: standard error), and end the line (`nl`)."""
    stream = sys.stderr if err else sys.stdout
    shown = _on_terminal if is_terminal(stream) else _as_data
    # True: click is not to look for colours in what is somebody's data.
    click.echo("".join(map(shown, parts)), err=err, nl=nl, color=True)


def warn(text: str) -> None:
    """Write a warning to standard error, once for each command."""
    context = click.get_current_context(silent=True)
    if context is not None:
        said: set[str] = context.meta.setdefault(_WARNINGS, set())  # of the whole command: subcommands share it
        if text in said:
            return
        said.add(text)
    say(f"warning: {text}", err=True)


def say_objects(crd: str, objects: Sequence[Member]) -> None:
    """Write to standard error how many objects of a CRD will be deleted, and the first five of them."""
    say(f"{len(objects)} object{'s' if len(objects) > 1 else ''} of {crd} will be deleted too:", err=True)
    for each in objects[:_LISTED]:
        say(f"  {each.named}", err=True)
    if len(objects) > _LISTED:
        say(f"  and {len(objects) - _LISTED} more", err=True)


def ask(question: str) -> str:
    """Return what the user types, without blanks around it."""
    return str(click.prompt(escaped(question), default="", show_default=False)).strip()


def source_name(name: str) -> str:
    """Return the name of an input as messages have it; - is standard input."""
    return "standard input" if name == "-" else name


def read_text(name: str) -> str:
    """Return the text of a file; - is standard input. Raises: ConfigError."""
    try:
        with click.open_file(name, encoding="utf-8-sig") as file:
            return str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(source_name(name), error) from error


def _on_terminal(part: str | Coloured) -> str:
    match part:
        case Coloured(text, colour):
            return click.style(escaped(text), fg=colour)
        case text:
            return escaped(text)


def _as_data(part: str | Coloured) -> str:
    text = part.text if isinstance(part, Coloured) else part
    # Half a surrogate pair, which JSON can hold, cannot be written.
    return text.encode("utf-8", "backslashreplace").decode()
