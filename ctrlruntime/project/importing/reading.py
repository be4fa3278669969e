"""Written modules read as data: their definitions are generated again and compared with the given ones, and no line of them is run.

A written module consists of imports, aliases and classes, and these of names, calls of markers and literals. Everything else is refused
here (`UnexpectedSourceError`), so a CRD cannot bring code into a module, neither for the command nor for a later import.
"""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field

from ctrlruntime import crd, markers
from ctrlruntime.api import core, meta
from ctrlruntime.api.kind import ScalePaths
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.errors import CtrlError, GenerateError
from ctrlruntime.field import IntOrString, Quantity, Time
from ctrlruntime.generate import Options, crds
from ctrlruntime.generate.options import Document
from ctrlruntime.project.importing.definitions import name_of
from ctrlruntime.project.importing.meaning import differences

__all__ = ["UnexpectedSourceError", "lost", "regenerated"]


class UnexpectedSourceError(CtrlError):
    """A module has something that no import writes."""


_IMPORTED_FROM: Final = frozenset({"__future__", "typing", "ctrlruntime.api", "pydantic"})
_CTRL: Final[Mapping[str, Any]] = {
    "Int32": markers.Int32,
    "Int64": markers.Int64,
    "IntOrString": IntOrString,
    "Model": Model,
    "Object": Object,
    "Quantity": Quantity,
    "Time": Time,
}
_MODULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "ctrl": _CTRL,
    **{
        name: {one: getattr(room, one) for one in room.__all__}
        for name, room in (("core", core), ("crd", crd), ("meta", meta))
    },
}
_GENERIC: Final[Mapping[str, Any]] = {"Annotated": Annotated, "Literal": Literal, "dict": dict, "list": list}
_NAMES: Final[Mapping[str, Any]] = {
    **_GENERIC,
    **{kind.__name__: kind for kind in (bool, bytes, float, int, str)},
    "Field": Field,
}
_CALLED: Final = (float, Field, ScalePaths, markers.printcolumn)
_MODULE: Final = "imported"


def lost(source: str, definitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each difference between the CRDs of a module's classes and `definitions`."""
    try:
        made = {name_of(definition): definition for definition in regenerated(source)}
    except GenerateError as error:
        return [
            f"the classes were written, but `ctrl manifests` will reject them: {str(error).removeprefix(f'{_MODULE}.')}"
        ]
    return [
        f"{name_of(definition)}: {line}"
        for definition in definitions
        for line in differences(definition, made[name_of(definition)])
    ]


def regenerated(source: str) -> list[Document]:
    """Return the definitions of the classes of a module. Raises: GenerateError, UnexpectedSourceError."""
    return crds(_Module().kinds(source), options=Options(), warn=lambda _: None)


class _Module:
    """The names that one module has defined so far."""

    def __init__(self) -> None:
        self._own: dict[str, Any] = {}

    def kinds(self, source: str) -> list[type[Object]]:
        for statement in ast.parse(source).body:
            self._statement(statement)
        return [found for found in self._own.values() if isinstance(found, type) and issubclass(found, Object)]

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.ImportFrom(module=str(module), level=0) if module in _IMPORTED_FROM:
                pass
            case ast.Import(names=[ast.alias(name="ctrlruntime", asname="ctrl")]):
                pass
            case ast.ImportFrom(module="ctrlruntime", names=[ast.alias(name="crd", asname=None)], level=0):
                pass
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as expression
            ):
                self._define(name, self._value(expression), statement)
            case ast.ClassDef(name=name):
                self._define(name, self._class(statement), statement)
            case _:
                raise _unexpected(statement)

    def _define(self, name: str, what: Any, where: ast.stmt) -> None:
        if name in self._own or name in _NAMES or name in _MODULES:
            raise _unexpected(where)
        self._own[name] = what

    def _class(self, statement: ast.ClassDef) -> Any:
        fields = {name: both for each in statement.body for name, both in self._field(each)}
        text = ast.get_docstring(statement, clean=False)

        def body(namespace: dict[str, Any]) -> None:
            namespace["__module__"] = _MODULE
            namespace["__doc__"] = text
            namespace["__annotations__"] = {name: annotation for name, (annotation, _) in fields.items()}
            namespace |= {name: default[0] for name, (_, default) in fields.items() if default}

        bases = tuple(self._value(base) for base in statement.bases)
        if bases not in {(Model,), (Object,)}:
            raise _unexpected(statement)
        made: Any = types.new_class(statement.name, bases, self._named(statement.keywords), body)
        for decorator in reversed(statement.decorator_list):
            marker = self._value(decorator)
            if not (isinstance(marker, markers.Marker) or isinstance(decorator, ast.Call)):
                raise _unexpected(decorator)
            made = marker(made)
        return made

    def _field(self, statement: ast.stmt) -> Iterator[tuple[str, tuple[Any, list[Any]]]]:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=default) if name[0] != "_":
                yield name, (self._value(annotation), [] if default is None else [self._value(default)])
            case _:
                raise _unexpected(statement)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | bool() | int() | float() | None):
                return node.value
            case ast.Name(id=name) if name in self._own or name in _NAMES:
                return self._own[name] if name in self._own else _NAMES[name]
            case ast.Attribute(value=ast.Name(id=module), attr=name) if name in _MODULES.get(module, ()):
                return _MODULES[module][name]
            case ast.Call(func=function):
                return self._call(node, self._value(function))
            case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in _GENERIC:
                return operator.getitem(_GENERIC[name], self._value(inner))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._value(left) | self._value(right)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.Tuple(elts=parts):
                return tuple(self._value(part) for part in parts)
            case ast.List(elts=parts):
                return [self._value(part) for part in parts]
            case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
                return {
                    key.value: self._value(value)
                    for key, value in zip(cast("list[ast.Constant]", keys), values, strict=True)
                }
            case _:
                raise _unexpected(node)

    def _call(self, node: ast.Call, function: Any) -> Any:
        is_marker = isinstance(function, type) and issubclass(function, markers.Marker)
        if not is_marker and function not in _CALLED:
            raise _unexpected(node)
        return function(*(self._value(part) for part in node.args), **self._named(node.keywords))

    def _named(self, keywords: Sequence[ast.keyword]) -> dict[str, Any]:
        if any(keyword.arg is None for keyword in keywords):
            raise UnexpectedSourceError("the generated module has an unexpected call with **")
        return {str(keyword.arg): self._value(keyword.value) for keyword in keywords}


def _unexpected(node: ast.stmt | ast.expr) -> UnexpectedSourceError:
    return UnexpectedSourceError(
        f"line {node.lineno} of the generated module has an unexpected {type(node).__name__}, so the module is not used: "
        f"a name or string of the CRD cannot become Python"
    )
