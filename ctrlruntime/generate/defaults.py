"""Defaults of Python fields as defaults of the schema, which the server fills in.

A default is written when it says something: not a None, and not the zero (empty text, 0, False, empty list) that an absent field reads
as anyway, unless the field may also be None. A nested object defaults to `{}` when something inside it has a default: the server looks
into an object only when it is there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from ctrlruntime.api.annotations import Annotation
from ctrlruntime.api.fields import Absence, absence
from ctrlruntime.api.model import Model
from ctrlruntime.field import Duration, MicroTime, Quantity, Time
from ctrlruntime.generate.builtin import builtin_name
from ctrlruntime.generate.options import Document, Place, Warn
from ctrlruntime.markers import Default

__all__ = ["Defaults"]


class Defaults:
    """Writes defaults into the schemas of fields."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn

    def apply(self, info: FieldInfo, annotation: Annotation, schema: Document, place: Place) -> None:
        """Write the default of a field into its schema. Raises: GenerateError for one that is not JSON or does not fit."""
        given = next((marker for marker in annotation.markers if isinstance(marker, Default)), None)
        if given is not None:
            self._write(self.json(given.value, place), schema, place)
            return
        value = self._value(info, place)
        if value is PydanticUndefined:
            return
        # What the built-in types fill in is upstream's affair: nobody who embeds one waits for it.
        is_filled = _has_defaults(schema) and not _is_built_in(annotation.bare)
        if value is None:
            if is_filled:
                self._warn(
                    f"{place}: fields below it have defaults, which the API server sets only if this object is set. "
                    f"Add Field(default_factory=…) if they must always be set"
                )
            return
        match absence(info):
            case Absence.WHEN_ZERO:
                return
            case Absence.WHEN_EMPTY if not is_filled:
                return
            case _:
                self._write(_prune(self.json(value, place), schema), schema, place)

    def json(self, value: Any, place: Place) -> Any:
        """Return a Python value as JSON. Raises: GenerateError."""
        try:
            return _json(value)
        except (ValueError, TypeError) as error:
            raise place.error(f"the default {value!r} cannot be encoded as JSON ({error})") from error

    def _value(self, info: FieldInfo, place: Place) -> Any:
        if info.default_factory is None:
            return info.default
        if info.default_factory_takes_validated_data:
            raise place.error(
                "default_factory depends on other fields, which a schema does not support. Use a defaulting webhook"
            )
        try:
            first, second = (info.get_default(call_default_factory=True) for _ in range(2))
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'value'}: {each['msg']}" for each in error.errors()
            )
            raise place.error(
                f"default_factory fails: {problems}. Correct its value, or remove default_factory"
            ) from error
        if self.json(first, place) != self.json(second, place):
            raise place.error(
                "default_factory returns another value each time, which a schema does not support. Use a defaulting webhook"
            )
        return first

    @staticmethod
    def _write(value: Any, schema: Document, place: Place) -> None:
        if value is None:
            raise place.error("null cannot be a default. Omit it")
        if value == {} and schema.get("type") == "array":
            value = []
        schema["default"] = value


def _is_built_in(bare: Any) -> bool:
    return isinstance(bare, type) and builtin_name(bare) is not None


def _has_defaults(schema: Mapping[str, Any]) -> bool:
    """Whether something directly below an object has a default."""
    return any("default" in child for child in (schema.get("properties") or {}).values())


def _prune(value: Any, schema: Mapping[str, Any]) -> Any:
    """Drop from an object what the defaults below it would fill in anyway."""
    properties: Mapping[str, Any] | None = schema.get("properties")
    if not isinstance(value, dict) or not properties:
        return value
    kept: Document = {}
    for name, item in cast("Document", value).items():
        child = properties.get(name) or {}
        pruned = _prune(item, child)
        if "default" not in child or pruned != child["default"]:
            kept[name] = pruned
    return kept


def _json(value: Any) -> Any:
    match value:
        case None | bool() | str() | int() | float() if not isinstance(value, Enum):
            return _plain(value)
        case Enum():
            return _json(value.value)
        case Model():
            return {name: _json(item) for name, item in value.to_dict().items()}
        case BaseModel():
            return value.model_dump(mode="json", by_alias=True, exclude_none=True)
        case Quantity() | Time() | Duration():
            return value.text
        case datetime():
            moment = MicroTime.of(value)
            return (moment if moment.microsecond else Time.of(value)).text
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {str(_json(key)): _json(item) for key, item in value.items()}
        case list() | tuple():
            return [_json(item) for item in cast("list[Any]", value)]
        case set() | frozenset():
            return sorted(_json(item) for item in cast("set[Any]", value))
        case _:
            return to_jsonable_python(value)


def _plain(value: Any) -> Any:
    """A scalar of a subclass as the plain type it stands for."""
    for kind in (bool, str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return None
