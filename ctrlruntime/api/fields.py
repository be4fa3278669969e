"""Fields: what a class says of each of them beyond its type. The name in JSON, and what it means when the field is absent.

Both are decided here and nowhere else. The wire form and the decoder (`wire`), the generator of schemas, webhooks and the checks of
manifests ask this module.

**Names.** A field has one name in JSON (`wire_name`), and it is read and written by this name. `settle_names` gives a field with
only one of pydantic's two aliases the other one, and refuses two that differ.

**Absence.** `absence` says when a field is left out. `is_explicit` says whether a zero (or null) that the code sets differs from an absent
field for the API server, so that it has to be sent.
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
    """Return the name in JSON that follows from an attribute's name: `pod_ip` is `podIp`, `from_` is `from`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def wire_name(name: str, info: FieldInfo) -> str:
    """Return the name of a field in JSON; `name` is the attribute's."""
    return info.serialization_alias or info.alias or name


def wire_names(cls: type[BaseModel]) -> Mapping[str, str]:
    """Return {attribute: name in JSON} of a class, without the fields that are excluded."""
    return {name: wire_name(name, info) for name, info in cls.model_fields.items() if not info.exclude}


def field_named(cls: type[BaseModel], wire: str) -> str | None:
    """Return the attribute that has a name in JSON, also one of the other names it is read by; None when there is none."""
    for name, info in cls.model_fields.items():
        if wire in (wire_name(name, info), *_read_names(info)):
            return name
    return None


def settle_names(cls: type[BaseModel]) -> None:
    """Give each field one name, for reading and for writing.

    Where only `validation_alias` or only `serialization_alias` was given, the other one follows. Of `AliasChoices` the first name is written,
    unless another one of them was given. Raises: TypeError for an `AliasPath`, and for a field that would be written by a name it is not
    read by.
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
    """When a field is left out of the wire form. None is left out always."""

    NEVER = 0
    """It is required, it may be None, or its default is not the zero: an absent field would read as another value."""
    WHEN_ZERO = 1
    """It holds the zero of its type, which an absent field reads as."""
    WHEN_EMPTY = 2
    """It holds an object with an empty wire form."""


def absence(info: FieldInfo) -> Absence:
    """Return when a field is left out. "Zero equals absent" is decided here."""
    if info.is_required() or allows_none(info.annotation):
        return Absence.NEVER
    default = default_of(info)
    if not is_zero(default):
        return Absence.NEVER
    return Absence.WHEN_EMPTY if isinstance(default, BaseModel) else Absence.WHEN_ZERO


def is_explicit(info: FieldInfo) -> bool:
    """Whether a zero or None that the code sets has to be sent, because the API server treats an absent field in another way.

    That is so for a null of a `Nullable` field, for a zero beside a `Default` that is another value, and for a zero of an `Immutable` field,
    which may not disappear.
    """
    from ctrlruntime.markers import Default, Immutable, Nullable  # when it is needed, as in annotations

    markers = take_apart(info.annotation, info.metadata).markers
    if allows_none(info.annotation):
        return Nullable in markers
    return Immutable in markers or any(isinstance(one, Default) and not is_zero(one.value) for one in markers)


def is_zero(value: object) -> bool:
    """Whether a value is the zero of its type: empty, 0, False, an empty text, or an object with an empty wire form."""
    if isinstance(value, Enum):
        return is_zero(value.value)
    if isinstance(value, BaseModel):
        to_dict: Callable[[], dict[str, Any]] | None = getattr(value, "to_dict", None)
        return not (value.model_dump(by_alias=True, exclude_none=True) if to_dict is None else to_dict())
    return value is not PydanticUndefined and not value


def default_of(info: FieldInfo) -> Any:
    """Return the default of a field; PydanticUndefined when there is none, or when it depends on other fields."""
    if info.default_factory is not None and info.default_factory_takes_validated_data:
        return PydanticUndefined
    return info.get_default(call_default_factory=True)
