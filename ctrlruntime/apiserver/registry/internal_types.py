"""Values as upstream's internal types print them: messages of kube-apiserver show a struct as the JSON of its internal type.

That type has no struct tags: every field is there, by its Go name and in the order of Go. The fields are data
(`internal-types.json.gz`, see its README), read at the first such message.
"""

from __future__ import annotations

import difflib
import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from ctrlruntime.data import open_data
from ctrlruntime.field_errors import html_escaped
from ctrlruntime.schema.trees import Document

_Field: TypeAlias = tuple[str, str, str, bool]
_ZEROS: Final[Mapping[str, Any]] = {"s": "", "i": 0, "b": False, "q": "0", "x": 0, "~": {}}
_UNIONS: Final[Mapping[str, str]] = {
    "apiextensions.JSONSchemaPropsOrArray": "JSONSchemas",
    "apiextensions.JSONSchemaPropsOrBool": "Allows",
    "apiextensions.JSONSchemaPropsOrStringArray": "Property",
}
"""What is served as one of two things is a struct with a field for each: its schema, or what is named here."""
_OF_HOSTS: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""Fields of a Pod that are in its security context internally (pkg/apis/core/v1/conversion.go)."""


@cache
def _types() -> Mapping[str, list[_Field]]:
    found: Mapping[str, list[_Field]] = json.loads(gzip.decompress(open_data("kubernetes-1.36/internal-types.json.gz")))
    return found


def internal(kind: str, value: Any) -> Any:
    """Return a served value as its internal type (`core.PodSpec`, `[]core.Container`, …) is encoded."""
    if kind.startswith("*"):
        return None if value is None else internal(kind[1:], value)
    if kind.startswith("[]"):
        return None if value is None else [internal(kind[2:], item) for item in value]
    if kind.startswith("{}"):
        return None if value is None else {key: internal(kind[2:], value[key]) for key in sorted(value)}
    if kind in _ZEROS:
        return _ZEROS[kind] if value is None else value
    if kind in _UNIONS:
        other = _UNIONS[kind]
        has_schema = isinstance(value, dict)
        value = {"Schema": value if has_schema else None, other: None if has_schema else value}
        value["Allows"] = has_schema or value.get("Allows")
    return dict(_fields(kind, value or {}))


def _fields(kind: str, tree: Document) -> Iterator[tuple[str, Any]]:
    if kind == "core.PodSpec":
        hosts = {name: tree[name] for name in _OF_HOSTS if name in tree}
        tree = {**tree, "securityContext": {**(tree.get("securityContext") or {}), **hosts}}
    for printed, served, of, omits_empty in _types()[kind]:
        inner = tree.get(served) if served else tree
        if not printed:  # an embedded struct: its fields are fields of this one
            yield from (inner or {}).items() if of == "~" else _fields(of, inner or {})
            continue
        value = internal(of, inner)
        if not omits_empty or value not in (None, "", 0, False, [], {}):
            yield printed, value


def served(kind: str, printed: Any) -> Any:
    """Return what `internal` printed as it is served; names may be in any case, as encoding/json reads them."""
    if kind.startswith("*"):
        return served(kind[1:], printed)
    if kind.startswith("[]"):
        return [served(kind[2:], item) for item in printed] if isinstance(printed, list) else None
    if kind in _ZEROS:
        return printed
    given = {name.lower(): value for name, value in printed.items()} if isinstance(printed, dict) else {}
    found = {name: served(of, given.get(shown.lower())) for shown, name, of, _ in _types()[kind]}
    return {name: value for name, value in found.items() if value not in (None, {})}


def is_equal(first: Any, second: Any) -> bool:
    """Tell whether two such values are equal for upstream, to which an empty list is as good as no list (Semantic.DeepEqual)."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(is_equal(first[name], second[name]) for name in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_equal, first, second))
    return bool(first == second or (first in (None, [], {}) and second in (None, [], {})))


def difference(kind: str, before: Any, after: Any) -> str:
    """Return what differs between two values as upstream prints it (Diff in apimachinery's pkg/util/diff)."""
    then, now = _lines(internal(kind, before)), _lines(internal(kind, after))
    return "".join([*difflib.unified_diff(then, now)][2:])  # upstream names no files


def _lines(value: Any) -> list[str]:
    text = html_escaped(json.dumps(value, indent=1, ensure_ascii=False))
    return [f"{line}\n" for line in text.split("\n")]


__all__ = ["difference", "internal", "is_equal", "served"]
