"""Immutable fields that cannot be removed either.

`self == oldSelf` on a field does not apply when the field, or an object around it, is removed: `self` does not exist then, and a later write
could set another value. So every class gets a rule for each optional field that is immutable, or that holds an object with immutable fields.
Items of lists and values of dicts are left out: a rule cannot tell one that was removed and added again from a new one.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ctrlruntime.api.annotations import Annotation, take_apart
from ctrlruntime.api.fields import wire_names
from ctrlruntime.cel.escaping import escape
from ctrlruntime.generate.builtin import builtin_name
from ctrlruntime.generate.options import Place, Warn
from ctrlruntime.markers import Immutable, Nullable, Schemaless

__all__ = ["property_of", "removal_rules"]


class _Step(NamedTuple):
    """A field on the way to an immutable one."""

    wire: str
    is_nullable: bool


_Path: TypeAlias = tuple[_Step, ...]
_BELOW: Final = {True: "the items of a list", False: "the values of a dict"}


def removal_rules(cls: type[BaseModel], optional: Mapping[str, str], warn: Warn) -> Iterator[tuple[str, str]]:
    """Yield (rule, message) for the fields of a class that may not be removed while what is immutable in them is set.

    `optional`: {attribute: name in JSON} of the fields that need not be there. Raises: GenerateError for a name that no rule can say.
    """
    for name in wire_names(cls):
        place, info = Place(cls, f".{name}"), cls.model_fields[name]
        annotation = take_apart(info.annotation, info.metadata)
        for sequence, part in _held(annotation):
            if any(_paths(part)):
                warn(
                    f"{place}: {_BELOW[sequence]} have immutable fields, but the API server allows removing one and adding it "
                    f"again with other values. Make the whole field Immutable, or check it in a webhook"
                )
        if name not in optional:
            continue
        wire = optional[name]
        paths = list(_field_paths(wire, annotation))
        if not paths:
            continue
        before = " || ".join(_is_there("oldSelf", path, place) for path in paths)  # && binds more tightly
        now = _is_there("self", paths[0][:1], place)
        what = (
            "is immutable once set"
            if Immutable in annotation.markers
            else "holds immutable fields and cannot be removed"
        )
        yield f"!{f'({before})' if ' ' in before else before} || {now}", f"field {wire} {what}"


def property_of(variable: str, wire: str, place: Place) -> str:
    """Return how a rule writes a field of a variable. Raises: GenerateError for a name that no rule can say."""
    escaped = escape(wire)
    if escaped is None:
        raise place.error(
            f"Immutable requires a CEL rule, which cannot read the field {wire!r}. Set a name of letters, digits and _ . - / that starts "
            f"with a letter or _: Field(validation_alias='…')"
        )
    return f"{variable}.{escaped}"


def _is_there(variable: str, path: _Path, place: Place) -> str:
    parts: list[str] = []
    for step in path:
        variable = property_of(variable, step.wire, place)
        parts.append(f"has({variable})")
        if step.is_nullable:
            parts.append(f"{variable} != null")
    return " && ".join(parts)


def _field_paths(wire: str, annotation: Annotation) -> Iterator[_Path]:
    step = _Step(wire, Nullable in annotation.markers)
    if Immutable in annotation.markers:
        yield (step,)
    elif Schemaless not in annotation.markers and _is_model(annotation.bare):
        for path in _paths(annotation.bare):
            yield (step, *path)


@functools.cache
def _paths(cls: type[BaseModel]) -> Sequence[_Path]:
    """The ways from an object of a class to its immutable fields, without those through lists and dicts."""
    return tuple(_walk(cls, ()))


def _walk(cls: type[BaseModel], around: tuple[type[Any], ...]) -> Iterator[_Path]:
    if cls in around or not cls.model_fields or builtin_name(cls) is not None or hasattr(cls, "__ctrl_schema__"):
        return
    for name, wire in wire_names(cls).items():
        info: FieldInfo = cls.model_fields[name]
        annotation = take_apart(info.annotation, info.metadata)
        step = _Step(wire, Nullable in annotation.markers)
        if Immutable in annotation.markers:
            yield (step,)
        elif Schemaless not in annotation.markers and _is_model(annotation.bare):
            for path in _walk(annotation.bare, (*around, cls)):
                yield (step, *path)


def _held(annotation: Annotation) -> Iterator[tuple[bool, type[BaseModel]]]:
    """Yield (whether it is a sequence, class) for what a list or dict of objects holds."""
    if Immutable in annotation.markers or Schemaless in annotation.markers:
        return
    origin, arguments = get_origin(annotation.bare), get_args(annotation.bare)
    if not isinstance(origin, type) or not arguments:
        return
    is_map = issubclass(origin, Mapping)
    inner = take_apart(arguments[1 if is_map else 0])
    if Immutable not in inner.markers and _is_model(inner.bare):
        yield not is_map, inner.bare


def _is_model(bare: Any) -> bool:
    return isinstance(bare, type) and issubclass(bare, BaseModel)
