"""The one place where commands write: what a terminal would obey is escaped, what goes into a file or a pipe stays as it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

import click

from ctrlruntime.terminal import escaped

if TYPE_CHECKING:
    from ctrlruntime.project.deployment.applyset import Member

__all__ = ["Coloured", "ask", "say", "say_objects"]

_LISTED: Final = 5


class Coloured(NamedTuple):
    """A part of a line that has a colour on a terminal."""

    text: str
    colour: str | None


def say(*parts: str | Coloured, err: bool = False, nl: bool = True) -> None:
    """Write the parts as one text to standard output (`err`: standard error), and end the line (`nl`)."""
    stream = sys.stderr if err else sys.stdout
    shown = _on_terminal if _is_terminal(stream) else _as_data
    # True: click is not to look for colours in what is somebody's data.
    click.echo("".join(map(shown, parts)), err=err, nl=nl, color=True)


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


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _on_terminal(part: str | Coloured) -> str:
    match part:
        case Coloured(text, colour):
            return click.style(escaped(text), fg=colour)
        case text:
            return escaped(text)


def _as_data(part: str | Coloured) -> str:
    return part.text if isinstance(part, Coloured) else part
