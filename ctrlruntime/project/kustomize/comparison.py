"""Two sets of objects against each other, whatever their order: what one has and the other has not, as a diff."""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctrlruntime.generate.documents import written
from ctrlruntime.project.kustomize.resources import Resource

__all__ = ["differences"]


def differences(
    given: Iterable[Mapping[str, Any]], rendered: Iterable[Mapping[str, Any]], *, given_name: str
) -> Iterator[str]:
    """Yield the lines of a unified diff for every object that is not the same on both sides; nothing when all are."""
    before, after = _by_name(given), _by_name(rendered)
    for name in sorted({*before, *after}):
        if _values(before[name]) != _values(after[name]):
            yield from difflib.unified_diff(
                written(before[name]).splitlines(keepends=True),
                written(after[name]).splitlines(keepends=True),
                fromfile=f"{name} ({given_name})",
                tofile=f"{name} (rendered)",
            )


def _by_name(objects: Iterable[Mapping[str, Any]]) -> defaultdict[str, list[Mapping[str, Any]]]:
    found: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in objects:
        tree = Resource(dict(each), "")
        found[f"{tree.tree.get('apiVersion')} {tree.id}"].append(each)
    return found


def _values(objects: Iterable[Mapping[str, Any]]) -> list[str]:
    """The objects as JSON tells them apart: 1 is not true, and not "1"."""
    return sorted(json.dumps(each, sort_keys=True) for each in objects)
