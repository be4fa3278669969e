"""Markers: information for the generator that Python types cannot express.

Put a marker in `Annotated[…]` of a field (or of a type inside it: `list[Annotated[str, Format("ipv4")]]`). As a decorator of a class it
applies to the whole object. Decorators keep their order from top to bottom in the manifest:

    @printcolumn("Phase", ".status.phase")
    @CEL("self.spec.min <= self.spec.max", message="min is above max")
    class Game(Object, group="games.example.com", version="v1"): ...

`ctrlruntime.generate` reads the markers. `ctrlruntime.api` reads those that decide how a field is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeAlias, TypeVar, cast, get_args, overload

from typing_extensions import override

from ctrlruntime.spelling import did_you_mean

__all__ = [
    "CEL",
    "Default",
    "EmbeddedResource",
    "ExternalDocs",
    "Flag",
    "Format",
    "Immutable",
    "Int32",
    "Int64",
    "JSONValue",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "ListType",
    "MapAtomic",
    "MapGranular",
    "MapType",
    "Marker",
    "MaxProperties",
    "MinProperties",
    "NoDescriptions",
    "Nullable",
    "OLMDescriptor",
    "PreserveUnknownFields",
    "PrinterColumn",
    "RBACRule",
    "RawExtension",
    "Required",
    "SchemaType",
    "Schemaless",
    "Title",
    "class_markers",
    "printcolumn",
    "printer_columns",
    "rbac",
    "rbac_rules",
]

_C = TypeVar("_C", bound=type[Any])
_T = TypeVar("_T")
_MARKERS, _COLUMNS, _RULES = "__ctrl_markers__", "__ctrl_columns__", "__ctrl_rbac__"

Reason: TypeAlias = Literal["FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueDuplicate"]
ColumnType: TypeAlias = Literal["integer", "number", "string", "boolean", "date"]

_REASONS = ("FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden", "FieldValueDuplicate")
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_COLUMN_FORMATS = ("", "int32", "int64", "float", "double", "byte", "date", "date-time", "password")
_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class Marker:
    """The base of all markers. As a decorator it applies to the class."""

    __slots__ = ()

    @overload
    def __call__(self) -> Self: ...
    @overload
    def __call__(self, cls: _C) -> _C: ...
    def __call__(self, cls: _C | None = None) -> _C | Self:
        if cls is None:
            return self  # `ListSet()`: those that are no class are forgiven their parentheses
        if not isinstance(cast("object", cls), type):
            raise TypeError(f"{self!r} belongs in Annotated[…] or above a class, and {cls!r} is not a class")
        _prepend(cls, _MARKERS, self)
        return cls


@dataclass(frozen=True, slots=True)
class CEL(Marker):
    """A CEL rule for `self` (the field, or the object of the class).

    `oldSelf` is the value before an update.

    Args:
        message: the error message.
        message_expression: a CEL expression that returns the message.
        optional_old_self: also run the rule if the old object has no value.

    Raises: ValueError for an empty rule or an unknown reason.

    """

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: Reason | None = None
    field_path: str = ""
    optional_old_self: bool | None = None

    def __post_init__(self) -> None:
        if not self.rule.strip():
            raise ValueError("CEL needs a rule: CEL(\"self != ''\", message=…)")
        if self.reason is not None:
            _one_of("CEL reason", self.reason, _REASONS)


@dataclass(frozen=True, slots=True)
class Format(Marker):
    """The format of a text or number: `Format("ipv4")`.

    It replaces the format of the Python type.
    """

    name: str


@dataclass(frozen=True, slots=True)
class SchemaType(Marker):
    """The JSON type, which replaces that of the Python type.

    Raises: ValueError for an unknown type.
    """

    name: str

    def __post_init__(self) -> None:
        _one_of("SchemaType", self.name, _SCHEMA_TYPES)


@dataclass(frozen=True, slots=True)
class Title(Marker):
    """A title for readers of the schema."""

    text: str


@dataclass(frozen=True, slots=True)
class ExternalDocs(Marker):
    """A link to documentation. Raises: ValueError if it is not a URL."""

    url: str
    description: str = ""

    def __post_init__(self) -> None:
        if not (self.url.startswith("/") or "://" in self.url):
            raise ValueError(f"ExternalDocs needs a URL such as https://example.com/docs, not {self.url!r}")


@dataclass(frozen=True, slots=True)
class Default(Marker):
    """The default in the CRD, if it differs from the default of the Python field.

    `Default(False)` sets a zero.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class ListType(Marker):
    """The merge strategy of a list; use `ListSet`, `ListAtomic` or `ListMap("key")`."""

    name: Literal["set", "atomic"]


class ListMap(Marker):
    """A list of objects with these key fields.

    By JSON or Python names: `ListMap("name")`, `ListMap("port", "protocol")`.
    """

    __slots__ = ("keys",)

    def __init__(self, *keys: str) -> None:
        if not keys or not all(keys):
            raise ValueError('ListMap needs the keys that tell items apart: ListMap("name")')
        self.keys = keys

    @override
    def __repr__(self) -> str:
        return f"ListMap({', '.join(map(repr, self.keys))})"

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListMap) and other.keys == self.keys

    @override
    def __hash__(self) -> int:
        return hash(self.keys)


@dataclass(frozen=True, slots=True)
class MapType(Marker):
    """The merge strategy of a map or an object; use `MapAtomic` or `MapGranular`."""

    name: Literal["atomic", "granular"]


@dataclass(frozen=True, slots=True)
class MaxProperties(Marker):
    """The maximum number of properties of an object.

    For a dict you can use `Field(max_length=…)`.
    """

    count: int


@dataclass(frozen=True, slots=True)
class MinProperties(Marker):
    """The minimum number of properties of an object.

    For a dict you can use `Field(min_length=…)`.
    """

    count: int


@dataclass(frozen=True, slots=True)
class OLMDescriptor(Marker):
    """How a console of the Operator Lifecycle Manager shows a field.

    The field is in spec or status. This is not in the schema.

    Each field directly below spec and status has a descriptor, and so has each deeper field with a single value. Its name is the name of
    the field, its description that of the field. A deeper object has one only with this marker.

    Args:
        x: hints (`podCount`, `fieldGroup:pods`, `Secret`), as short names of their URNs.
        order: sorts it before those with a higher order, or without one.
        hidden: leave it out, with everything below it.

    """

    display: str = ""
    x: tuple[str, ...] | list[str] = ()
    order: int | None = None
    hidden: bool = False

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.display), str):
            raise TypeError(f"OLMDescriptor needs a text to display, not {self.display!r}")
        if isinstance(self.x, str) or not all(isinstance(cast("object", each), str) for each in self.x):
            raise TypeError(f"OLMDescriptor needs a list of hints, as in OLMDescriptor(x=['podCount']), not {self.x!r}")
        if self.order is not None and not isinstance(cast("object", self.order), int):
            raise TypeError(f"OLMDescriptor needs a number for its order, not {self.order!r}")

    @override
    def __hash__(self) -> int:
        return hash((self.display, tuple(self.x), self.order, self.hidden))


FlagName: TypeAlias = Literal[
    "EmbeddedResource", "Immutable", "NoDescriptions", "Nullable", "PreserveUnknownFields", "Required", "Schemaless"
]


@dataclass(frozen=True, slots=True)
class Flag(Marker):
    """A marker without arguments.

    Raises: ValueError for an unknown name.
    """

    name: FlagName

    def __post_init__(self) -> None:
        if self.name not in get_args(FlagName):
            raise ValueError(f"{self.name!r} is not a marker{did_you_mean(self.name, get_args(FlagName))}")

    @override
    def __repr__(self) -> str:
        return self.name


ListSet = ListType("set")
"""The items of the list are unique, and their order has no meaning."""
ListAtomic = ListType("atomic")
"""The list is replaced as a whole."""
MapAtomic = MapType("atomic")
"""The map or object is replaced as a whole."""
MapGranular = MapType("granular")
"""Each entry of the map or object has its own field manager."""
Nullable = Flag("Nullable")
"""A null is a value, and is kept."""
Required = Flag("Required")
"""The field is required in the schema, although it has a default in Python.

It has an effect only for a default that the schema does not have: None, zero or an empty value. The API server sets the default of
the schema before it checks that a required field is there.
"""
Immutable = Flag("Immutable")
"""The value cannot be changed or removed once it is set, and neither can the objects that contain it be removed.

Items of a list (`ListMap`) and values of a dict are not covered: one can be removed, and added again with another value. The generator
warns about immutable fields in them.
"""
PreserveUnknownFields = Flag("PreserveUnknownFields")
"""Unknown fields are kept."""
Schemaless = Flag("Schemaless")
"""The Python type is ignored; the schema consists of the other markers."""
NoDescriptions = Flag("NoDescriptions")
"""Leave out descriptions below this field.

They can make a CRD too large for `kubectl apply`.
"""
_Embedded = Flag("EmbeddedResource")

Int32: TypeAlias = Annotated[int, Format("int32")]
"""An int of 32 bits, as Go's int32."""
Int64: TypeAlias = Annotated[int, Format("int64")]
"""An int of 64 bits, as Go's int64."""
JSONValue: TypeAlias = Annotated[Any, Schemaless, PreserveUnknownFields]
"""Any JSON value."""
RawExtension: TypeAlias = Annotated[dict[str, Any], PreserveUnknownFields]
"""Any JSON object."""
EmbeddedResource: TypeAlias = Annotated[dict[str, Any], _Embedded, PreserveUnknownFields]
"""A complete API object of any kind; the server checks its apiVersion, kind and metadata."""


def class_markers(cls: type[Any]) -> tuple[Marker, ...]:
    """Return the markers of a class, from the top, then those of its bases."""
    return tuple(marker for base in cls.__mro__ for marker in _own(base, _MARKERS))


# Printer columns


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`.

    An empty type follows from the path when the manifest is generated.
    """

    name: str
    json_path: str
    type: str = ""
    description: str = ""
    format: str = ""
    priority: int = 0


def printcolumn(
    name: str,
    json_path: str,
    *,
    type: ColumnType | None = None,
    description: str = "",
    format: str = "",
    priority: int = 0,
) -> Callable[[_C], _C]:
    """Add a column to the output of `kubectl get`.

    Columns have the order of the decorators, from the top.

    Args:
        name: the heading of the column.
        json_path: a path like `.status.phase`.
        type: follows from the path if it leads to a field of the class.
        description: a text about the column.
        format: an OpenAPI format of the value, such as "int32" or "date-time".
        priority: above 0 shows the column only with `-o wide`.

    Raises: ValueError for an unknown type or format, or a path that does not start with a dot.

    """
    if type is not None:
        _one_of(f"printcolumn {name!r}: type", type, _COLUMN_TYPES)
    _one_of(f"printcolumn {name!r}: format", format, _COLUMN_FORMATS)
    if not json_path.startswith(".") or json_path == ".":
        raise ValueError(
            f"printcolumn {name!r}: a path starts with a dot, like .status.phase, but {json_path!r} does not"
        )
    column = PrinterColumn(name, json_path, type or "", description, format, priority)

    def decorate(cls: _C) -> _C:
        _prepend(cls, _COLUMNS, column)
        return cls

    return decorate


def printer_columns(cls: type[Any]) -> tuple[PrinterColumn, ...]:
    """Return the columns of a class, from the top; if it has none, those of the base that defines its fields."""
    return next((columns for base in cls.__mro__ if (columns := _own(base, _COLUMNS))), ())


# Permissions


@dataclass(frozen=True, slots=True)
class RBACRule:
    """Permissions of a controller. An empty `namespace` means the whole cluster."""

    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    namespace: str = ""
    role_name: str = ""


def rbac(
    *,
    verbs: str | Iterable[str],
    groups: str | Iterable[str] | None = None,
    resources: str | Iterable[str] = (),
    resource_names: str | Iterable[str] = (),
    urls: str | Iterable[str] = (),
    namespace: str = "",
    role_name: str = "",
) -> Callable[[_T], _T]:
    """Declare the permissions of a reconciler, a class or a function.

    For example `@rbac(groups="apps", resources="deployments", verbs="get;list")`.

    Lists are texts with semicolons, or sequences. The core group is "". Raises: ValueError for a rule without verbs, or with neither
    resources nor URLs.
    """
    rule = RBACRule(
        groups=_parts(groups) if groups is not None else ("",) if _parts(resources) else (),
        resources=_parts(resources),
        verbs=_parts(verbs),
        resource_names=_parts(resource_names),
        urls=_parts(urls),
        namespace=namespace,
        role_name=role_name,
    )
    if not rule.verbs or not all(rule.verbs):
        raise ValueError('rbac needs verbs: verbs="get;list;watch"')
    if not rule.resources and not rule.urls:
        raise ValueError('rbac needs resources="…" (with groups="…") or urls="…"')

    def decorate(target: _T) -> _T:
        _prepend(target, _RULES, rule)
        return target

    return decorate


def rbac_rules(target: object) -> tuple[RBACRule, ...]:
    """Return the permissions of a class or function, from the top; those of the bases come first."""
    if isinstance(target, type):
        return tuple(rule for base in reversed(target.__mro__) for rule in _own(base, _RULES))
    return _own(target, _RULES)


def _parts(value: str | Iterable[str]) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(";")) if isinstance(value, str) else tuple(value)


# What is kept on the class


def _own(target: object, name: str) -> tuple[Any, ...]:
    """What was put on this very class or function, not on a base of it."""
    kept: Mapping[str, Any] = getattr(target, "__dict__", {})
    return cast("tuple[Any, ...]", kept.get(name, ()))


def _prepend(target: object, name: str, value: object) -> None:
    # Decorators run from the bottom up, so the last to run is the first to read. By way of `type`, since pydantic has a mind of
    # its own about attributes of its classes.
    values = (value, *_own(target, name))
    if isinstance(target, type):
        type.__setattr__(target, name, values)
    else:
        setattr(target, name, values)


def _one_of(what: str, value: str, known: Iterable[str]) -> None:
    known = tuple(known)
    if value not in known:
        raise ValueError(f"{what} cannot be {value!r}{did_you_mean(value, filter(None, known))}")
