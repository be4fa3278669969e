"""The difference of two states as kube-apiserver shows it: lines of its own types, in the messages of changes that are refused.

diff.Diff in apimachinery's pkg/util/diff. Its types are those of pkg/apis/core and not those of an API version: all fields are shown, by
their names in Go. `scripts/generate-internal-types` makes the table of them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from ctrlruntime.data import open_data
from ctrlruntime.schema.trees import Document

_Field: TypeAlias = tuple[str, str, Any, str]
"""Name in Go, name in JSON, the value where nothing is said (`struct`: the empty one), and the type of what the value holds."""
_OF_THE_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")
"""What the types of the server have in the security context (Convert_v1_PodSpec_To_core_PodSpec)."""
_ESCAPED: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Letters that Go's encoding/json does not write."""


def difference(kind: str, old: Document, new: Document) -> str:
    """Return the lines in which two values of a type (`PodSpec`, `EphemeralContainer`, …) differ."""
    from difflib import unified_diff

    before, after = (_lines(kind, value) for value in (old, new))
    return "".join(list(unified_diff(before, after))[2:])  # upstream names no files


def _lines(kind: str, value: Document) -> list[str]:
    if kind == "PodSpec":
        context = {**(value.get("securityContext") or {}), **{name: value.get(name) for name in _OF_THE_HOST}}
        value = {**value, "securityContext": context}
    text = json.dumps(_internal(kind, value), indent=1, ensure_ascii=False)
    for letter, escaped in _ESCAPED.items():
        text = text.replace(letter, escaped)
    return [f"{line}\n" for line in text.split("\n")]


def _internal(kind: str, value: Document) -> Document:
    shown: Document = {}
    for name, key, zero, held in _types()[kind]:
        found = value.get(key)
        if zero == "struct":
            shown[name] = _internal(held, found or {})
        elif found is None or found == []:
            shown[name] = zero
        elif isinstance(found, list):
            shown[name] = [_internal(held, item) if held in _types() else item for item in found]
        elif held in _types():
            shown[name] = _internal(held, found)
        else:
            shown[name] = dict(sorted(found.items())) if held == "map" else found
    return shown


@cache
def _types() -> Mapping[str, Sequence[_Field]]:
    types: Mapping[str, Sequence[_Field]]
    types = json.loads(gzip.decompress(open_data("kubernetes-1.36/internal-types.json.gz")))
    return types


__all__ = ["difference"]
