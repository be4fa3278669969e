"""Strategic merge patch: lists merge by the keys that the OpenAPI data names (`x-kubernetes-patch-merge-key`, `-strategy`).

Directives: `$patch: replace|delete|merge`, `$retainKeys`, `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`. Items new to
a list come before the server's own, unless an element order says otherwise, as upstream does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctrlruntime.apiserver.failures import plain_internal
from ctrlruntime.apiserver.go_values import GO_TYPES, go_text
from ctrlruntime.errors import APIStatusError, BadRequest, Invalid
from ctrlruntime.schema.trees import Document

_UNFIT = re.compile(r"json: cannot unmarshal (?:number )?(?P<given>\S+) into Go struct field \S+ of type (?P<kind>.+)")
_FOUND = {
    "string": "string",
    "bool": "bool",
    "object": "map[string]interface {}",
    "array": "[]interface {}",
    "number": "int64",
}
_SCALARS = frozenset({"string", "bool", "int", "int32", "int64", "float64"})
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_DROPPED = object()
"""In place of a value that is not to be kept."""


class PatchSchema:
    """A schema of an OpenAPI document, followed through its references."""

    def __init__(self, schemas: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._own = schema
        self._name = ""
        self._target = self._resolve(schema)

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = schema.get("$ref") or next(
            (part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None
        )
        if reference is None:
            return schema
        self._name = reference.rpartition(".")[2]
        found: Mapping[str, Any] = self._schemas.get(reference.rpartition("/")[2], {})
        return self._resolve(found)

    def field(self, name: str) -> PatchSchema:
        properties: Mapping[str, Any] = self._target.get("properties") or {}
        if name in properties:
            return PatchSchema(self._schemas, properties[name])
        extra = self._target.get("additionalProperties")
        return PatchSchema(self._schemas, extra if isinstance(extra, Mapping) else {})

    def check_field(self, name: str) -> None:
        """Refuse a field that the type does not have. Raises: APIStatusError (500, as upstream)."""
        properties = self._target.get("properties")
        if properties and name not in properties:
            raise plain_internal(f'unable to find api field in struct {self._name} for the json field "{name}"')

    @property
    def merges(self) -> bool:
        """Whether a list of this schema merges."""
        return "merge" in self.strategies

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
    """Return the document with the patch applied; the inputs stay as they are.

    What is refused, and with which words, is as in k8s.io/apimachinery/pkg/util/strategicpatch. Raises: APIStatusError.
    """
    return _merge_map(document, patch, schema)


def _merge_map(original: Document, patch: Document, schema: PatchSchema) -> Document:
    if "$patch" in patch:
        directive = patch["$patch"]
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != "$patch"}
        if directive == "delete":
            return {}
        raise _unknown_directive(directive, patch)
    result, left = _retained(original, patch)
    for key in [key for key in left if key.startswith(_ORDER)]:
        order = left.pop(key)
        _merge_ordered(result, left, _named(key, _ORDER, "setElementOrder list"), order, schema)
    for key, value in left.items():
        if key.startswith(_DELETE_PRIMITIVES):
            name = _named(key, _DELETE_PRIMITIVES, "primitive list")
            if value is None:
                result.pop(name, None)
            elif isinstance(value, list) and isinstance(result.get(name), list):
                result[name] = _merge_list(list(result[name]), value, schema.field(name), deletes=True)
        elif value is None:
            result.pop(key, None)
        else:
            merged = _merge_value(result[key], value, schema.field(key)) if key in result else _taken(value)
            if merged is _DROPPED:
                result.pop(key, None)
            else:
                result[key] = merged
    return result


def _retained(original: Document, patch: Document) -> tuple[Document, Document]:
    """Return copies of the fields that `$retainKeys` leaves, and of the patch without it."""
    left = {key: value for key, value in patch.items() if key != "$retainKeys"}
    if "$retainKeys" not in patch:
        return dict(original), left
    keys = patch["$retainKeys"]
    given = [
        key for key, value in left.items() if value is not None and not key.startswith((_DELETE_PRIMITIVES, _ORDER))
    ]
    if not isinstance(keys, list) or any(key not in keys for key in given):
        raise BadRequest("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}, left


def _named(key: str, prefix: str, what: str) -> str:
    found, slash, name = key.partition("/")
    if found != prefix or not slash:
        raise BadRequest(f"invalid patch format of {what}")
    return name


def _merge_ordered(result: Document, patch: Document, name: str, order: Any, schema: PatchSchema) -> None:
    """Merge a list that has a `$setElementOrder` into the result, and take it from the patch."""
    _check_list(order)
    for tree in (result, patch):
        if name in tree:
            _check_list(tree[name])
    schema.check_field(name)
    child = schema.field(name)
    present, given = list(result.get(name, [])), patch.get(name, [])
    _check_order(given, order, child.merge_key)
    if name not in patch:
        merged = present
    elif name in result:
        merged = _merge_list(present, given, child) if child.merges else given
    else:
        merged = _taken(given)
    if name in patch or name in result:
        _check_items(present, given)
        result[name] = _arranged(merged, order, present, child.merge_key)
        patch.pop(name, None)


def _merge_value(present: Any, value: Any, schema: PatchSchema) -> Any:
    if type(present) is not type(value):
        return _taken(value)
    if isinstance(value, dict):
        return value if "replace" in schema.strategies else _merge_map(present, value, schema)
    if isinstance(value, list):
        return _merge_list(list(present), value, schema) if schema.merges else value
    return value


def _taken(value: Any) -> Any:
    """Return a value of the patch for a field that is not there: without nulls, and without maps that hold a directive."""
    if isinstance(value, dict):
        if "$patch" in value:
            return _DROPPED
        taken = {key: _taken(each) for key, each in value.items() if each is not None}
        return {key: each for key, each in taken.items() if each is not _DROPPED}
    if isinstance(value, list):
        return [each for each in map(_taken, value) if each is not _DROPPED]
    return value


def _merge_list(present: list[Any], patch: list[Any], schema: PatchSchema, *, deletes: bool = False) -> list[Any]:
    """Return the merged list. `present` becomes what kube-apiserver makes of it on the way, as it orders by that later on."""
    if not present and not patch:
        return present
    kind = _check_items(present, patch)
    key = schema.merge_key
    if kind is not dict:
        if deletes:
            return [item for item in present if _index(patch, item, "") is None]
        merged: list[Any] = []
        for item in (*present, *patch):
            if _index(merged, item, "") is None:
                merged.append(item)
        return _arranged(merged, patch, present, key)
    if not key:
        raise plain_internal("cannot merge lists without merge key for struct")
    server, given = _directed(present, patch, key)
    merged = list(server)
    for item in given:
        _check_key(item, key)
        at = _index(merged, item, key)
        if at is None:
            if len(merged) < len(present):
                present[len(merged)] = item
            merged.append(item)
        else:
            merged[at] = _merge_map(merged[at], item, schema.item)
    return _arranged(merged, given, server, key)


def _directed(present: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the directives among the items; return the list that is left, and the patch that is."""
    server = list(present)
    for item in patch:
        directive = item.get("$patch")
        if directive == "delete":
            _check_key(item, key)
            server = [one for one in server if not _is_same(one.get(key), item[key])]
            present[: len(server)] = server
        elif directive == "merge":
            raise plain_internal("merging lists cannot yet be specified in the patch")
        elif "$patch" in item and directive != "replace":
            raise _unknown_directive(directive, item)
    given = [item for item in patch if "$patch" not in item]
    return (given, []) if any(item.get("$patch") == "replace" for item in patch) else (server, given)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Refuse an element order that lacks an item of the patch, or has them in another order."""
    if not patch or not order:
        return
    if key:
        for item in patch:
            _check_map(item)
    wanted = [item for item in patch if not (isinstance(item, dict) and item.get("$patch") == "delete")]
    at = 0
    for listed in order:
        while at < len(wanted) and isinstance(wanted[at], dict) and "$patch" in wanted[at]:
            at += 1
        if at == len(wanted):
            return
        if key:
            _check_map(listed)
            _check_key(wanted[at], key)
            _check_key(listed, key)
        at += _is_same(_key_of(wanted[at], key), _key_of(listed, key))
    if at < len(wanted):
        raise plain_internal(
            f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )


def _arranged(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """Return the items with those of `order` in its order, and the others where the server's order lets them stand."""
    if key:
        for item in merged:
            _check_key(item, key)
    ours = _sorted([item for item in merged if _index(order, item, key) is not None], order, key)
    theirs = _sorted([item for item in merged if _index(order, item, key) is None], server, key)
    result: list[Any] = []
    while ours and theirs:
        left, right = _index(server, theirs[0], key), _index(server, ours[0], key)
        comes_first = left is not None and right is not None and left < right
        result.append((theirs if comes_first else ours).pop(0))
    return [*result, *ours, *theirs]


def _sorted(items: list[Any], order: list[Any], key: str) -> list[Any]:
    """Sort by insertion. An item that is not in `order` goes before all that were there, as upstream's comparison has it."""
    result: list[Any] = []
    for item in items:
        place, at = _index(order, item, key), len(result)
        while at > 0:
            before = _index(order, result[at - 1], key)
            if place is not None and before is not None and place >= before:
                break
            at -= 1
        result.insert(at, item)
    return result


def _index(items: list[Any], item: Any, key: str) -> int | None:
    wanted = _key_of(item, key)
    return next((at for at, one in enumerate(items) if _is_same(_key_of(one, key), wanted)), None)


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _is_same(left: Any, right: Any) -> bool:
    """Compare as Go does: true is not 1."""
    return type(left) is type(right) and left == right


def _check_items(*lists: list[Any]) -> type:
    """Return the one type that all items have."""
    items = [item for each in lists for item in each]
    kinds = {type(item) for item in items}
    if not kinds:
        raise plain_internal("no elements in any of the given slices")
    if isinstance(items[0], list):
        raise Invalid("lists of lists are not supported")
    if len(kinds) > 1:
        raise plain_internal(f"list element types are not identical: {go_text(lists)}")
    return kinds.pop()


def _check_list(value: Any) -> None:
    if not isinstance(value, list):
        raise plain_internal(f"expected a []interface {{}}, but received a {_go_type(value)}")


def _check_map(value: Any) -> None:
    if not isinstance(value, dict):
        raise plain_internal(f"expected a map[string]interface {{}}, but received a {_go_type(value)}")


def _check_key(item: Any, key: str) -> None:
    _check_map(item)
    if key not in item:
        raise plain_internal(f"map: {go_text(item)} does not contain declared merge key: {key}")


def _unknown_directive(directive: Any, patch: Document) -> APIStatusError:
    return plain_internal(f"unknown patch type: {_go_text(directive)} in map: {go_text(patch)}")


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
    if kind in _SCALARS:  # only what Go could convert is refused in so many words
        is_convertible = (found, kind) == ("int64", "string") or (found == "float64" and kind.startswith("int"))
        return f"cannot convert {found} to {kind}" if is_convertible else f"unrecognized type: {kind}"
    return f"cannot restore struct from: {found.partition('[')[0] or 'slice'}"


def _go_text(value: Any) -> str:
    """Return a value as Go's %s prints it where a text should be."""
    return value if isinstance(value, str) else f"%!s({_go_type(value)}={go_text(value)})"


def _go_type(value: Any) -> str:
    """Return the type Go has for a value of a JSON tree, as %s prints it."""
    return GO_TYPES.get(type(value), "%!s(<nil>)")
