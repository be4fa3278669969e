"""Splits a field's annotation into its bare type and its metadata, in the order in which they apply.

It reads pydantic's `FieldInfo` and the metadata of `Annotated`, and returns one form for both.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NewType, Union, cast, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo
from typing_extensions import TypeAliasType

from ctrlruntime.field import IntOrStringMarker

if TYPE_CHECKING:
    from ctrlruntime.markers import Marker

__all__ = ["Annotation", "Limit", "allows_none", "bare", "take_apart"]


class Limit(NamedTuple):
    """One constraint of pydantic: `kind` is ge, gt, le, lt, multiple_of, min_length, max_length or pattern."""

    kind: str
    value: Any


@dataclass(slots=True)
class Annotation:
    """A type and its metadata, from the inside out."""

    bare: Any
    optional: bool = False
    limits: list[Limit] = field(default_factory=list[Limit])
    markers: list[Marker] = field(default_factory=list["Marker"])
    misused: list[str] = field(default_factory=list[str])
    description: str = ""
    examples: list[Any] = field(default_factory=list[Any])
    is_int_or_string: bool = False


def take_apart(annotation: Any, around: Iterable[Any] = ()) -> Annotation:
    """Return the parts of an annotation; `around` is metadata outside it."""
    result = Annotation(annotation)
    layers: list[Iterable[Any]] = [tuple(around)]
    while True:
        inner, metadata = _peel(result.bare)
        if inner is result.bare:
            break
        result.optional = result.optional or metadata is None
        layers.append(metadata or ())
        result.bare = inner
    for layer in reversed(layers):
        for item in layer:
            _add(result, item)
    return result


def bare(annotation: Any) -> Any:
    """Return an annotation without Annotated and without `| None`."""
    return take_apart(annotation).bare


def allows_none(annotation: Any) -> bool:
    """Return whether an annotation allows None."""
    apart = take_apart(annotation)
    return apart.optional or apart.bare in {None, type(None), Any}


def _peel(annotation: Any) -> tuple[Any, tuple[Any, ...] | None]:
    """(what is inside, the metadata taken off; None for `| None`)."""
    if isinstance(annotation, TypeAliasType):
        return annotation.__value__, ()
    if isinstance(annotation, NewType):
        return annotation.__supertype__, ()
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return inner, tuple(metadata)
    if origin in {Union, types.UnionType}:
        members = get_args(annotation)
        others = tuple(member for member in members if member is not type(None))
        if len(others) < len(members):
            return (others[0] if len(others) == 1 else Union[others]), None  # noqa: UP007 - made at run time
    return annotation, ()


def _add(result: Annotation, item: Any) -> None:
    # Making the markers takes longer than all else here, and few programs have one.
    from ctrlruntime.markers import Marker

    if isinstance(item, FieldInfo):
        result.description = item.description or result.description
        result.examples = item.examples or result.examples
        for inner in item.metadata:
            _add(result, inner)
    elif isinstance(item, Marker):
        result.markers.append(item)
    elif isinstance(item, IntOrStringMarker):
        result.is_int_or_string = True
    elif isinstance(item, type) and issubclass(item, Marker):
        result.misused.append(f"{item.__name__} is used as a class; give its arguments: {item.__name__}(…)")
    else:
        result.limits.extend(_limits(item))


def _limits(item: Any) -> Iterator[Limit]:
    match item:
        case annotated_types.Ge():
            yield Limit("ge", item.ge)
        case annotated_types.Gt():
            yield Limit("gt", item.gt)
        case annotated_types.Le():
            yield Limit("le", item.le)
        case annotated_types.Lt():
            yield Limit("lt", item.lt)
        case annotated_types.MultipleOf():
            yield Limit("multiple_of", item.multiple_of)
        case annotated_types.MinLen():
            yield Limit("min_length", item.min_length)
        case annotated_types.MaxLen():
            yield Limit("max_length", item.max_length)
        case annotated_types.GroupedMetadata():
            for inner in cast("Iterable[Any]", item):
                yield from _limits(inner)
        case _:
            # pydantic keeps what annotated_types has no name for as attributes of an object of its own.
            pattern = getattr(item, "pattern", None) if type(item).__module__.startswith("pydantic") else None
            if isinstance(pattern, re.Pattern):
                yield Limit("pattern", cast("re.Pattern[str]", pattern).pattern)
            elif isinstance(pattern, str):
                yield Limit("pattern", pattern)
