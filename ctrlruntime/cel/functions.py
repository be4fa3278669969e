"""Declarations of functions: a name, and overloads with the types of parameters and result.

A signature is written as text: `"string.(string) -> bool"` is a member of strings, `"(int, int) -> int"` is a function. A single capital
letter is a type parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from ctrlruntime.cel import types
from ctrlruntime.cel.types import Type

Implementation: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One form of a function; a member's first parameter is its target."""

    parameters: tuple[Type, ...]
    result: Type
    is_member: bool
    call: Implementation


@dataclass(frozen=True, slots=True)
class Function:
    """A function with all its forms. `lenient` ones get failures of their arguments as values."""

    name: str
    overloads: tuple[Overload, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A line of a library: the name, the signature and the implementation of a function."""

    name: str
    signature: str
    call: Implementation


def collect(*libraries: Iterable[Declared]) -> Mapping[str, Function]:
    """Return the functions of the libraries by name, overloads in the order of declaration."""
    found: dict[str, list[Overload]] = {}
    for library in libraries:
        for declared in library:
            found.setdefault(declared.name, []).append(_overload(declared))
    return {name: Function(name, tuple(overloads)) for name, overloads in found.items()}


def _overload(declared: Declared) -> Overload:
    match = _SIGNATURE.match(declared.signature)
    assert match is not None, declared.signature
    target, arguments, result = match.groups()
    parameters = [read_type(argument) for argument in _split(arguments)]
    if target:
        parameters.insert(0, read_type(target))
    return Overload(tuple(parameters), read_type(result), bool(target), declared.call)


_SIGNATURE = re.compile(r"(?:(.+)\.)?\((.*)\) -> (.+)\Z")
_SIMPLE = {
    simple.kind: simple
    for simple in (
        types.BOOL,
        types.BYTES,
        types.DOUBLE,
        types.DURATION,
        types.DYN,
        types.INT,
        types.NULL,
        types.STRING,
        types.TIMESTAMP,
        types.TYPE,
        types.UINT,
    )
}


@cache
def read_type(text: str) -> Type:
    """Return the type in a signature."""
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    if len(text) == 1:
        return types.parameter(text)
    name, _, inner = text.partition("(")
    parameters = [read_type(part) for part in _split(inner.removesuffix(")"))]
    match name:
        case "list":
            return types.list_of(parameters[0])
        case "map":
            return types.map_of(parameters[0], parameters[1])
        case "optional":
            return types.optional_of(parameters[0])
        case "type":
            return types.type_of(parameters[0])
        case _:
            return types.opaque(name)


def _split(text: str) -> list[str]:
    parts, depth, start = list[str](), 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text.strip() else []
