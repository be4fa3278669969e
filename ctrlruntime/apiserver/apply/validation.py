"""Whether a configuration fits the type of what it is applied to; the words are upstream's."""

from __future__ import annotations

from typing import Any

from ctrlruntime.apiserver.apply.fieldsets import encode_value, shown_step
from ctrlruntime.apiserver.apply.types import ItemKeyError, Type


def problems(kind: Type, value: Any, path: str = "") -> list[str]:
    """Return what of a configuration does not fit the type, in the order of the tree."""
    if type(value) is dict and kind.is_map:
        return _map_problems(kind, value, path)
    if type(value) is list and kind.list_mode:
        return _list_problems(kind, value, path)
    if value is None:
        return []
    wrong = _misfit(kind, value)
    return [f"{path}: {wrong}"] if wrong else []


def _map_problems(kind: Type, value: dict[str, Any], path: str) -> list[str]:
    found: list[str] = []
    for name, inner in value.items():
        child = kind.child(name)
        if child is None:
            return [*found, f"{path}.{name}: field not declared in schema"]
        found += problems(child, inner, f"{path}.{name}")
    return found


def _list_problems(kind: Type, value: list[Any], path: str) -> list[str]:
    found: list[str] = []
    seen: set[str] = set()
    item = kind.item
    assert item is not None
    for index, inner in enumerate(value):
        shown = f"[{index}]"
        if kind.has_items:
            try:
                step = kind.step(inner)
            except ItemKeyError as error:
                return [*found, f"{path}: element {index}: {error}"]
            shown = shown_step(step)
            if step in seen:
                found.append(f"{path}: duplicate entries for key {shown}")
            seen.add(step)
        found += problems(item, inner, path + shown)
    return found


def _misfit(kind: Type, value: Any) -> str:
    if kind.is_map and not kind.scalar:
        return f"expected map, got &{{{_plain(value)}}}"
    form = type(value)
    match kind.scalar:
        case "numeric":
            return "" if form is int or form is float else f"expected numeric (int or float), got {_go_type(value)}"
        case "string":
            return "" if form is str else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean":
            return "" if form is bool else f"expected boolean, got &{{{_plain(value)}}}"
        case "untyped":
            return "" if form is not dict and form is not list else f"expected any scalar, got &{{{_plain(value)}}}"
        case _:
            return f"expected list, got &{{{_plain(value)}}}"


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "int64")


def _plain(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{key}:{_plain(inner)}' for key, inner in sorted(value.items()))}]"
        case list():
            return f"[{' '.join(_plain(inner) for inner in value)}]"
        case None:
            return "<nil>"
        case _:
            return str(value)


def _go_syntax(value: Any) -> str:
    match value:
        case str():
            return encode_value(value)
        case dict():
            inside = ", ".join(f'"{key}":{_go_syntax(inner)}' for key, inner in sorted(value.items()))
            return f"map[string]interface {{}}{{{inside}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(_go_syntax(inner) for inner in value)}}}"
        case _:
            return "interface {}(nil)" if value is None else _plain(value)
