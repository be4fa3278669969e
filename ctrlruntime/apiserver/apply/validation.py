"""Whether a configuration fits the type of what it is applied to; the words are upstream's."""

from __future__ import annotations

from typing import Any

from ctrlruntime.apiserver.apply.fieldsets import encode_value, shown_step
from ctrlruntime.apiserver.apply.types import ItemKeyError, Type
from ctrlruntime.apiserver.go_values import GO_TYPES, Foreign, go_text


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


def listed(problems: list[str]) -> str:
    """Return several problems as one text."""
    return problems[0] if len(problems) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in problems)


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
    if kind.is_map and (not kind.scalar or type(value) is Foreign):
        return f"expected map, got &{{{go_text(value)}}}"
    form = type(value)
    match kind.scalar:
        case "numeric":
            return (
                "" if form is int or form is float else f"expected numeric (int or float), got {_numeric_misfit(value)}"
            )
        case "string":
            return "" if form is str else f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
        case "boolean":
            return "" if form is bool else f"expected boolean, got &{{{go_text(value)}}}"
        case "untyped":
            return "" if form is not dict and form is not list else f"expected any scalar, got &{{{go_text(value)}}}"
        case _:
            return f"expected list, got &{{{go_text(value)}}}"


def _numeric_misfit(value: Any) -> str:
    return value.go_type if isinstance(value, Foreign) else GO_TYPES.get(type(value), "int64")


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
            return (
                value.syntax if isinstance(value, Foreign) else "interface {}(nil)" if value is None else go_text(value)
            )
