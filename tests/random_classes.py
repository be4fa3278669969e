"""Random classes and random JSON that fits them: for tests that objects survive reads and writes.

A class has fields of every sort the generator knows, required, optional, nullable, with zero and other defaults, and with defaults that
only the API server has. The JSON has many zeros, nulls, empty parts and absent fields.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Annotated, Any, Literal, get_origin

from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.field import Duration, IntOrString, MicroTime, Quantity, Time
from ctrlruntime.markers import Default, JSONValue, Nullable, RawExtension


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Sort:
    """A type of field: its annotation, the zero as Python has it (None: no zero), and JSON values."""

    annotation: Any
    zero: Callable[[], Any] | None
    values: Callable[[Random], Any]
    zero_values: Sequence[Any] = ()


@dataclass(frozen=True)
class Definition:
    """A random class, and random JSON for it."""

    cls: type[Model]
    values: Callable[[Random], dict[str, Any]]
    fields: dict[str, Sort]
    """By the name of the attribute; those that may be assigned at any time."""


def _of(*values: Any) -> Callable[[Random], Any]:
    return lambda random: random.choice(values)


_WORDS = ("a", "b", "c", "d", "e", "ä ✓", "line\nbreak", "true", "0")
_SCALARS = (
    Sort(bool, bool, _of(True, False), [False]),
    Sort(int, int, _of(1, -5, 2**40), [0]),
    Sort(Annotated[int, Field(ge=0, le=9)], int, _of(3, 9), [0]),
    Sort(float, float, _of(0.5, -2.25, 3), [0]),
    Sort(str, str, _of(*_WORDS), [""]),
    Sort(Annotated[str, Field(max_length=3)], str, _of("a", "abc"), [""]),
    Sort(Literal["x", "y"], None, _of("x", "y")),
    Sort(Color, None, _of("red", "blue")),
    Sort(IntOrString, lambda: 0, _of(5, "50%", "", "0"), [0]),
    Sort(Quantity, Quantity, _of("1000m", "0.5", "1e3", "1Gi", 5), ["0", 0, "0Gi"]),
    Sort(Time, None, _of("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05+02:00")),
    Sort(MicroTime, None, _of("2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.123456Z")),
    Sort(Duration, Duration, _of("60s", "1h0m0s", "1.5h"), ["0s", "0"]),
    Sort(bytes, bytes, _of("AAEC", "aGVsbG8=")),  # the API server refuses an empty text of format byte
    Sort(JSONValue, None, _of({"a": [None, 0, ""], "b": None}, [{}], "text", 1, False, {}, [])),
    Sort(RawExtension, dict, _of({"a": [None, 0, ""], "b": {}}, {"x": 0}), [{}]),
)
_MEMBERS = (
    (str, _WORDS),
    (int, tuple(range(9))),
    (Color, ("red", "blue")),
)
_ODD_NAMES = ("hostIP", "x-y", "a.b", "$ref", "clusterIPs", "self", "in", "_x", "A")


def _sample(values: Sequence[Any]) -> Callable[[Random], Any]:
    return lambda random: random.sample(values, random.randint(1, min(4, len(values))))


def _sort(random: Random, depth: int) -> Sort:
    match random.randrange(12 if depth else 7):
        case 0:
            members, values = random.choice(_MEMBERS)
            made = random.choice([set, frozenset])
            return Sort(made[members], made, _sample(values), [[]])
        case 7 | 8:
            items = _sort(random, depth - 1)
            return Sort(list[items.annotation], list, lambda random: _many(random, items), [[]])
        case 9:
            inner = _sort(random, depth - 1)
            return Sort(dict[str, inner.annotation], dict, lambda random: _map(random, inner), [{}])
        case 10 | 11:
            part = definition(random, depth - 1)
            try:
                part.cls()
            except ValueError:  # it has a required field, so there is no default
                return Sort(part.cls, None, part.values)
            return Sort(part.cls, part.cls, part.values, [{}])
        case _:
            return random.choice(_SCALARS)


def _value(random: Random, sort: Sort) -> Any:
    return random.choice(sort.zero_values) if sort.zero_values and random.random() < 0.4 else sort.values(random)


def _many(random: Random, items: Sort) -> list[Any]:
    return [_value(random, items) for _ in range(random.randint(1, 3))]


def _map(random: Random, inner: Sort) -> dict[str, Any]:
    return {key: _value(random, inner) for key in random.sample(_WORDS, random.randint(1, 3))}


def definition(random: Random, depth: int = 2) -> Definition:
    """Return a random class; parts of it go `depth` levels down."""
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    written: dict[str, tuple[Sort, str, bool]] = {}
    fields: dict[str, Sort] = {}
    odd = list(_ODD_NAMES)
    for number in range(random.randint(1, 6)):
        name, wire, alias = f"field_{number}", f"field{number}", {}
        if random.random() < 0.2:
            wire = odd.pop(random.randrange(len(odd)))
            alias = {random.choice(["alias", "validation_alias", "serialization_alias"]): wire}
        sort = _sort(random, depth)
        shape, annotation, default = _shape(random, sort)
        annotations[name] = annotation
        defaults[name] = Field(**default, **alias)
        written[wire] = (sort, shape, "nullable" in shape)
        fields[name] = sort

    def values(random: Random) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for wire, (sort, shape, is_nullable) in written.items():
            if shape != "required" and random.random() < 0.3:
                continue
            document[wire] = None if is_nullable and random.random() < 0.3 else _value(random, sort)
        return document

    def body(namespace: dict[str, Any]) -> None:
        namespace |= {"__annotations__": annotations, "__module__": __name__, **defaults}

    cls = types.new_class("Part", (Model,), {}, body)
    return Definition(cls, values, fields)


def _shape(random: Random, sort: Sort) -> tuple[str, Any, dict[str, Any]]:
    """Return what sort of presence a field has, its annotation, and the keywords of its `Field`."""
    given = sort.values(random)
    read: Any = lambda: _python(sort, given)  # noqa: E731
    is_plain = sort.annotation in {bool, int, str}
    shapes = ["required", "optional"]
    # An enum takes no null on the API server.
    shapes += [] if sort.annotation is Color or get_origin(sort.annotation) is Literal else ["optional nullable"]
    shapes += ["zero", "zero"] if sort.zero is not None else []
    shapes += ["default", "optional default"]
    shapes += ["zero with default", "nullable default"] if is_plain else []
    match shape := random.choice(shapes):
        case "required":
            return shape, sort.annotation, {}
        case "optional":
            return shape, sort.annotation | None, {"default": None}
        case "optional nullable":
            return shape, Annotated[sort.annotation | None, Nullable], {"default": None}
        case "zero":
            return shape, sort.annotation, {"default_factory": sort.zero}
        case "default":
            return shape, sort.annotation, {"default_factory": read}
        case "optional default":
            return shape, sort.annotation | None, {"default_factory": read}
        case "zero with default":
            return shape, Annotated[sort.annotation, Default(given)], {"default_factory": sort.zero}
        case _:
            return shape, Annotated[sort.annotation | None, Nullable, Default(given)], {"default": None}


def _python(sort: Sort, value: Any) -> Any:
    return python_value(sort.annotation, value)


def python_value(annotation: Any, value: Any) -> Any:
    """Return the Python value that a JSON value is read as."""

    def body(namespace: dict[str, Any]) -> None:
        namespace |= {"__annotations__": {"value": annotation}, "__module__": __name__}

    holder = types.new_class("Holder", (Model,), {}, body)
    return holder.from_dict({"value": value}).__dict__["value"]
