"""Decodes objects whose values break the limits of their class: a number too small, a text too long, a value not in an enum.

The API server checks the limits of the schema after mutating webhooks, and not for fields that an update does not change. If a webhook
rejected such an object, it would hide the server's response, and prevent the repair or deletion of an object that was stored before its
limit existed. So typed webhooks and converters decode it here if the class rejects it. A value of the wrong type is still an error.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Generator, Iterator, Mapping
from enum import Enum
from typing import Any, Final, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import DecodeError

__all__ = ["IncompleteError", "LooseClass", "decode_beyond_limits"]

T = TypeVar("T", bound=Object)

_LIMITS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("int", "float"), frozenset({"ge", "gt", "le", "lt", "multiple_of"})),
    "str": frozenset({"min_length", "max_length", "pattern"}),
    **dict.fromkeys(
        ("bytes", "list", "dict", "set", "frozenset", "tuple", "url"), frozenset({"min_length", "max_length"})
    ),
}
"""The keys of a core schema that are limits, by its type."""

_NOT_SCHEMAS: Final = frozenset({"cls", "config", "default", "default_factory", "metadata", "serialization"})


class IncompleteError(DecodeError):
    """The only problem of an object is that required fields are missing whose types have no zero."""


def decode_beyond_limits(kind: type[T], raw: bytes) -> T:
    """Decode an object, even if its values break the limits of their fields.

    A value that is not in an enum stays a text or number. Raises: IncompleteError, and DecodeError for other problems.
    """
    try:
        return kind.from_json(raw)
    except DecodeError as error:
        try:
            found = LooseClass.of(kind).read(raw)
        except ValidationError as again:
            if all(detail["type"] == "missing" for detail in again.errors(include_url=False)):
                raise IncompleteError(str(error), raw=raw) from error
            raise error from again
        if GroupVersionKind.parse(found.api_version, found.kind) != kind_of(kind).gvk:
            raise
        return cast("T", found)


class LooseClass:
    """A class without the limits of its fields."""

    def __init__(self, kind: type[Object]) -> None:
        kind.model_rebuild()
        schema = _loosened(kind.__pydantic_core_schema__)
        with _unfinished(set(_classes(schema))):
            self._validator = SchemaValidator(schema)

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(kind: type[Object]) -> LooseClass:
        """Return the class for a kind, which is created once."""
        return LooseClass(kind)

    def read(self, raw: bytes) -> Any:
        """Return the object. Raises: ValidationError for a problem that is not a limit."""
        return self._validator.validate_json(raw)


@contextlib.contextmanager
def _unfinished(classes: set[type[BaseModel]]) -> Generator[None]:
    """Have the classes look as if they had no validator: a finished class brings its own wherever it is a field, limits and all."""
    finished = [cls for cls in classes if cls.__pydantic_complete__]
    for cls in finished:
        cls.__pydantic_complete__ = False
    try:
        yield
    finally:
        for cls in finished:
            cls.__pydantic_complete__ = True


def _classes(schema: Any) -> Iterator[type[BaseModel]]:
    if isinstance(schema, list):
        for each in schema:
            yield from _classes(each)
    elif isinstance(schema, dict):
        known = cast("dict[str, Any]", schema)
        kind = known.get("type")
        if kind == "model":
            yield known["cls"]
        for name, value in known.items():
            if not (name in _NOT_SCHEMAS and isinstance(kind, str)):
                yield from _classes(value)


def _loosened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_loosened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = cast("dict[str, Any]", schema)
    kind = known.get("type")  # of the fields of a model one may have this name: then it is not text
    limits: frozenset[str] = _LIMITS.get(kind, frozenset()) if isinstance(kind, str) else frozenset()
    loose = {
        name: value if name in _NOT_SCHEMAS and isinstance(kind, str) else _loosened(value)
        for name, value in known.items()
        if name not in limits
    }
    match kind:
        case "enum":
            return _or_plain(loose, [cast("Enum", member).value for member in known["members"]])
        case "literal":
            return _or_plain(loose, known["expected"])
        case _:
            return loose


def _or_plain(schema: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    """The choice, or any value of the type its values have."""
    for kind in (str, int):
        if all(type(value.value if isinstance(value, Enum) else value) is kind for value in values):
            return {"type": "union", "mode": "left_to_right", "choices": [schema, {"type": kind.__name__}]}
    return schema
