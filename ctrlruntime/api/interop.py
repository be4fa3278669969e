"""Converts objects to and from the `V1…` classes of kubernetes_asyncio, without importing it.

Such a class has `attribute_map` (attribute → JSON name) and `openapi_types` (attribute → a type as text, for example `dict(str,
V1Volume)`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from ctrlruntime.field import MicroTime, Time

__all__ = ["V1Model", "from_kubernetes_asyncio", "is_kubernetes_asyncio", "to_kubernetes_asyncio"]


@runtime_checkable
class V1Model(Protocol):
    """The attributes of a generated class of kubernetes_asyncio."""

    attribute_map: Mapping[str, str]
    openapi_types: Mapping[str, str]


V = TypeVar("V")

# Fields that are MicroTime in the API; kubernetes_asyncio knows only datetime, and the server takes only six digits
# here.
_MICRO_TIMES = frozenset({"acquireTime", "renewTime", "eventTime", "lastObservedTime"})


def is_kubernetes_asyncio(value: object) -> bool:
    """Return whether a value is an object or class of kubernetes_asyncio's models."""
    return isinstance(value, V1Model)


def from_kubernetes_asyncio(obj: object) -> dict[str, Any]:
    """Return the JSON document of a `V1…` object; attributes that are None are left out.

    Raises: TypeError for anything else.
    """
    if isinstance(obj, type) or not isinstance(obj, V1Model):
        raise TypeError(f"{obj!r} is not an object of kubernetes_asyncio's models")
    return cast("dict[str, Any]", _wire(obj, ""))


def _wire(value: Any, name: str) -> Any:
    if isinstance(value, (str, int, float)):  # most values, and the next question costs much more
        return value
    if isinstance(value, V1Model):
        items = ((wire, getattr(value, attribute)) for attribute, wire in value.attribute_map.items())
        return {wire: _wire(inner, wire) for wire, inner in items if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_wire(item, name) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: _wire(item, name) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, datetime):
        return (MicroTime if name in _MICRO_TIMES else Time).of(value).text
    return value


def to_kubernetes_asyncio(cls: type[V], wire: Mapping[str, Any]) -> V:
    """Return a `V1…` object of class `cls` from a JSON document; fields that the class does not have are dropped.

    Raises: TypeError if `cls` is not one of kubernetes_asyncio's models.
    """
    if not isinstance(cls, V1Model):
        raise TypeError(f"{cls!r} is not a class of kubernetes_asyncio's models")
    return cast("V", _model(cls, wire))


def _model(cls: Any, wire: Mapping[str, Any]) -> Any:
    # Its constructors refuse None for required fields, which servers do leave out; its own decoder trusts the caller in
    # the same way.
    arguments = {
        attribute: _value(cls, cls.openapi_types[attribute], wire[name])
        for attribute, name in cls.attribute_map.items()
        if wire.get(name) is not None
    }
    return cls(**arguments, local_vars_configuration=SimpleNamespace(client_side_validation=False))


def _value(cls: Any, text: str, value: Any) -> Any:
    if value is None:
        return None
    if match := re.fullmatch(r"list\[(.*)\]", text):
        return [_value(cls, match[1], item) for item in value]
    if match := re.fullmatch(r"dict\((?:[^,]*), (.*)\)", text):
        return {key: _value(cls, match[1], item) for key, item in value.items()}
    if text == "datetime":
        return datetime.fromisoformat(value)
    model = getattr(sys.modules[cls.__module__.rpartition(".")[0]], text, None)
    return value if model is None else _model(model, value)
