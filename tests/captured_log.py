"""The log of a test, as dicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ctrlruntime.log.options import ERROR, INFO, WARN
from ctrlruntime.log.output import sink

LEVELS = {INFO: "info", WARN: "warning", ERROR: "error"}


@contextlib.contextmanager
def captured_log(least: int = -100) -> Iterator[list[dict[str, object]]]:
    """Yield the lines that are logged inside the block, from a level on: `event`, `level`, `logger`, and their fields."""
    lines: list[dict[str, object]] = []

    class Lines:
        threshold = least

        def write(self, level, name, event, fields):
            lines.append({"event": event, "logger": name, **fields, "level": LEVELS.get(level, "debug")})

    before, sink.output = sink.output, Lines()
    try:
        yield lines
    finally:
        sink.output = before
