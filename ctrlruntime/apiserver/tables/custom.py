"""The columns a CustomResourceDefinition declares: `additionalPrinterColumns` and their JSONPath.

The paths are the subset that CRDs use: fields, quoted fields, indexes, `[*]`, `..field` and filters such as
`[?(@.type=="Ready")]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.tables.durations import INVALID, duration, moment_of

_Step: TypeAlias = Callable[[Any], Iterator[Any]]
_NAME_COLUMN: Final[Document] = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE_COLUMN: Final[Document] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "",
}
_TOKEN: Final = re.compile(
    r"""\.\.(?P<deep>[^.\[\]]+)
      | \.?\[(?:'(?P<quoted>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)")\]
      | \.?\[\?\((?P<filter>(?:[^\[\]"']|"[^"]*"|'[^']*')+)\)\]
      | \.?\[(?P<index>\*|[-\d:, ]+)\]
      | \.(?P<field>(?:\\.|[^.\[\]\\])+)
      | (?P<self>\.$)""",
    re.VERBOSE,
)
_COMPARISON: Final = re.compile(r"\s*(?P<left>@[^=!<>]*?)\s*(?:(?P<op>==|!=|<=|>=|<|>)\s*(?P<right>.+?))?\s*")


def custom_columns(printer_columns: Sequence[Document] | None) -> list[Document]:
    """Return the column definitions of a custom kind: Name, then what the CRD declares, or Age when it declares
    nothing.
    """
    return [dict(_NAME_COLUMN), *(_column(declared) for declared in printer_columns or (_AGE_COLUMN,))]


def custom_cells(printer_columns: Sequence[Document] | None, document: Document, now: datetime) -> list[Any]:
    """Return one row; a missing value, or one of another type than declared, is None."""
    declared = printer_columns or (_AGE_COLUMN,)
    return [document.get("metadata", {}).get("name", ""), *(_cell(column, document, now) for column in declared)]


def find(path: str, document: Any) -> list[Any]:
    """Return every value a JSONPath meets, in order. Raises: ValueError for a path that cannot be read."""
    values = [document]
    for step in _compiled(path):
        values = [found for value in values for found in step(value)]
    return values


def _column(declared: Document) -> Document:
    path = declared.get("jsonPath", "")
    description = f"Custom resource definition column (in JSONPath format): {path}"
    return {
        "name": declared["name"],
        "type": declared["type"],
        "format": declared.get("format", ""),
        "description": declared.get("description", description) or description if declared is not _AGE_COLUMN else "",
        "priority": declared.get("priority", 0),
    }


def _cell(column: Document, document: Document, now: datetime) -> Any:
    try:
        values = find(str(column.get("jsonPath", "")), document)
    except ValueError:
        return None
    return _typed(str(column.get("type", "")), values[0], now) if values and values[0] is not None else None


def _typed(kind: str, value: Any, now: datetime) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match kind:
        case "integer":
            return int(value) if is_number else None
        case "number":
            return float(value) if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            moment = moment_of(value)
            if moment is not None:
                return duration((now - moment).total_seconds())
            return INVALID if isinstance(value, str) else None
        case "string":
            return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        case _:
            return None


@lru_cache(maxsize=1024)
def _compiled(path: str) -> tuple[_Step, ...]:
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$").removeprefix("@")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps: list[_Step] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"the JSONPath {path!r} cannot be read at {text[at:]!r}")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    match match.lastgroup:
        case "deep":
            return _deep(match["deep"])
        case "filter":
            return _filter(match["filter"])
        case "index":
            return _index(match["index"].strip())
        case "self":
            return lambda value: iter((value,))
        case name:
            text = re.sub(r"\\(.)", r"\1", match[name or 0])
            return _every if name == "field" and text == "*" else _field(text)


def _field(name: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield cast("Document", value)[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from cast("Document", value).values()
    elif isinstance(value, list):
        yield from value


def _deep(name: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        yield from _field(name)(value)
        for inner in _every(value):
            yield from step(inner)

    return step


def _index(text: str) -> _Step:
    if text == "*":
        return _every
    parts = [part.strip() for part in text.split(":")]
    bounds = [int(part) if part else None for part in parts]

    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        items: list[Any] = value
        if len(bounds) > 1:
            yield from items[slice(*bounds)]
        elif bounds[0] is not None and -len(items) <= bounds[0] < len(items):
            yield items[bounds[0]]

    return step


def _filter(text: str) -> _Step:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(f"the JSONPath filter {text!r} cannot be read")
    left, operator, right = match["left"], match["op"], match["right"]

    def step(value: Any) -> Iterator[Any]:
        for item in _every(value):
            found = find(left, item)
            wanted = [None] if operator is None else _operand(right, item)
            if found and (operator is None or (wanted and _holds(found[0], operator, wanted[0]))):
                yield item

    return step


def _operand(text: str, item: Any) -> list[Any]:
    if text.startswith("@"):
        return find(text, item)
    if text[:1] in {"'", '"'}:
        return [text[1:-1]]
    try:
        return [json.loads(text)]
    except ValueError:
        return [text]


def _holds(left: Any, operator: str, right: Any) -> bool:
    if operator in {"==", "!="}:
        return (left == right and isinstance(left, bool) == isinstance(right, bool)) == (operator == "==")
    is_same = isinstance(left, str) == isinstance(right, str) and not isinstance(left, (dict, list, bool))
    if not is_same:
        return False
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)
