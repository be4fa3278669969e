"""Finds the innermost line of user code in a stack, in a traceback or in the coroutines of a task; and the name of a callable."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Final, TypeAlias, cast

__all__ = ["Place", "line", "line_of_error", "name_of", "outwards", "user_line"]

Place: TypeAlias = tuple[CodeType, int]
"""A code object, and the running line in it."""

_OURS: Final = f"{Path(__file__).parent}{os.sep}"
_INSTALLED: Final = f"{os.sep}site-packages{os.sep}"
_STANDARD: Final = (*{f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib")}, "<frozen")


def name_of(function: Callable[..., Any]) -> str:
    """Return the qualified name of a callable, or its repr without one, for messages."""
    return getattr(function, "__qualname__", None) or repr(function)


def line(place: Place) -> str:
    """Return a place as `file:line in function`."""
    code, number = place
    return f"{code.co_filename}:{number} in {code.co_name}"


def user_line(places: Iterable[Place]) -> str:
    """Return the innermost line of user code as `file:line in function`.

    `places` start with the innermost one.

    An operator may be an installed package. So if all lines are in site-packages, it is the innermost one that is neither in ctrlruntime
    nor in Python itself. Empty without one.
    """
    installed = ""
    for place in places:
        name = place[0].co_filename
        if _INSTALLED in name and not name.startswith(_OURS):
            installed = installed or line(place)
        elif not name.startswith((_OURS, *_STANDARD)):
            return line(place)
    return installed


def outwards(frame: FrameType | None) -> Iterator[Place]:
    """Yield the places of a stack, the innermost first."""
    while frame is not None:
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def line_of_error(error: BaseException) -> str:
    """Return the innermost line of user code in the traceback of an error, else in that of its cause or of a member of its group."""
    seen: set[int] = set()
    left = [error]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if found := user_line(_places(one.__traceback__)):
            return found
        if one.__cause__ is not None:
            left.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            left += reversed(cast("BaseExceptionGroup[BaseException]", one).exceptions)
    return ""


def _places(trace: TracebackType | None) -> list[Place]:
    places: list[Place] = []
    while trace is not None:
        places.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    return places[::-1]
