"""Properties of fields beyond their type: the JSON name, and the meaning of a missing field.

Both are decided only here. Encoding, decoding, the schema generator, webhooks and manifest checks use this module.

**Names.** A field has one JSON name (`wire_name`), for reading and writing. `settle_names` sets the missing one of pydantic's two aliases,
and rejects two that differ.

**Absence.** `absence` returns when a field is left out. `is_explicit` returns whether a zero (or null) that the code sets differs from a
missing field for the API server, and must be sent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from pydantic import AliasChoices, BaseModel
from pydantic_core import PydanticUndefined

from ctrlruntime.api.annotations import allows_none, take_apart

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = [
    "Absence",
    "absence",
    "camel",
    "default_of",
    "field_named",
    "is_explicit",
    "is_zero",
    "settle_names",
    "wire_name",
    "wire_names",
]


# Names.


@functools.cache
def camel(name: str) -> str:
    """Return the JSON name of an attribute: `pod_ip` is `podIp`, `from_` is `from`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def wire_name(name: str, info: FieldInfo) -> str:
    """Return the JSON name of a field; `name` is the attribute."""
    return info.serialization_alias or info.alias or name


def wire_names(cls: type[BaseModel]) -> Mapping[str, str]:
    """Return {attribute: JSON name} of a class, without excluded fields."""
    return {name: wire_name(name, info) for name, info in cls.model_fields.items() if not info.exclude}


def field_named(cls: type[BaseModel], wire: str) -> str | None:
    """Return the attribute with a JSON name, or with another name that is read.

    None if it does not exist.
    """
    for name, info in cls.model_fields.items():
        if wire in (wire_name(name, info), *_read_names(info)):
            return name
    return None


def settle_names(cls: type[BaseModel]) -> None:
    """Give each field one name, for reading and for writing.

    If only `validation_alias` or only `serialization_alias` is set, the other one is set too. With `AliasChoices` the first name is
    written, unless another one of them is set. Raises: TypeError for an `AliasPath`, and for a field that is written with a name that it
    does not read.
    """
    for name, info in cls.model_fields.items():
        if info.alias_priority == 1 or info.validation_alias == info.serialization_alias:
            continue  # the names that follow from the attribute, or one name for both
        read, follows = _read_names(info), camel(name)
        if not read:
            raise TypeError(
                f"class {cls.__name__}: the validation_alias of {name} is a path into other fields, and a field is written by one name: "
                f"give Field(validation_alias='{follows}')"
            )
        if info.serialization_alias in read:
            continue
        if info.serialization_alias in (follows, None):
            info.serialization_alias = read[0]
        elif info.validation_alias == follows:
            info.validation_alias = info.serialization_alias
        else:
            raise TypeError(
                f"class {cls.__name__}: {name} would be read as {read[0]!r} and written as {info.serialization_alias!r}; give it one "
                f"name: Field(validation_alias={read[0]!r})"
            )


def _read_names(info: FieldInfo) -> Sequence[str]:
    given = info.validation_alias
    if isinstance(given, AliasChoices):
        return [choice for choice in given.choices if isinstance(choice, str)]
    return [given] if isinstance(given, str) else []


# Absence.


class Absence(IntEnum):
    """When a field is left out of the JSON form. None is always left out."""

    NEVER = 0
    """It is required, may be None, or its default is not the zero: a missing field would have another value."""
    WHEN_ZERO = 1
    """If it has the zero of its type, which is the value of a missing field."""
    WHEN_EMPTY = 2
    """If it has an object with an empty JSON form."""


def absence(info: FieldInfo) -> Absence:
    """Return when a field is left out."""
    if info.is_required() or allows_none(info.annotation):
        return Absence.NEVER
    default = default_of(info)
    if not is_zero(default):
        return Absence.NEVER
    return Absence.WHEN_EMPTY if isinstance(default, BaseModel) else Absence.WHEN_ZERO


def is_explicit(info: FieldInfo) -> bool:
    """Whether a zero or None that the code sets must be sent, because a missing field has another meaning for the API server.

    This applies to a null of a `Nullable` field, a zero of a field with another `Default`, and a zero of an `Immutable` field, which must
    not disappear.
    """
    from ctrlruntime.markers import Default, Immutable, Nullable  # when it is needed, as in annotations

    markers = take_apart(info.annotation, info.metadata).markers
    if allows_none(info.annotation):
        return Nullable in markers
    return Immutable in markers or any(isinstance(one, Default) and not is_zero(one.value) for one in markers)


def is_zero(value: object) -> bool:
    """Whether a value is the zero of its type: empty, 0, False, an empty text, or an object with an empty JSON form."""
    if isinstance(value, Enum):
        return is_zero(value.value)
    if isinstance(value, BaseModel):
        to_dict: Callable[[], dict[str, Any]] | None = getattr(value, "to_dict", None)
        return not (value.model_dump(by_alias=True, exclude_none=True) if to_dict is None else to_dict())
    return value is not PydanticUndefined and not value


def default_of(info: FieldInfo) -> Any:
    """Return the default of a field.

    PydanticUndefined without one, or if it depends on other fields.
    """
    if info.default_factory is not None and info.default_factory_takes_validated_data:
        return PydanticUndefined
    return info.get_default(call_default_factory=True)
