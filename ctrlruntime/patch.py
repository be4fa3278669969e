"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386): apply and create.

Pure functions without I/O. Inputs are never changed. Results may share unchanged parts with them, so treat a result as read-only or copy
it. The client sends the result of `create_*`; the embedded API server uses `apply_*`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ctrlruntime.errors import PatchError

JSON: TypeAlias = Any
Operation: TypeAlias = Mapping[str, Any]


def apply_merge_patch(document: JSON, patch: JSON) -> JSON:
    """Return the document with the merge patch applied: objects are merged, null removes, other values replace.

    Nulls inside lists are handled as in the API server (evanphx/json-patch): an item stays null, and a key of an object in a list is
    removed, although RFC 7386 keeps it. A list that replaces an object stays as it was sent.
    """
    if not isinstance(document, dict):
        return _without_null_keys(patch)
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Any] = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def _without_null_keys(tree: JSON) -> JSON:
    if isinstance(tree, dict):
        return {key: _without_null_keys(value) for key, value in tree.items() if value is not None}
    if isinstance(tree, list):
        return [_without_null_keys(item) for item in tree]
    return tree


def create_merge_patch(old: JSON, new: JSON) -> JSON:
    """Return the smallest merge patch that changes `old` to `new`; `{}` if they are equal.

    A merge patch cannot set a null: for an explicit null in `new`, the patch removes the field.
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    before, after = old, new
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            patch[key] = value
        elif not _equal(before[key], value):
            patch[key] = create_merge_patch(before[key], value)
    return patch


def apply_json_patch(document: JSON, operations: Sequence[Operation], *, copy_limit: int | None = None) -> JSON:
    """Return the document with the operations applied in order.

    Args:
        document: the document, which does not change.
        operations: the decoded patch.
        copy_limit: characters of JSON that `copy` operations may add in total, because each can double a document; None: no limit.

    Raises:
        PatchError: an operation is invalid, its path does not exist, a test fails, or the limit is exceeded. Then nothing is changed.

    """
    result = copy.deepcopy(document)
    copied = 0
    for operation in operations:
        if copy_limit is not None:
            copied += _size_of_copy(result, operation)
            if copied > copy_limit:
                raise PatchError(f"the copy operations add {copied} characters, but the limit is {copy_limit}")
        result = _apply(result, operation)
    return result


def create_json_patch(old: JSON, new: JSON) -> list[dict[str, Any]]:
    """Return operations that change `old` to `new`; empty if they are equal."""
    operations: list[dict[str, Any]] = []
    _difference(old, new, "", operations)
    return operations


def _apply(document: JSON, operation: Any) -> JSON:
    if not isinstance(operation, dict):  # it comes from the wire
        raise PatchError(f"a JSON patch operation must be an object, not {operation!r}")
    name = operation.get("op")
    path = operation.get("path")
    if not isinstance(path, str):
        raise PatchError(f"JSON patch operation {name!r} has no path")
    match name:
        case "add":
            return _add(document, path, copy.deepcopy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _look_up(document, path)
            return _replace(document, path, copy.deepcopy(_value(operation)))
        case "move":
            source = _source(operation)
            if path != source and path.startswith(source + "/"):
                raise PatchError(f"cannot move {source} into itself ({path})")
            value = _look_up(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, copy.deepcopy(_look_up(document, _source(operation))))
        case "test":
            if not _equal(_look_up(document, path, missing_is_null=True), operation.get("value")):
                raise PatchError(f"testing value {path} failed")
            return document
        case _:
            raise PatchError(f"unknown JSON patch operation: {name!r}")


def _size_of_copy(document: JSON, operation: Any) -> int:
    """Return the characters of JSON that a copy adds; 0 for every other operation."""
    if not isinstance(operation, dict) or operation.get("op") != "copy":
        return 0
    return len(json.dumps(_look_up(document, _source(operation))))


def _value(operation: Operation) -> JSON:
    if "value" not in operation:
        raise PatchError(f"JSON patch operation {operation.get('op')!r} on {operation.get('path')!r} has no value")
    return operation["value"]


def _source(operation: Operation) -> str:
    source = operation.get("from")
    if not isinstance(source, str):
        raise PatchError(f"JSON patch operation {operation.get('op')!r} has no from")
    return source


def _tokens(path: str) -> list[str]:
    if not path:
        return []
    if not path.startswith("/"):
        raise PatchError(f"JSON patch path {path!r} must start with '/'")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _index(token: str, length: int, path: str) -> int:
    digits = token.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (digits != "0" and digits.startswith("0")):
        raise PatchError(f"{token!r} is not a list index in {path}")
    index = int(token)
    if index < 0:  # evanphx/json-patch, which the API server uses, counts negative indices from the end
        index += length
    if not 0 <= index < length:
        raise PatchError(f"index {token} is outside of the list at {path}")
    return index


def _step(node: JSON, token: str, path: str) -> JSON:
    if isinstance(node, dict):
        entries = node
        if token not in entries:
            raise PatchError(f"path {path} does not exist")
        return entries[token]
    if isinstance(node, list):
        items = node
        return items[_index(token, len(items), path)]
    raise PatchError(f"path {path} does not exist")


def _look_up(document: JSON, path: str, *, missing_is_null: bool = False) -> JSON:
    tokens = _tokens(path)
    node = document
    for position, token in enumerate(tokens):
        if missing_is_null and position == len(tokens) - 1 and isinstance(node, dict):
            return node.get(token)
        node = _step(node, token, path)
    return node


def _parent(document: JSON, path: str) -> tuple[JSON, str]:
    tokens = _tokens(path)
    node = document
    for token in tokens[:-1]:
        node = _step(node, token, path)
    if not isinstance(node, dict | list):
        raise PatchError(f"path {path} does not exist")
    return node, tokens[-1]


def _add(document: JSON, path: str, value: JSON) -> JSON:
    if not path:
        return value
    parent, token = _parent(document, path)
    if isinstance(parent, list):
        items = parent
        items.insert(len(items) if token == "-" else _index(token, len(items) + 1, path), value)  # noqa: S105 - a list index
    else:
        parent[token] = value
    return document


def _replace(document: JSON, path: str, value: JSON) -> JSON:
    if not path:
        return value
    parent, token = _parent(document, path)
    if isinstance(parent, list):
        items = parent
        items[_index(token, len(items), path)] = value
    else:
        parent[token] = value
    return document


def _remove(document: JSON, path: str) -> JSON:
    if not path:
        raise PatchError("a JSON patch cannot remove the whole document")
    parent, token = _parent(document, path)
    _step(parent, token, path)
    if isinstance(parent, list):
        items = parent
        del items[_index(token, len(items), path)]
    else:
        del parent[token]
    return document


def _difference(old: JSON, new: JSON, path: str, operations: list[dict[str, Any]]) -> None:
    if _equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        _object_difference(old, new, path, operations)
    elif isinstance(old, list) and isinstance(new, list):
        _list_difference(old, new, path, operations)
    else:
        operations.append({"op": "replace", "path": path, "value": new})


def _object_difference(old: dict[str, Any], new: dict[str, Any], path: str, operations: list[dict[str, Any]]) -> None:
    operations.extend({"op": "remove", "path": f"{path}/{_escape(key)}"} for key in old if key not in new)
    for key, value in new.items():
        if key in old:
            _difference(old[key], value, f"{path}/{_escape(key)}", operations)
        else:
            operations.append({"op": "add", "path": f"{path}/{_escape(key)}", "value": value})


def _list_difference(old: list[Any], new: list[Any], path: str, operations: list[dict[str, Any]]) -> None:
    # Equal ends are left alone; the middle is replaced item by item, so one inserted item is one operation.
    head = 0
    while head < min(len(old), len(new)) and _equal(old[head], new[head]):
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and _equal(old[-1 - tail], new[-1 - tail]):
        tail += 1
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    common = min(len(removed), len(added))
    for offset in range(common):
        _difference(removed[offset], added[offset], f"{path}/{head + offset}", operations)
    operations.extend({"op": "remove", "path": f"{path}/{head + common}"} for _ in removed[common:])
    start = head + common
    operations.extend(
        {"op": "add", "path": f"{path}/{start + offset}", "value": value} for offset, value in enumerate(added[common:])
    )


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _equal(left: JSON, right: JSON) -> bool:
    """Compare as JSON does: true is not 1, and 1.0 is 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        before, after = left, right
        return before.keys() == after.keys() and all(_equal(value, after[key]) for key, value in before.items())
    if isinstance(left, list) and isinstance(right, list):
        first, second = left, right
        return len(first) == len(second) and all(map(_equal, first, second))
    return bool(left == right)
