r"""Regular expressions as Go has them (RE2), on Python's `re`: what Go refuses is refused with Go's words, the rest is translated.

Python and RE2 differ in more than look-around: where `$` stands, what `\\d` and `\\s` hold, flags in the middle, `{` as a literal, repeats
of repeats. So the pattern is read once, piece by piece, and written again in a form that means the same in Python. What is not had:
RE2's promise of linear time.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

Pattern: TypeAlias = re.Pattern[str]

_PERL = {"d": "0-9", "s": "\\t\\n\\f\\r ", "w": "0-9A-Za-z_"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t-\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CONTROLS = {"a": "\x07", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<([^>]*)>")


def compile_pattern(pattern: str) -> Pattern:
    """Return a Go pattern as Python's. Raises: ValueError with Go's text when Go would not compile it."""
    return re.compile(_Translation(pattern).run())


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


class _Translation:
    """One walk over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._flags = _Flags()
        self._largest = 1  # how often what was read last can be repeated, counted repeats multiplied

    def run(self) -> str:
        text = self._alternatives(depth=0)
        if self._at < len(self._pattern):
            raise _error("unexpected )", self._pattern)
        return text

    def _alternatives(self, depth: int) -> str:
        if depth > 1000:
            raise _error("expression nests too deeply", self._pattern)
        pieces: list[str] = []
        can_repeat = False
        largest = 1
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == ")":
                break
            if char == "|":
                pieces.append("|")
                self._at += 1
                can_repeat = False
            elif char in "*+?" or (char == "{" and _REPEAT.match(self._pattern, self._at)):
                pieces[-1:] = [self._repeat(pieces[-1] if can_repeat else None)]
                largest = max(largest, self._largest)
            else:
                self._largest = 1
                piece = self._group(depth) if char == "(" else self._atom()
                if piece is not None:
                    pieces.append(piece)
                    can_repeat = True
                    largest = max(largest, self._largest)
        self._largest = largest
        return "".join(pieces)

    def _repeat(self, piece: str | None) -> str:
        start = self._at
        operator = self._operator()
        if piece is None:
            raise _error("missing argument to repetition operator", operator)
        ends = self._at
        lazy = self._flags.lazy
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
            lazy = not lazy
        following = self._pattern[self._at : self._at + 1]
        if following and (following in "*+?" or _REPEAT.match(self._pattern, self._at)):
            self._operator()
            if self._pattern[self._at : self._at + 1] == "?":
                self._at += 1
            raise _error("invalid nested repetition operator", self._pattern[start : self._at])
        return f"(?:{piece}){self._pattern[start:ends]}{'?' if lazy else ''}"

    def _operator(self) -> str:
        char = self._pattern[self._at]
        if char != "{":
            self._at += 1
            return char
        found = _REPEAT.match(self._pattern, self._at)
        assert found is not None
        self._at = found.end()
        low, high = int(found[1]), int(found[3]) if found[3] else int(found[1])
        self._largest *= max(low, high, 1)
        if max(low, high, self._largest) > 1000 or high < low:
            raise _error("invalid repeat count", found[0])
        return found[0]

    def _group(self, depth: int) -> str | None:
        flags = self._flags
        head = "(?:"
        if self._pattern.startswith("(?", self._at):
            named = _NAMED.match(self._pattern, self._at)
            changed = _FLAGS.match(self._pattern, self._at)
            if named is not None:
                head = _name(named)
                self._at = named.end()
            elif changed is not None and (changed[1] or changed[2] or changed[3] == ":"):
                self._flags = _with(flags, changed)
                self._at = changed.end()
                if changed[3] == ")":
                    return None  # flags of the rest of this group
            else:
                raise self._bad_group()
        else:
            self._at += 1
            head = "("
        body = self._alternatives(depth + 1)
        if self._at >= len(self._pattern):
            raise _error("missing closing )", self._pattern)
        self._at += 1
        self._flags = flags
        return f"{head}{body})"

    def _bad_group(self) -> ValueError:
        rest = self._pattern[self._at :]
        if rest.startswith(("(?P<", "(?<")):
            return _error("invalid named capture", rest)
        end = 2
        while end < len(rest) and rest[end] in "imsU-":
            end += 1
        return _error("invalid or unsupported Perl syntax", rest[: end + 1])

    def _atom(self) -> str | None:
        char = self._pattern[self._at]
        match char:
            case ".":
                self._at += 1
                return "(?s:.)" if self._flags.dot_all else "[^\\n]"
            case "^":
                self._at += 1
                return "(?m:^)" if self._flags.lines else "\\A"
            case "$":
                self._at += 1
                return "(?m:$)" if self._flags.lines else "\\Z"
            case "[":
                return self._cased(self._class())
            case "\\":
                return self._escape()
            case _:
                self._at += 1
                return self._cased(re.escape(char))

    def _cased(self, text: str) -> str:
        return f"(?i:{text})" if self._flags.ignore_case else text

    def _escape(self) -> str | None:
        if self._at + 1 >= len(self._pattern):
            raise _error("trailing backslash at end of expression", "")
        char = self._pattern[self._at + 1]
        match char:
            case "A" | "z":
                self._at += 2
                return "\\A" if char == "A" else "\\Z"
            case "b" | "B":
                self._at += 2
                return f"(?a:\\{char})"
            case "Q":
                return self._quoted()
            case "C":
                raise _error("invalid escape sequence", "\\C")
            case _:
                inner, negated = self._perl_class()
                if inner is not None:
                    return self._cased(f"[{'^' if negated else ''}{inner}]")
                return self._cased(re.escape(self._escaped_char()))

    def _quoted(self) -> str | None:
        end = self._pattern.find("\\E", self._at + 2)
        text = self._pattern[self._at + 2 : end if end >= 0 else None]
        self._at = end + 2 if end >= 0 else len(self._pattern)
        if not text:
            return None
        return "".join(self._cased(re.escape(char)) for char in text)

    def _perl_class(self) -> tuple[str | None, bool]:
        r"""Read `\\d`, `\\pL`, `\\p{Greek}` …; (None, False) when none stands here."""
        char = self._pattern[self._at + 1]
        if char.lower() in _PERL:
            self._at += 2
            return _PERL[char.lower()], char.isupper()
        if char in "pP":
            return self._unicode_class(char == "P")
        return None, False

    def _unicode_class(self, negated: bool) -> tuple[str, bool]:
        rest = self._pattern[self._at + 2 :]
        if not rest:
            raise _error("invalid character class range", self._pattern[self._at :])
        name = rest[0]
        length = 3
        if name == "{":
            end = rest.find("}")
            if end < 0:
                raise _error("invalid character class range", self._pattern[self._at :])
            name, length = rest[1:end], end + 3
        text = self._pattern[self._at : self._at + length]
        self._at += length
        if name.startswith("^"):
            name, negated = name[1:], not negated
        inner = _unicode_ranges(name)
        if inner is None:
            raise _error("invalid character class range", text)
        return inner, negated

    def _escaped_char(self) -> str:
        rest = self._pattern[self._at + 1 :]
        char = rest[0]
        if char in _CONTROLS:
            self._at += 2
            return _CONTROLS[char]
        octal = re.match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", rest)
        if octal is not None:
            self._at += 1 + octal.end()
            return chr(int(octal[0], 8))
        if char == "x":
            found = re.match(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})", rest)
            code = int(found[1] or found[2], 16) if found is not None else sys.maxunicode + 1
            if found is None or code > sys.maxunicode:
                raise _error("invalid escape sequence", "\\" + _bad_hex(rest))
            self._at += 1 + found.end()
            return chr(code)
        if ord(char) < 0x80 and not char.isalnum():
            self._at += 2
            return char
        raise _error("invalid escape sequence", "\\" + char)

    def _class(self) -> str:
        start = self._at
        self._at += 1
        negated = self._pattern.startswith("^", self._at)
        self._at += negated
        inner: list[str] = []
        first = True
        after_class = False
        while first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise _error("missing closing ]", self._pattern[start:])
            # Go takes a "-" for itself only at the ends.
            is_dash = self._pattern[self._at] == "-" and not self._pattern.startswith("-]", self._at)
            if is_dash and not first and not after_class:
                following = self._pattern[self._at + 1 : self._at + 2]
                raise _error("invalid character class range", f"-{following}")
            first = False
            before = self._at
            inner.append(self._class_item(start))
            after_class = self._pattern[before] == "\\" and self._pattern[before + 1] in "dDsSwWpP"
        self._at += 1
        return f"[{'^' if negated else ''}{''.join(inner)}]"

    def _class_item(self, start: int) -> str:
        if self._pattern.startswith("[:", self._at):
            end = self._pattern.find(":]", self._at + 2)
            if end >= 0:
                text = self._pattern[self._at : end + 2]
                name = text[2:-2]
                found = _POSIX.get(name.removeprefix("^"))
                if found is None:
                    raise _error("invalid character class range", text)
                self._at = end + 2
                return _complement(found) if name.startswith("^") else found
        if self._pattern[self._at] == "\\" and self._at + 1 < len(self._pattern):
            inner, negated = self._perl_class()
            if inner is not None:
                return _complement(inner) if negated else inner
        begins = self._at
        low = self._class_char(start)
        if not self._pattern.startswith("-", self._at) or self._pattern.startswith("-]", self._at):
            return _class_escape(low)
        self._at += 1
        high = self._class_char(start)
        if high < low:
            raise _error("invalid character class range", self._pattern[begins : self._at])
        return f"{_class_escape(low)}-{_class_escape(high)}"

    def _class_char(self, start: int) -> str:
        if self._at >= len(self._pattern):
            raise _error("missing closing ]", self._pattern[start:])
        char = self._pattern[self._at]
        if char != "\\":
            self._at += 1
            return char
        if self._at + 1 >= len(self._pattern):
            raise _error("trailing backslash at end of expression", "")
        return self._escaped_char()


def _name(found: re.Match[str]) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]+", found[1]):
        raise _error("invalid named capture", found[0])
    return "("  # nobody asks for a group by name


def _with(flags: _Flags, found: re.Match[str]) -> _Flags:
    for names, value in ((found[1], True), (found[2] or "", False)):
        for name in names:
            match name:
                case "i":
                    flags = replace(flags, ignore_case=value)
                case "m":
                    flags = replace(flags, lines=value)
                case "s":
                    flags = replace(flags, dot_all=value)
                case _:
                    flags = replace(flags, lazy=value)
    return flags


def _bad_hex(rest: str) -> str:
    found = re.match(r"x\{[0-9A-Fa-f]+", rest)
    return found[0] if found is not None else rest[:2]


def _class_escape(char: str) -> str:
    return f"\\{char}" if char in "\\]^-[&~|" else char


def _complement(inner: str) -> str:
    """Return what a class does not hold, as ranges that can stand among others."""
    test = re.compile(f"[{inner}]")
    return _ranges(lambda code: test.match(chr(code)) is None)


@cache
def _unicode_ranges(name: str) -> str | None:
    if name == "Any":
        return _ranges(lambda _code: True)
    if len(name) <= 2 and name[0] in "LMNPSZC":
        return _ranges(lambda code: unicodedata.category(chr(code)).startswith(name))
    # Scripts are not in the standard library; names of characters begin with theirs.
    prefix = {"Han": "CJK "}.get(name, f"{name.upper()} ")
    found = _ranges(lambda code: unicodedata.name(chr(code), "").startswith(prefix))
    return found or None


def _ranges(holds: Callable[[int], bool]) -> str:
    parts: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and holds(code)
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            parts.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(parts)


def _error(what: str, where: str) -> ValueError:
    return ValueError(f"error parsing regexp: {what}: `{where}`")
