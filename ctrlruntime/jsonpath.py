r"""JSONPath as in printer columns: the grammar and the results of client-go's `util/jsonpath`.

It is not the JSONPath of other tools. A name ends at a dot in brackets, too: `['example.com/x']` is two steps, and `example\.com/x` is the
name. Brackets do not support double quotes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

__all__ = [
    "Constant",
    "Deep",
    "Every",
    "Field",
    "Filter",
    "JSONPathError",
    "Path",
    "Slice",
    "Step",
    "Union",
    "Word",
    "find",
    "parse",
]


class JSONPathError(ValueError):
    """A path is invalid, or cannot be applied to a document."""


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a key: `.name`, `['name']`."""

    name: str


@dataclass(frozen=True, slots=True)
class Every:
    """All values of an object or a list: `.*`."""


@dataclass(frozen=True, slots=True)
class Deep:
    """The value and everything in it: `..`."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Items of a list: `[1]`, `[-1]`, `[0:2]`, `[::2]`, `[*]`."""

    start: int | None
    stop: int | None
    step: int | None
    is_one: bool
    """Whether it selects only the item at `start`; `stop` follows it then."""


@dataclass(frozen=True, slots=True)
class Union:
    """The values of several paths, one after the other: `['a','b']`, `[0,2]`."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The items of a list for which a comparison is true, or a value exists: `[?(@.type=="Ready")]`, `[?(@.type)]`."""

    left: Path
    comparison: str
    """Empty: `left` must exist."""

    right: Path


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, number or boolean in a filter."""

    value: Any


@dataclass(frozen=True, slots=True)
class Word:
    """A single name. It has no meaning: a path with one can be parsed, but not applied."""

    name: str


Step: TypeAlias = Field | Every | Deep | Slice | Union | Filter | Constant | Word
Path: TypeAlias = tuple[Step, ...]

_ENDS: Final = frozenset(" \t\r\n.,[]$@{}")
"""Characters that end a name, unless a backslash precedes them."""
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_DIGITS: Final = 18
"""The number of digits of every position of 64 bits."""
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+?)", re.DOTALL)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARABLE: Final = (str, int, float)


@lru_cache(maxsize=1024)
def parse(path: str) -> Path:
    """Return the steps of a path (`.status.phase`). Raises: JSONPathError."""
    return tuple(_Reader(path).steps())


def find(path: Path, document: Any) -> list[Any]:
    """Return every value that a path selects in a JSON document, in order.

    A missing key is not an error.

    Raises: JSONPathError if the path cannot be applied: a position outside its list, a comparison of two types.
    """
    values = [document]
    for step in path:
        values = _follow(step, values)
    return values


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0

    def steps(self) -> Iterator[Step]:
        text, was_deep = self._path, False
        while self._at < len(text):
            char = text[self._at]
            if char in " $@":
                self._at += 1
                continue
            is_deep = text.startswith("..", self._at)
            if is_deep and was_deep:
                raise self._error("two .. follow each other")
            was_deep = is_deep
            if is_deep:
                self._at += 2
                yield Deep()
                if _is_word(text[self._at : self._at + 1]):
                    yield _field(self._name())
            elif text.startswith("[?(", self._at):
                yield self._filter()
            elif char == "[":
                yield from self._brackets()
            elif char in "\"'":
                yield Constant(self._quoted())
            elif char == ".":
                self._at += 1
                yield _field(self._name())
            elif char in "+-" or char.isdecimal():
                yield Constant(self._number())
            elif _is_word(char):
                name = self._name()
                yield Constant(name == "true") if name in {"true", "false"} else Word(name)
            else:
                raise self._error(f"{char!r} means nothing there")

    def _name(self) -> str:
        start = self._at
        while self._at < len(self._path) and self._path[self._at] not in _ENDS:
            self._at += 2 if self._path[self._at] == "\\" else 1
        return self._path[start : self._at]

    def _brackets(self) -> Iterator[Step]:
        end = self._path.find("]", self._at)
        if end < 0:
            raise self._error("a bracket is not closed")
        text = self._path[self._at + 1 : end]
        self._at = end + 1
        if "," in text:
            yield Union(tuple(parse(f"[{part.strip(' ')}]") for part in text.split(",")))
        elif key := _KEY.fullmatch(text):
            yield from parse(f".{key[1]}")
        else:
            yield self._slice(text)

    def _slice(self, text: str) -> Slice:
        match = _SLICE.fullmatch(":" if text == "*" else text)
        if match is None:
            raise self._error(f"[{text}] is neither a position nor a name in single quotes")
        digits = [(part or "").removeprefix(":") for part in match.groups()]
        if any(part == "-" or len(part) > _DIGITS for part in digits):
            raise self._error(f"[{text}] is not a position")
        start, stop, step = (int(part) if part else None for part in digits)
        is_one = match[2] is None
        return Slice(start, (start or 0) + 1 if is_one else stop, step, is_one)

    def _filter(self) -> Filter:
        self._at += 3
        start, quote, quotes = self._at, "", 0
        while True:
            char = self._path[self._at : self._at + 1]
            if not char:
                raise self._error("a filter is not closed")
            self._at += 1
            if char in "\"'" and quotes == 0:
                quote, quotes = char, 1
            elif char == quote and self._path[self._at - 2] != "\\":
                quotes = 2
            elif char == ")" and quotes != 1:
                break
        text = self._path[start : self._at - 1]
        if self._path[self._at : self._at + 1] != "]":
            raise self._error("a filter is not closed")
        self._at += 1
        match = _COMPARISON.fullmatch(text)
        if match is None:
            return Filter(parse(text), "", ())
        return Filter(parse(match[1]), match[2], parse(match[3]))

    def _quoted(self) -> str:
        quote, start = self._path[self._at], self._at + 1
        end = self._path.find(quote, start)
        while end > 0 and self._path[end - 1] == "\\":
            end = self._path.find(quote, end + 1)
        if end < 0:
            raise self._error("a quote is not closed")
        self._at = end + 1
        return re.sub(r"\\(.)", r"\1", self._path[start:end])

    def _number(self) -> int | float:
        start = self._at
        self._at += self._path[start] in "+-"
        while self._path[self._at : self._at + 1].isdecimal() or self._path[self._at : self._at + 1] == ".":
            self._at += 1
        text = self._path[start : self._at]
        try:
            return float(text) if "." in text else int(text)
        except ValueError as error:
            raise self._error(f"{text!r} is not a number") from error

    def _error(self, problem: str) -> JSONPathError:
        return JSONPathError(f"the JSONPath {self._path!r} cannot be read: {problem}")


def _field(name: str) -> Step:
    return Every() if name == "*" else Field(name.replace("\\", ""))


def _is_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char.isdecimal()


def _follow(step: Step, values: Sequence[Any]) -> list[Any]:
    match step:
        case Field(name):
            return [
                cast("Mapping[str, Any]", value)[name]
                for value in values
                if isinstance(value, Mapping) and name in value
            ]
        case Every():
            return [inner for value in values for inner in _inside(value)]
        case Deep():
            return [found for value in values for found in _deep(value)]
        case Slice():
            return [item for value in values if value is not None for item in _slice(step, value)]
        case Union(paths):
            return [found for path in paths for value in values for found in find(path, value)]
        case Filter():
            return [item for value in values for item in _items(value) if _holds(step, item)]
        case Constant(constant):
            return [constant] * len(values)
        case Word(name):
            raise JSONPathError(f"{name!r} is unexpected in the JSONPath")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, Any]", value).values())
    items: list[Any] = value if isinstance(value, list) else []
    return items


def _deep(value: Any) -> Iterator[Any]:
    if isinstance(value, (Mapping, list, str)) and value:
        yield value
        for inner in _inside(value):
            yield from _deep(inner)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise JSONPathError("a step of the JSONPath requires a list, but the value is not a list")
    items: list[Any] = value
    return items


def _slice(wanted: Slice, value: Any) -> list[Any]:
    items = _items(value)
    start = wanted.start or 0
    start += len(items) if start < 0 else 0
    stop = len(items) if wanted.stop is None else wanted.stop
    stop += len(items) if stop < 0 or (stop == 0 and wanted.is_one) else 0
    if start == stop:
        return []
    if not 0 <= start < stop <= len(items):
        one = (
            f"item {wanted.start}"
            if wanted.is_one
            else f"range [{wanted.start or 0}:{'' if wanted.stop is None else wanted.stop}]"
        )
        raise JSONPathError(f"{one} is not in a list of {len(items)} items")
    if wanted.step is not None and wanted.step <= 0:
        raise JSONPathError(f"{wanted.step} is not a step")
    return items[start : stop : wanted.step]


def _holds(wanted: Filter, item: Any) -> bool:
    if not wanted.comparison:
        try:
            return bool(find(wanted.left, item))
        except JSONPathError:
            return True  # as client-go has it
    left, right = find(wanted.left, item), find(wanted.right, item)
    if not left or not right:
        return False
    if len(left) > 1 or len(right) > 1:
        raise JSONPathError("a filter compares one value with one")
    compare = _COMPARE.get(wanted.comparison)
    is_ordered = wanted.comparison not in {"==", "!="}
    if compare is None or type(left[0]) is not type(right[0]) or not isinstance(left[0], _COMPARABLE):
        raise JSONPathError(f"a filter cannot compare {left[0]!r} {wanted.comparison} {right[0]!r}")
    if is_ordered and isinstance(left[0], bool):
        raise JSONPathError("booleans have no order")
    return compare(left[0], right[0])
