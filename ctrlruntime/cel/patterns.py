r"""Regular expressions as kube-apiserver reads them: Go's `regexp`, run in linear time by RE2.

Go's package and RE2 share their syntax and their promise: the time for a match grows with the text and the pattern, and no
pattern makes it explode. They differ in a few places, which this module settles as Go does: `\C`, names of groups, the depth of
parentheses, and the words of errors. What stays different: RE2 knows the scripts of another Unicode version, lacks the long names
of Unicode classes that Go has from 1.25 (`\p{Letter}`), and refuses a pattern that needs more than `_MOST_MEMORY`, where Go
takes more.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final, final

from ctrlruntime.cel.failures import MissingLibraryError

__all__ = ["Pattern", "compile_pattern"]

_MOST_MEMORY: Final = 16 * 1024 * 1024
"""Bytes that one compiled pattern and its automaton may take."""
_KEPT: Final = 256
"""Patterns that stay compiled: rules of CEL may make new ones of every object."""
_DEEPEST: Final = 1000
"""Parentheses inside one another, as in Go (maxHeight in regexp/syntax)."""
_WORDS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's words for what Go says otherwise."""
_CUT_ESCAPE: Final = "invalid UTF-8"
"""What RE2 says of a pattern that ends with `\\x{`: what it gets is always UTF-8."""
_LOOK_BEHINDS: Final = ("(?<=", "(?<!")
"""Go treats them as names of groups, which they are not."""
_TOO_LARGE: Final = "pattern too large"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The pieces of a pattern that RE2 has read; literals and classes are passed over as wholes. No alternative gives back what it took.
_PIECE: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|(?P<escape>\\.)|\[\^?\]?(?>\[:\^?[a-z]+:\]|\\.|[^\]\\])*+\]"
    r"|(?P<open>\((?:\?P?<(?P<name>[^>]*)>)?)|(?P<close>\))",
    re.DOTALL,
)


@final
class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        """Tell whether the pattern is found anywhere in a text."""
        return self._compiled.search(_encoded(text)) is not None

    def matches_all(self, text: str) -> bool:
        """Tell whether the pattern fits the whole of a text."""
        return self._compiled.fullmatch(_encoded(text)) is not None

    def find(self, text: str) -> str | None:
        """Return the first match of the pattern; None without one."""
        found = self._compiled.search(_encoded(text))
        return None if found is None else str(found[0], "utf-8")

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return at most `limit` places (all when it is negative) that do not overlap, as Go's FindAllString finds them."""
        data = _encoded(text)
        found: list[str] = []
        at, last_end = 0, -1
        while at <= len(data) and len(found) != limit:
            match = self._compiled.search(data, at)
            if match is None:
                break
            start, end = match.span()
            if end > start or start != last_end:  # nothing is found right behind a find
                found.append(str(match[0], "utf-8"))
                last_end = end
            at = end if end > at else _next_character(data, at)
        return found


@lru_cache(_KEPT)
def compile_pattern(pattern: str) -> Pattern:
    """Return a compiled pattern.

    Raises: ValueError with Go's text when Go would not compile it; MissingLibraryError without google-re2.
    """
    re2, options = _engine()
    try:
        compiled = re2.compile(_encoded(pattern), options)
    except re2.error as error:
        raise _error(*_in_go(error.args[0].decode(errors="replace"), pattern)) from None
    _refuse_what_go_refuses(pattern)
    return Pattern(compiled)


@cache
def _engine() -> tuple[Any, Any]:
    try:
        re2: Any = import_module("re2")
    except ImportError:
        raise MissingLibraryError(
            "cannot use regular expressions of Kubernetes: the package google-re2 is not installed. Run pip install 'ctrlruntime[apiserver]'"
        ) from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    return re2, options


def _encoded(text: str) -> bytes:
    """Return a text in UTF-8; half a surrogate pair, which JSON can hold, is U+FFFD as in Go."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()


def _next_character(data: bytes, at: int) -> int:
    at += 1
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def _in_go(text: str, pattern: str) -> tuple[str, str]:
    """Return Go's words for an error of RE2, and the part of the pattern that it names."""
    what, _, where = text.partition(": ")
    if what == _CUT_ESCAPE:
        return "invalid escape sequence", "\\x{"
    if what.startswith(_TOO_LARGE):
        return "expression too large", pattern
    if where in _LOOK_BEHINDS:
        name, end, _ = pattern[pattern.index(where) :].partition(">")
        return "invalid named capture", name + end
    return _WORDS.get(what, what), where


def _refuse_what_go_refuses(pattern: str) -> None:
    depth = 0
    for piece in _PIECE.finditer(pattern):
        if piece["escape"] == "\\C":
            raise _error("invalid escape sequence", "\\C")
        if not (piece["name"] or "").isascii():
            raise _error("invalid named capture", piece[0])
        depth += (piece["open"] is not None) - (piece["close"] is not None)
        if depth >= _DEEPEST:
            raise _error("expression nests too deeply", pattern)


def _error(what: str, where: str) -> ValueError:
    return ValueError(f"error parsing regexp: {what}: `{where}`")
