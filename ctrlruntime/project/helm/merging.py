"""Merges the forms of one object in several cases: shared parts appear once, other parts with their cases.

Lists whose items have names (variables, ports, volumes) are merged by them; other lists are taken or left as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from ctrlruntime.project.helm.conditions import Case, Cases

__all__ = ["Choice", "Sometimes", "merge"]

_MISSING: Final = object()
_IDENTITIES: Final = ("name", "mountPath")


@dataclass(frozen=True, slots=True)
class Sometimes:
    """A value of a map, or an item of a list, that is there in some cases only."""

    cases: Cases
    value: Any


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that is another one in other cases."""

    options: tuple[tuple[Cases, Any], ...]


def merge(forms: Mapping[Case, Any]) -> Any:
    """Return a tree with `Sometimes` and `Choice` where the forms differ."""
    values = list(forms.values())
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, dict) for value in values):
        return _merged_map(forms)
    identity = next((key for key in _IDENTITIES if all(_has_identity(value, key) for value in values)), None)
    if identity is not None:
        return list(_merged_items(forms, identity))
    return Choice(tuple(_grouped(forms)))


def _merged_map(forms: Mapping[Case, dict[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for form in forms.values() for key in form):
        found = {case: form[key] for case, form in forms.items() if key in form}
        value = merge(found)
        merged[key] = value if len(found) == len(forms) else Sometimes(frozenset(found), value)
    return merged


def _merged_items(forms: Mapping[Case, list[dict[str, Any]]], identity: str) -> Iterator[Any]:
    by_name = {case: {_name(item, identity): item for item in items} for case, items in forms.items()}
    for name in dict.fromkeys(name for items in by_name.values() for name in items):
        found = {case: items[name] for case, items in by_name.items() if name in items}
        value = merge(found)
        yield value if len(found) == len(forms) else Sometimes(frozenset(found), value)


def _has_identity(value: Any, key: str) -> bool:
    """Say whether a value is a list whose maps have different names; what is not a map is told apart by itself."""
    if not isinstance(value, list):
        return False
    names = [_name(item, key) for item in value]
    return _MISSING not in names and len(set(names)) == len(names) and any(isinstance(item, dict) for item in value)


def _name(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        return repr(item)
    return cast("dict[str, Any]", item).get(key, _MISSING)


def _grouped(forms: Mapping[Case, Any]) -> Sequence[tuple[Cases, Any]]:
    groups: list[tuple[list[Case], Any]] = []
    for case, value in forms.items():
        for cases, known in groups:
            if known == value:
                cases.append(case)
                break
        else:
            groups.append(([case], value))
    return [(frozenset(cases), value) for cases, value in groups]
