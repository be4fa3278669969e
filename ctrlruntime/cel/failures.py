"""The errors of an expression: it does not compile, or it cannot be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctrlruntime.errors import ConfigError, CtrlError


@dataclass(frozen=True, slots=True)
class Issue:
    """A problem that the compiler found. Lines count from 1, columns from 0."""

    line: int
    column: int
    message: str

    @classmethod
    def without_place(cls, message: str) -> Issue:
        """Return a problem of the expression as a whole."""
        return cls(-1, -1, message)


class CompileError(CtrlError):
    """An expression that does not compile; the text shows each place, as cel-go prints it."""

    def __init__(self, source: str, issues: Sequence[Issue] = (), *, text: str = "") -> None:
        self.issues = tuple(sorted(issues, key=lambda issue: (issue.line, issue.column)))
        super().__init__(text or "\n".join(_shown(source, issue) for issue in self.issues))


class InstantiationError(CompileError):
    """An expression that compiles, but has a constant without a value."""

    def __init__(self, text: str) -> None:
        super().__init__("", text=text)


class EvaluationError(CtrlError):
    """An expression cannot be evaluated with these variables."""


class CostError(EvaluationError):
    """An evaluation exceeded the cost limit."""


class MissingLibraryError(ConfigError):
    """An optional dependency, such as google-re2, is not installed."""


_WIDE_DOT, _WIDE_MARK = "\uff0e", "\uff3e"


def _shown(source: str, issue: Issue) -> str:
    lines = source.split("\n")
    if issue.column < 0:
        return f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}"
    text = lines[issue.line - 1] if issue.line <= len(lines) else ""
    # A wide character takes two columns: cel-go draws under it with wide dots.
    dots = "".join("." if ord(char) < 0x80 else _WIDE_DOT for char in text[: issue.column].ljust(issue.column))
    under = text[issue.column : issue.column + 1]
    mark = "^" if not under or ord(under) < 0x80 else _WIDE_MARK
    shown = text.replace("\t", " ")
    return f"ERROR: <input>:{issue.line}:{issue.column + 1}: {issue.message}\n | {shown}\n | {dots}{mark}"
