"""The columns a CustomResourceDefinition declares: `additionalPrinterColumns`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ctrlruntime.apiserver.tables.durations import INVALID, duration, moment_of
from ctrlruntime.jsonpath import JSONPathError, Path, find, parse
from ctrlruntime.schema.trees import Document

_NAME_COLUMN: Final[Document] = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
_AGE_COLUMN: Final[Document] = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": "",
}
_ESCAPED: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
"""What Go's JSON escapes."""


def custom_columns(printer_columns: Sequence[Document] | None) -> list[Document]:
    """Return the column definitions of a custom kind: Name, then what the CRD declares, or Age when it declares
    nothing.
    """
    return [dict(_NAME_COLUMN), *(_column(declared) for declared, _ in _readable(printer_columns))]


def custom_cells(printer_columns: Sequence[Document] | None, document: Document, now: datetime) -> list[Any]:
    """Return one row; a missing value, or one of another type than declared, is None."""
    cells = (_cell(each["type"], path, document, now) for each, path in _readable(printer_columns))
    return [document.get("metadata", {}).get("name", ""), *cells]


def _readable(printer_columns: Sequence[Document] | None) -> Iterator[tuple[Document, Path]]:
    """The declared columns with their paths, as kube-apiserver takes them: up to the first whose path cannot be read."""
    for declared in printer_columns or (_AGE_COLUMN,):
        try:
            yield declared, parse(str(declared.get("jsonPath", "")))
        except JSONPathError:
            return


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


def _cell(kind: str, path: Path, document: Document, now: datetime) -> Any:
    try:
        values = find(path, document)
    except JSONPathError:
        return None
    return _typed(kind, values[0], now) if values else None


def _typed(kind: str, value: Any, now: datetime) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match kind:
        case "integer":
            return int(value) if is_number else None
        case "number":
            return value if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            moment = moment_of(value)
            if moment is not None:
                return duration((now - moment).total_seconds())
            return INVALID if isinstance(value, str) else None
        case "string":
            return _text(value)
        case _:
            return None


def _text(value: Any) -> str:
    """The text of a value, as Go's `%v` has it for what is not an object or list, and its JSON for these."""
    match value:
        case None:
            return "<no value>"
        case str():
            return value
        case float():
            number = Decimal(repr(value)).normalize()
            exponent = number.adjusted()
            if -4 <= exponent < 6:
                return f"{number:f}"
            return f"{number.scaleb(-exponent):f}e{exponent:+03d}"
        case _:
            return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED)
