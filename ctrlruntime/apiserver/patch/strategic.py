"""Strategic merge patch: lists merge by the keys that the OpenAPI data names (`x-kubernetes-patch-merge-key`, `-strategy`).

Directives: `$patch: replace|delete|merge`, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`. Items new to
a list come before the server's own, unless an element order says otherwise, as upstream does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ctrlruntime.apiserver.failures import plain_internal
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.errors import BadRequest

_UNFIT = re.compile(r"json: cannot unmarshal (?:number )?(?P<given>\S+) into Go struct field \S+ of type (?P<kind>.+)")
_FOUND = {
    "string": "string",
    "bool": "bool",
    "object": "map[string]interface {}",
    "array": "[]interface {}",
    "number": "int64",
}
_SCALARS = frozenset({"string", "bool", "int", "int32", "int64", "float64"})
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


class PatchSchema:
    """A schema of an OpenAPI document, followed through its references."""

    def __init__(self, schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._own = schema
        self._target = self._resolve(schema)

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref") or next(
            (part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None
        )
        if reference is None:
            return schema
        found: Mapping[str, Any] = self._schemas.get(reference.rpartition("/")[2], {})
        return self._resolve(found)

    def field(self, name: str) -> PatchSchema:
        properties: Mapping[str, Any] = self._target.get("properties") or {}
        if name in properties:
            return PatchSchema(self._schemas, properties[name])
        extra = self._target.get("additionalProperties")
        return PatchSchema(self._schemas, extra if isinstance(extra, Mapping) else {})

    @property
    def item(self) -> PatchSchema:
        return PatchSchema(self._schemas, self._target.get("items") or {})

    @property
    def strategies(self) -> tuple[str, ...]:
        text = self._own.get("x-kubernetes-patch-strategy") or self._target.get("x-kubernetes-patch-strategy") or ""
        return tuple(str(text).split(",")) if text else ()

    @property
    def merge_key(self) -> str:
        return str(
            self._own.get("x-kubernetes-patch-merge-key") or self._target.get("x-kubernetes-patch-merge-key") or ""
        )


def strategic_merge(document: Document, patch: Document, schema: PatchSchema) -> Document:
    """Return the document with the patch applied; the inputs stay as they are. Raises: APIStatusError (500, as upstream)."""
    return _merge_map(document, patch, schema)


def _merge_map(original: Document, patch: Document, schema: PatchSchema) -> Document:
    directive = patch.get("$patch")
    if directive is not None:
        if directive == "replace":
            return _cleaned({key: value for key, value in patch.items() if key != "$patch"}, schema)
        if directive == "delete":
            return {}
        raise plain_internal(f"unknown patch type: {_go_text(directive)} in map: {go_map(patch)}")
    result = dict(original)
    retained = patch.get("$retainKeys")
    if retained is not None:
        given = [key for key in patch if not key.startswith("$") and patch[key] is not None]
        if not isinstance(retained, list) or any(key not in retained for key in given):
            raise BadRequest("invalid patch format of retainKeys")
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = key.removeprefix(_DELETE_PRIMITIVES)
            if isinstance(result.get(name), list) and isinstance(value, list):
                result[name] = [item for item in result[name] if item not in value]
    for key, value in patch.items():
        if key.startswith(("$patch", "$retainKeys", _DELETE_PRIMITIVES, _ORDER)):
            continue
        if value is None:
            result.pop(key, None)
            continue
        child = schema.field(key)
        result[key] = _merge_value(result.get(key), value, child, patch.get(_ORDER + key))
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in patch and isinstance(result.get(name), list):
            child = schema.field(name)
            server = original.get(name) or []
            result[name] = _ordered(
                result[name], [_key_of(item, child.merge_key) for item in order], server, child.merge_key
            )
    return result


def _merge_value(present: Any, value: Any, schema: PatchSchema, order: list[Any] | None) -> Any:
    strategies = schema.strategies
    if isinstance(value, dict):
        if "replace" in strategies or not isinstance(present, dict):
            base: Document = {}
            return _merge_map(base, value, schema)
        return _merge_map(present, value, schema)
    if isinstance(value, list) and "merge" in strategies:
        server: list[Any] = present if isinstance(present, list) else []
        return _merge_list(server, value, schema, order)
    if isinstance(value, list):
        return [_cleaned(item, schema.item) if isinstance(item, dict) else item for item in value]
    return value


def _cleaned(value: Document, schema: PatchSchema) -> Document:
    """Return a new value of a patch without directives in it."""
    return _merge_map({}, value, schema) if any(key.startswith("$") for key in value) or value else value


def _merge_list(server: list[Any], patch: list[Any], schema: PatchSchema, order: list[Any] | None) -> list[Any]:
    key = schema.merge_key
    if not key:
        merged = [*server, *(item for item in patch if item not in server)]
        keys = order if order is not None else patch
        return _ordered(merged, list(keys), server, "")
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    if order is not None:
        _check_order(patch, order, key)
    merged = list(server)
    for item in patch:
        if not isinstance(item, dict):
            raise plain_internal(f"expected a map in a list with merge key {key}, found {item!r}")
        if key not in item:
            raise plain_internal(f"map: {go_map(item)} does not contain declared merge key: {key}")
        at = next((i for i, one in enumerate(merged) if isinstance(one, dict) and one.get(key) == item[key]), None)
        directive = item.get("$patch")
        if directive == "delete":
            merged = [one for one in merged if not (isinstance(one, dict) and one.get(key) == item[key])]
        elif directive not in {None, "merge"}:
            raise plain_internal(f"unknown patch type: {directive} in map: {go_map(item)}")
        elif at is None:
            merged.append(_merge_map({}, {k: v for k, v in item.items() if k != "$patch"}, schema.item))
        else:
            merged[at] = _merge_map(merged[at], item, schema.item)
    chosen = [item for item in patch if isinstance(item, dict) and item.get("$patch") != "delete"]
    keys = [_key_of(item, key) for item in (order if order is not None else chosen)]
    return _ordered(merged, keys, server, key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse an element order that lacks an item of the patch, or has them in another order."""
    wanted = [_key_of(item, key) for item in patch if not (isinstance(item, dict) and item.get("$patch") == "delete")]
    listed = iter([_key_of(item, key) for item in order])
    if any(one not in listed for one in wanted):  # each is looked for after the one before
        raise plain_internal(
            f"The order in patch list:\n{go_map(patch)}\n doesn't match $setElementOrder list:\n{go_map(order)}\n"
        )


def _key_of(item: Any, merge_key: str) -> Any:
    return item.get(merge_key) if merge_key and isinstance(item, dict) else item


def _ordered(merged: list[Any], keys: list[Any], server: list[Any], merge_key: str) -> list[Any]:
    """Return the items with those of the patch in its order, and the server's own where their old order lets them stand."""
    ours = sorted(
        (item for item in merged if _key_of(item, merge_key) in keys),
        key=lambda item: keys.index(_key_of(item, merge_key)),
    )
    theirs = [item for item in merged if _key_of(item, merge_key) not in keys]
    places = [_key_of(item, merge_key) for item in server]
    result: list[Any] = []
    while ours and theirs:
        left, right = _key_of(theirs[0], merge_key), _key_of(ours[0], merge_key)
        if left in places and right in places and places.index(left) < places.index(right):
            result.append(theirs.pop(0))
        else:
            result.append(ours.pop(0))
    return [*result, *ours, *theirs]


def restored(text: str) -> str:
    """Return what is said of a value of a wrong type in a patched tree, made of what is said of one in a JSON body."""
    match = _UNFIT.fullmatch(text)
    if match is None:
        return text
    given, kind = match["given"], match["kind"]
    found = _FOUND.get(given, "float64" if "." in given else "int64")
    if kind.startswith("[]"):
        return f"cannot restore slice from {found.partition('[')[0] or 'slice'}"
    if kind.startswith("map["):
        return f"cannot restore map from {found.partition('[')[0] or 'slice'}"
    if kind in _SCALARS:
        return f"cannot convert {found} to {kind}"
    return f"cannot restore struct from: {found.partition('[')[0] or 'slice'}"


def _go_text(value: Any) -> str:
    """Return a value as Go's %s prints it where a text should be."""
    if isinstance(value, str):
        return value
    kind = "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64"
    return f"%!s({kind}={go_map(value)})"


def go_map(value: Any) -> str:
    """Return a tree as Go's %v prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_map(value[key])}' for key in sorted(value))}]"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{' '.join(go_map(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)
