"""Strategic merge as kustomize does it: what the patch has of a list comes first, in its order, then what the list had besides.

If several keys tell the items apart (the ports of a Service), only new items come first, and merged ones keep their place.

The keys that tell list items apart are those of the recorded OpenAPI documents; lists of custom kinds are replaced. It is not the merge of an
API server, which keeps the old order and knows more directives (`ctrlruntime.apiserver.strategic_patch`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.builtin import builtin_schemas
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.resources import Kind

__all__ = ["DELETED", "strategic_merge"]

DELETED: Final[Any] = object()
"""What a merge returns when the patch says `$patch: delete`."""

_DIRECTIVE: Final = "$patch"
_NO_SCHEMA: Final[Mapping[str, Any]] = {}


def strategic_merge(document: Document, patch: Document, kind: Kind) -> Any:
    """Return the document of this kind with the patch applied, or DELETED. The arguments stay as they are. Raises: ConfigError."""
    schemas = builtin_schemas()
    wanted = kind._asdict()
    roots = (each for each in schemas.values() if wanted in (each.get("x-kubernetes-group-version-kind") or ()))
    return _Merge(schemas).maps(copy.deepcopy(document), copy.deepcopy(patch), next(roots, _NO_SCHEMA))


class _Merge:
    """Walks a document, a patch and a schema side by side."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]]) -> None:
        self._schemas = schemas

    def maps(self, old: Document, patch: Document, schema: Mapping[str, Any]) -> Any:
        match patch.pop(_DIRECTIVE, None):
            case None | "merge":
                pass
            case "delete":
                return DELETED
            case "replace":
                return patch
            case other:
                raise ConfigError(f"unknown directive {_DIRECTIVE}: {other} in a patch. Use delete, merge or replace")
        result = dict(old)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
                continue
            merged = self._values(old.get(name), value, self._field(schema, name))
            if merged is DELETED:
                result.pop(name, None)
            else:
                result[name] = merged
        return result

    def _values(self, old: Any, value: Any, schema: Mapping[str, Any]) -> Any:
        if isinstance(value, dict):
            return self.maps(old if isinstance(old, dict) else {}, value, schema)
        if not isinstance(value, list):
            return value
        if "merge" not in str(schema.get("x-kubernetes-patch-strategy") or "").split(","):
            return value
        return self._lists(old if isinstance(old, list) else [], value, schema)

    def _lists(self, old: list[Any], patch: list[Any], schema: Mapping[str, Any]) -> list[Any]:
        keys: list[str] = schema.get("x-kubernetes-list-map-keys") or []
        merge_key = schema.get("x-kubernetes-patch-merge-key")
        keys = keys or ([str(merge_key)] if merge_key else [])
        if not keys:
            return [*patch, *(item for item in old if item not in patch)]
        directives = [item for item in patch if isinstance(item, dict) and item.get(_DIRECTIVE) == "replace"]
        if any(len(item) == 1 for item in directives):
            return [item for item in patch if item not in directives]
        item_schema = self._resolved(schema.get("items") or _NO_SCHEMA)
        merged: list[Any] = []
        taken: dict[int, Any] = {}  # what becomes of an item of the list, by its index
        for item in patch:
            _check_keys(old, item, keys)
            found = _partners(old, item, keys)
            result = self._values(old[found[0]] if found else None, item, item_schema)
            taken |= dict.fromkeys(found, DELETED)
            if found and _is_kept_in_place(old, patch, keys):
                taken[found[0]] = result
            else:
                merged.append(result)
        merged += [taken.get(index, item) for index, item in enumerate(old)]
        return [item for item in merged if item is not DELETED]

    def _field(self, schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        found: Any = properties.get(name) or schema.get("additionalProperties")
        return self._resolved(found) if isinstance(found, Mapping) else _NO_SCHEMA

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema with what it refers to; its own words win."""
        parts: Sequence[Mapping[str, Any]] = schema.get("allOf") or ()
        for reference in (schema.get("$ref"), *(part.get("$ref") for part in parts)):
            if reference:
                return {**self._resolved(self._schemas.get(reference.rpartition("/")[2], _NO_SCHEMA)), **schema}
        return schema


def _check_keys(old: Iterable[Any], item: Any, keys: Sequence[str]) -> None:
    """Refuse an item that has a key which its partner leaves to a default: kustomize would drop one of the two."""
    if len(keys) == 1 or not isinstance(item, dict):
        return
    for one in old:
        same = isinstance(one, dict) and all(
            one.get(key) == item.get(key) for key in keys if key in one and key in item
        )
        if same and any((key in one) != (key in item) for key in keys):
            missing = " and ".join(key for key in keys if (key in one) != (key in item))
            raise ConfigError(f"the list item is {one}, but the patch has {item}. Set {missing} in both, or in neither")


def _is_kept_in_place(old: Iterable[Any], patch: Iterable[Any], keys: Sequence[str]) -> bool:
    """Tell whether merged items keep their place: in kustomize they do if several keys tell the items apart."""
    items = [one for one in (*old, *patch) if isinstance(one, dict)]
    return len([key for key in keys if any(key in one for one in items)]) > 1


def _partners(old: Sequence[Any], item: Any, keys: Sequence[str]) -> list[int]:
    """The indices of the items of a list that a patch's item is about: equal in the keys that it has."""
    if not isinstance(item, dict):
        return []
    given = [key for key in keys if item.get(key) is not None]
    if not given:
        return []
    return [
        index
        for index, one in enumerate(old)
        if isinstance(one, dict) and all(one.get(key) == item[key] for key in given)
    ]
