"""The type checker: it finds the type of each node and the overloads of each call, or reports problems in the words of cel-go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ctrlruntime.cel import types
from ctrlruntime.cel.failures import CompileError, Issue
from ctrlruntime.cel.functions import Function, Overload
from ctrlruntime.cel.syntax import (
    Call,
    Comprehension,
    Entry,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    Source,
)
from ctrlruntime.cel.types import Substitution, Type
from ctrlruntime.cel.values import UInt

Messages: TypeAlias = Callable[[str], Type | None]
"""Returns the type of a literal `Name{field: value}`; None: no message has this name."""
_TYPE_NAMES = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "int": types.INT,
    "list": types.list_of(types.DYN),
    "map": types.map_of(types.DYN, types.DYN),
    "net.CIDR": types.opaque("net.CIDR"),
    "net.IP": types.opaque("net.IP"),
    "kubernetes.Quantity": types.opaque("kubernetes.Quantity"),
    "kubernetes.Semver": types.opaque("kubernetes.Semver"),
    "kubernetes.URL": types.opaque("kubernetes.URL"),
    "null_type": types.NULL,
    "optional_type": types.optional_of(types.DYN),
    "string": types.STRING,
    "type": types.TYPE,
    "uint": types.UINT,
}
"""Names of types, which an expression may use as values."""


@dataclass(slots=True)
class Checked:
    """A tree with known types."""

    node: Node
    source: Source
    types: dict[Node, Type] = field(default_factory=dict[Node, Type])
    calls: dict[Call, tuple[Function, tuple[Overload, ...]]] = field(
        default_factory=dict[Call, tuple[Function, tuple[Overload, ...]]]
    )
    names: dict[Node, str] = field(default_factory=dict[Node, str])
    """Nodes that are one name, dots and all, and not a selection: a variable, or a type."""

    @property
    def result(self) -> Type:
        return self.types[self.node]


def check(
    node: Node,
    source: Source,
    variables: Mapping[str, Type],
    functions: Mapping[str, Function],
    messages: Messages,
) -> Checked:
    """Return the tree with its types. Raises: CompileError with everything that is wrong."""
    checker = _Checker(source, variables, functions, messages)
    checker.check(node)
    checked = checker.finish(node)
    if checker.issues:
        raise CompileError(source.text, checker.issues)
    return checked


class _Checker:
    def __init__(
        self, source: Source, variables: Mapping[str, Type], functions: Mapping[str, Function], messages: Messages
    ) -> None:
        self.issues: list[Issue] = []
        self._messages = messages
        self._source = source
        self._scopes: list[Mapping[str, Type]] = [variables]
        self._functions = functions
        self._types: dict[Node, Type] = {}
        self._checked = Checked(Literal(None), source)
        self._bound = Substitution()

    def finish(self, node: Node) -> Checked:
        """Return the result; a node without a type is dyn."""
        self._checked.node = node
        self._checked.types = {
            node: self._bound.resolve(found, free_to_dyn=True) for node, found in self._types.items()
        }
        return self._checked

    def check(self, node: Node) -> Type:
        """Find the type of a node and of all below it."""
        match node:
            case Literal():
                found = self._literal(node)
            case Identifier():
                found = self._identifier(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListLiteral():
                found = self._list(node)
            case MapLiteral():
                found = self._map(node)
            case Comprehension():
                found = self._comprehension(node)
        self._types[node] = found
        return found

    def _issue(self, node: Node, message: str) -> Type:
        self.issues.append(self._source.issue(node.id, message))
        return types.ERROR

    def _literal(self, node: Literal) -> Type:
        value = node.value
        if isinstance(value, float) and value in {float("inf"), float("-inf")}:
            return self._issue(node, "invalid double literal")
        return literal_type(value)

    def _identifier(self, node: Identifier) -> Type:
        found = self._lookup(node.name)
        if found is None:
            return self._undeclared(node, node.name)
        self._checked.names[node] = node.name.removeprefix(".")
        return found

    def _lookup(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        named = _TYPE_NAMES.get(name) or self._messages(name)
        return None if named is None else types.type_of(named)

    def _undeclared(self, node: Node, name: str) -> Type:
        return self._issue(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Type:
        name = None if node.tests else qualified_name(node)
        found = self._lookup(name) if name is not None else None
        if found is not None and name is not None:
            self._checked.names[node] = name
            return found
        selected = self._field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.tests else self._bound.resolve(selected)

    def _field(self, node: Node, operand: Node, name: str, *, optional: bool) -> Type:
        target = self._bound.resolve(self.check(operand))
        if target.name == "optional_type":
            target, optional = target.parameters[0], True
        match target.kind:
            case "map":
                result = target.parameters[1]
            case "object":
                found = target.fields.get(name)
                result = self._issue(node, f"undefined field '{name}'") if found is None else found
            case "parameter":
                self._bound.assignable([(types.DYN, target)])
                result = types.DYN
            case "dyn" | "error":
                result = types.DYN
            case _:
                is_kubernetes = target.name.startswith("kubernetes.")  # declared as objects, but without fields
                self._issue(
                    node,
                    f"unexpected failed resolution of '{target}'"
                    if is_kubernetes
                    else f"type '{target}' does not support field selection",
                )
                result = types.DYN
        return types.optional_of(result) if optional else result

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            field = node.arguments[1]
            assert isinstance(field, Literal)
            self._types[field] = types.STRING
            return self._bound.resolve(self._field(node, node.arguments[0], str(field.value), optional=True))
        arguments = [self.check(argument) for argument in node.arguments]
        if node.target is None:
            return self._resolved(node, node.function, arguments, is_member=False)
        prefix = qualified_name(node.target)
        if prefix is not None and f"{prefix}.{node.function}" in self._functions:
            name = f"{prefix}.{node.function}"
            node.target, node.function = None, name
            return self._resolved(node, name, arguments, is_member=False)
        return self._resolved(node, node.function, [self.check(node.target), *arguments], is_member=True)

    def _resolved(self, node: Call, name: str, arguments: list[Type], *, is_member: bool) -> Type:
        function = self._functions.get(name)
        if function is None:
            return self._undeclared(node, name)
        if name in {"_&&_", "_||_"}:
            return self._logical(node, function, arguments)
        found: list[Overload] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.is_member is not is_member or len(overload.parameters) != len(arguments):
                continue
            wanted, *parameters = types.instantiate([overload.result, *overload.parameters], self._bound)
            if not self._bound.assignable(list(zip(arguments, parameters, strict=True))):
                continue
            found.append(overload)
            gives = self._bound.resolve(wanted)
            if result is None:
                result = gives
            elif result.kind != "dyn" and gives != result:
                result = types.DYN
        if result is None:
            return self._no_overload(node, name, arguments, is_member=is_member)
        self._checked.calls[node] = (function, tuple(found))
        return result

    def _logical(self, node: Call, function: Function, arguments: list[Type]) -> Type:
        bad = False
        for argument, given in zip(node.arguments, arguments, strict=True):
            if not self._bound.assignable([(given, types.BOOL)]):
                self._mismatch(argument, types.BOOL, given)
                bad = True
        self._checked.calls[node] = (function, function.overloads)
        return types.ERROR if bad else types.BOOL

    def _no_overload(self, node: Node, name: str, arguments: list[Type], *, is_member: bool) -> Type:
        shown = [str(self._bound.resolve(argument, free_to_dyn=True)) for argument in arguments]
        signature = f"{shown[0]}.({', '.join(shown[1:])})" if is_member else f"({', '.join(shown)})"
        return self._issue(node, f"found no matching overload for '{name}' applied to '{signature}'")

    def _mismatch(self, node: Node, expected: Type, found: Type) -> Type:
        expected, found = self._bound.resolve(expected), self._bound.resolve(found)
        return self._issue(node, f"expected type '{expected}' but found '{found}'")

    def _list(self, node: ListLiteral) -> Type:
        element: Type | None = None
        for index, child in enumerate(node.elements):
            given = self.check(child)
            if index in node.optional:
                given = self._unwrapped(child, given)
            element = self._join(element, given)
        return types.list_of(element or self._bound.fresh())

    def _map(self, node: MapLiteral) -> Type:
        if node.message:
            return self._message(node)
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            key = self._join(key, self.check(entry.key))
            given = self.check(entry.value)
            if entry.optional:
                given = self._unwrapped(entry.value, given)
            value = self._join(value, given)
        return types.map_of(key or self._bound.fresh(), value or self._bound.fresh())

    def _message(self, node: MapLiteral) -> Type:
        found = self._messages(node.message)
        if found is None:
            return self._undeclared(node, node.message)
        for entry in node.entries:
            self._types[entry.key] = types.STRING
            given = self.check(entry.value)
            if entry.optional:
                given = self._unwrapped(entry.value, given)
            self._field_value(entry, found, given)
        return found

    def _field_value(self, entry: Entry, message: Type, given: Type) -> None:
        assert isinstance(entry.key, Literal)
        name = str(entry.key.value)
        field = message.fields.get(name)
        if field is None or not self._bound.assignable([(given, field)]):
            shown = f"is '{field or ''}' but provided type is '{self._bound.resolve(given)}'"
            self.issues.append(self._source.issue(entry.id, f"expected type of field '{name}' {shown}"))

    def _unwrapped(self, node: Node, type: Type) -> Type:
        given = self._bound.resolve(type)
        if given.name == "optional_type":
            return given.parameters[0]
        if given.kind != "dyn":
            self._mismatch(node, types.optional_of(given), given)
        return given

    def _join(self, before: Type | None, type: Type) -> Type:
        """Return the type of elements so far."""
        if before is None:
            return type
        if self._bound.assignable([(before, type)]):
            return before if types.is_more_general(before, type) else type
        return types.DYN

    def _comprehension(self, node: Comprehension) -> Type:
        over = self._bound.resolve(self.check(node.range))
        accumulated = self.check(node.start)
        first, second = self._iterated(node, over)
        self._scopes.append({node.accumulator: accumulated})
        loop = {node.variable: first}
        if node.second:
            loop[node.second] = second
        self._scopes.append(loop)
        condition = self.check(node.condition)
        if not self._bound.assignable([(condition, types.BOOL)]):
            self._mismatch(node.condition, types.BOOL, condition)
        step = self.check(node.step)
        if not self._bound.assignable([(step, accumulated)]):
            self._mismatch(node.step, accumulated, step)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self._bound.resolve(result)

    def _iterated(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        match over.kind:
            case "list":
                element = over.parameters[0]
                return (types.INT, element) if node.second else (element, element)
            case "map":
                return over.parameters[0], over.parameters[1]
            case "dyn" | "error" | "parameter" if over != types.ANYTHING:
                self._bound.assignable([(types.DYN, over)])
                return types.DYN, types.DYN
            case _:
                text = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
                return self._issue(node.range, text), types.ERROR


def qualified_name(node: Node) -> str | None:
    """Return `a.b.c` if the node consists only of names and dots."""
    match node:
        case Identifier():
            return node.name
        case Select(tests=False):
            prefix = qualified_name(node.operand)
            return None if prefix is None else f"{prefix}.{node.field}"
        case _:
            return None


def literal_type(value: Any) -> Type:
    """Return the type of a literal."""
    match value:
        case None:
            return types.NULL
        case bool():
            return types.BOOL
        case UInt():
            return types.UINT
        case int():
            return types.INT
        case float():
            return types.DOUBLE
        case str():
            return types.STRING
        case _:
            return types.BYTES
