"""The types of CEL for the checker: primitives, lists, maps, objects with named fields, opaque values, type parameters.

A `Type` also declares a variable. The checker, the library's function tables and the cost estimate use this module, which uses no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal[
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "error",
    "int",
    "list",
    "map",
    "null",
    "object",
    "opaque",
    "parameter",
    "string",
    "timestamp",
    "type",
    "uint",
]

UNBOUNDED = 2**64 - 1
"""A size without a limit."""


@dataclass(frozen=True, slots=True)
class Type:
    """A CEL type. `name` is set for objects, opaque values and type parameters; `largest` bounds a value's size for the cost estimate."""

    kind: Kind
    name: str = ""
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] = field(default_factory=dict[str, "Type"], compare=False)
    largest: int = field(default=0, compare=False)

    def __str__(self) -> str:
        match self.kind:
            case "error":
                return "!error!"
            case "object" | "parameter":
                return self.name
            case _:
                head = self.name or self.kind
                inner = ", ".join(str(parameter) for parameter in self.parameters)
                return f"{head}({inner})" if inner else head

    def __hash__(self) -> int:
        return hash((self.kind, self.name, self.parameters))


BOOL = Type("bool")
BYTES = Type("bytes")
DOUBLE = Type("double")
DURATION = Type("duration")
DYN = Type("dyn")
ANYTHING = Type("dyn", "any")
"""A value of any type (google.protobuf.Any): the checker treats it as dynamic, and only its name is another."""
ERROR = Type("error")
INT = Type("int")
NULL = Type("null")
STRING = Type("string")
TIMESTAMP = Type("timestamp")
UINT = Type("uint")
TYPE = Type("type")


def list_of(element: Type, largest: int = UNBOUNDED) -> Type:
    """Return the type of lists of `element`."""
    return Type("list", "", (element,), largest=largest)


def map_of(key: Type, value: Type, largest: int = UNBOUNDED) -> Type:
    """Return the type of maps."""
    return Type("map", "", (key, value), largest=largest)


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """Return an object type: only these fields can be selected."""
    return Type("object", name, (), fields)


def opaque(name: str, *parameters: Type) -> Type:
    """Return the type of values that only functions can look into."""
    return Type("opaque", name, parameters)


def type_of(inner: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "", (inner,))


def optional_of(inner: Type) -> Type:
    """Return the type of values that may be absent."""
    return Type("opaque", "optional_type", (inner,))


def parameter(name: str) -> Type:
    """Return a type parameter of a function's declaration."""
    return Type("parameter", name)


class Substitution:
    """The current values of type parameters; a failed trial does not change them."""

    def __init__(self) -> None:
        self._bound: dict[str, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """Return an unused type parameter."""
        self._count += 1
        return Type("parameter", f"_var{self._count - 1}")

    def assignable(self, pairs: list[tuple[Type, Type]]) -> bool:
        """Tell whether each left type can be used as the right one, and record the bindings."""
        before = dict(self._bound)
        if all(self._assign(left, right) for left, right in pairs):
            return True
        self._bound = before
        return False

    def resolve(self, type: Type, *, free_to_dyn: bool = False) -> Type:
        """Return the type with its parameters replaced by their values."""
        if type.kind == "parameter":
            bound = self._bound.get(type.name)
            if bound is not None:
                return self.resolve(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else type
        if not type.parameters:
            return type
        inner = tuple(self.resolve(p, free_to_dyn=free_to_dyn) for p in type.parameters)
        return type if inner == type.parameters else Type(type.kind, type.name, inner, type.fields, type.largest)

    def _assign(self, left: Type, right: Type) -> bool:
        if left.kind == "parameter" or right.kind == "parameter":
            return self._bind(left, right)
        if left.kind in {"dyn", "error"} or right.kind in {"dyn", "error"}:
            return True
        if left.kind == "null" or right.kind == "null":
            other = right if left.kind == "null" else left
            return other.kind in {"null", "object", "opaque", "timestamp", "duration"}
        if left.kind == "type" == right.kind:
            return True
        if left.kind != right.kind or left.name != right.name:
            return False
        if len(left.parameters) != len(right.parameters):
            return False
        return all(self._assign(*pair) for pair in zip(left.parameters, right.parameters, strict=True))

    def _bind(self, one: Type, other: Type) -> bool:
        left, right = self._known(one), self._known(other)
        if left == right:
            return True
        if right.kind == "parameter":
            if self._occurs(right, left):
                return False
            self._bound[right.name] = left
            return True
        if left.kind == "parameter":
            if self._occurs(left, right):
                return False
            self._bound[left.name] = right
            return True
        if not self._assign(left, right):
            return False
        general = (
            left if is_more_general(left, right) else right
        )  # cel-go's mostGeneral: the later one can widen a parameter
        for parameter in (one, other):
            if parameter.kind == "parameter" and not self._occurs(parameter, general):
                self._bound[parameter.name] = general
        return True

    def _known(self, type: Type) -> Type:
        known = type
        while known.kind == "parameter" and known.name in self._bound:
            known = self._bound[known.name]
        return known

    def _occurs(self, parameter: Type, inside: Type) -> bool:
        inside = self._known(inside)
        return inside == parameter or any(self._occurs(parameter, inner) for inner in inside.parameters)


def instantiate(types: list[Type], substitution: Substitution) -> list[Type]:
    """Return the types with every parameter replaced by a fresh one, the same name by the same one."""
    fresh: dict[str, Type] = {}

    def replace(type: Type) -> Type:
        if type.kind == "parameter":
            if type.name not in fresh:
                fresh[type.name] = substitution.fresh()
            return fresh[type.name]
        if not type.parameters:
            return type
        return Type(type.kind, type.name, tuple(replace(p) for p in type.parameters), type.fields, type.largest)

    return [replace(declared) for declared in types]


def is_more_general(left: Type, right: Type) -> bool:
    """Tell whether `left` is at least as general as `right`."""
    if left.kind in {"dyn", "parameter"} or left.kind == "type" == right.kind:
        return True
    if left.kind != right.kind or left.name != right.name or len(left.parameters) != len(right.parameters):
        return False
    return all(is_more_general(*pair) for pair in zip(left.parameters, right.parameters, strict=True))
