"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386): apply and create.

Pure functions without I/O. Inputs are never changed. Results may share unchanged parts with them, so treat a result as read-only or copy
it. The client sends the result of `create_*`. `apply_*` do what kube-apiserver does (evanphx/json-patch), with its messages; the embedded
API server uses them.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from ctrlruntime.errors import PatchError

JSON: TypeAlias = Any
Operation: TypeAlias = Mapping[str, Any]
_Container: TypeAlias = "dict[str, Any] | list[Any]"
_MISSING = "missing value"


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
        elif not equal(before[key], value):
            patch[key] = create_merge_patch(before[key], value)
    return patch


class FailedTestError(PatchError):
    """A `test` operation that found another value."""


def apply_json_patch(document: JSON, operations: Sequence[Operation], *, copy_limit: int | None = None) -> JSON:
    """Return the document with the operations applied in order, as the API server applies them.

    It is laxer than RFC 6902: a replace adds a missing key, a missing value is a null, a copy of nothing is a null, and negative indexes
    count from the end. Numbers are compared as they are written: 1.0 is not 1.

    Args:
        document: the document, which does not change.
        operations: the decoded patch.
        copy_limit: bytes of JSON that `copy` operations may add in total, because each can double a document; None: no limit.

    Raises:
        FailedTestError: a `test` operation found another value.
        PatchError: an operation is malformed or does not apply, or the limit is exceeded.

    """
    result, copied = _copied(document), 0
    for operation in operations:
        name = operation.get("op") if isinstance(operation, dict) else operation
        run = _OPERATIONS.get(name) if isinstance(operation, dict) and isinstance(name, str) else None
        if run is None:
            raise PatchError(f"Unexpected kind: {name if isinstance(name, str) else 'unknown'}")
        if copy_limit is not None and name == "copy":
            text = json.dumps(_source_value(result, operation), ensure_ascii=False, separators=(",", ":"))
            copied += len(text.encode("utf-8", "surrogatepass"))
            if copied > copy_limit:
                size = f"the accumulated size increase of copy is {copied}"
                raise PatchError(f"Unable to complete the copy, {size}, exceeding the limit {copy_limit}")
        result = run(result, operation)
    return result


def create_json_patch(old: JSON, new: JSON) -> list[dict[str, Any]]:
    """Return operations that change `old` to `new`; empty if they are equal."""
    operations: list[dict[str, Any]] = []
    _difference(old, new, "", operations)
    return operations


def _add(document: Any, operation: Operation) -> Any:
    path = _path(operation, "add", "path")
    container, key = _find(document, path)
    if container is None:
        raise PatchError(f'add operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _insert(container, key, _copied(operation.get("value")), f"error in add for path: '{path}'")
    return document


def _remove(document: Any, operation: Operation) -> Any:
    path = _path(operation, "remove", "path")
    container, key = _find(document, path)
    if container is None:
        raise PatchError(f'remove operation does not apply: doc is missing path: "{path}": {_MISSING}')
    _take(container, key, f"error in remove for path: '{path}'")
    return document


def _replace(document: Any, operation: Operation) -> Any:
    path = _path(operation, "replace", "path")
    if not path:
        whole = operation.get("value")
        if not isinstance(whole, dict | list):
            raise PatchError("replace operation value must be object or array")
        return _copied(whole)
    container, key = _find(document, path)
    if container is None:
        raise PatchError(f"replace operation does not apply: doc is missing path: {path}: {_MISSING}")
    if isinstance(container, dict):
        container[key] = _copied(operation.get("value"))
        return document
    index = _index(container, key)
    if index is None:
        raise PatchError(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}")
    container[index] = _copied(operation.get("value"))
    return document


def _move(document: Any, operation: Operation) -> Any:
    source, path = _path(operation, "move", "from"), _path(operation, "move", "path")
    container, key = _find(document, source)
    if container is None:
        raise PatchError(f"move operation does not apply: doc is missing from path: {source}: {_MISSING}")
    value = _take(container, key, f"error in move for path: '{key}'")
    target, key = _find(document, path)
    if target is None:
        raise PatchError(f"move operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(target, key, value, f"error in move for path: '{path}'")
    return document


def _source_value(document: Any, operation: Operation) -> Any:
    source = _path(operation, "copy", "from")
    container, key = _find(document, source)
    if container is None:
        raise PatchError(f"copy operation does not apply: doc is missing from path: {source}: {_MISSING}")
    return _get(container, key, f"error in copy for from: '{source}'")


def _copy(document: Any, operation: Operation) -> Any:
    value, path = _source_value(document, operation), _path(operation, "copy", "path")
    target, key = _find(document, path)
    if target is None:
        raise PatchError(f"copy operation does not apply: doc is missing destination path: {path}: {_MISSING}")
    _insert(target, key, _copied(value), f"error in copy for path: '{path}'")
    return document


def _test(document: Any, operation: Operation) -> Any:
    path = _path(operation, "test", "path")
    if path:
        container, key = _find(document, path)
        if container is None:
            raise PatchError(f"test operation does not apply: is missing path: {path}: {_MISSING}")
        value = _get(container, key, f"error in test for path: '{path}'")
    else:
        value = document
    if not _same(value, operation.get("value")):
        raise FailedTestError(f"testing value {path} failed: test failed")
    return document


_OPERATIONS: Mapping[str, Callable[[Any, Operation], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _path(operation: Operation, name: str, field: str) -> str:
    path = operation.get(field)
    if not isinstance(path, str):
        raise PatchError(f"{name} operation failed to decode {field}: {_MISSING}")
    return path


def _find(document: Any, path: str) -> tuple[_Container | None, str]:
    """Return the object or list that holds what the path names, and the last key; None when the way there is missing."""
    _, *parts = path.split("/")  # what stands before the first slash is not looked at
    if not parts:
        return None, ""
    node = document
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    for key in way:
        if isinstance(node, dict | list):
            node = _item(node, key)
    return (node, last) if isinstance(node, dict | list) else (None, last)


def item_at(container: JSON, part: str) -> JSON:
    """Return what a part of a JSON pointer names in an object or list; None if there is nothing."""
    return _item(container, part.replace("~1", "/").replace("~0", "~")) if isinstance(container, dict | list) else None


def _item(container: _Container, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    return None if index is None else container[index]


def _index(items: list[Any], key: str) -> int | None:
    return _place(key, len(items))


_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INDEX = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
"""A number that 64 bits may hold: Python refuses to read one of thousands of digits."""


def _place(key: str, size: int) -> int | None:
    """Return the place that an index names among so many; a negative one counts from the end."""
    match = _INDEX.fullmatch(key)
    if match is None:
        return None
    index = int(match[1] + match[2])
    if index < 0:
        index += size
    return index if 0 <= index < size else None


def _get(container: _Container, key: str, prefix: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    index = _index(container, key)
    if index is None:
        raise PatchError(f"{prefix}: {_bad_index(key)}")
    return container[index]


def _take(container: _Container, key: str, prefix: str) -> Any:
    if isinstance(container, dict):
        if key not in container:
            raise PatchError(f"{prefix}: Unable to remove nonexistent key: {key}: {_MISSING}")
        return container.pop(key)
    index = _index(container, key)
    if index is None:
        raise PatchError(f"{prefix}: {_bad_index(key)}")
    return container.pop(index)


def _insert(container: _Container, key: str, value: Any, prefix: str) -> None:
    if isinstance(container, dict):
        container[key] = value
        return
    if key == "-":
        container.append(value)
        return
    index = _place(key, len(container) + 1)  # -1 is after the last
    if index is None:
        raise PatchError(f"{prefix}: {_bad_index(key)}")
    container.insert(index, value)


def _bad_index(key: str) -> str:
    if not _INTEGER.fullmatch(key):
        return f'strconv.Atoi: parsing "{key}": invalid syntax'
    return f"Unable to access invalid index: {key}: invalid index referenced"


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _difference(old: JSON, new: JSON, path: str, operations: list[dict[str, Any]]) -> None:
    if equal(old, new):
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
    while head < min(len(old), len(new)) and equal(old[head], new[head]):
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and equal(old[-1 - tail], new[-1 - tail]):
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


def equal(left: JSON, right: JSON) -> bool:
    """Return whether two documents are equal as JSON: true is not 1, and 1.0 is 1."""
    if left is right:
        return True
    if isinstance(left, (dict, list)) and isinstance(right, (dict, list)):
        # Python compares and encodes trees much faster than a function can look at each part. For Python true is 1, but not in JSON.
        if left != right:
            return False
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # a number of more than 64 bits
            if msgspec.json.encode(left) == msgspec.json.encode(right):
                return True
    return _equal_parts(left, right)


def _equal_parts(left: JSON, right: JSON) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        before, after = left, right
        return before.keys() == after.keys() and all(_equal_parts(value, after[key]) for key, value in before.items())
    if isinstance(left, list) and isinstance(right, list):
        first, second = left, right
        return len(first) == len(second) and all(map(_equal_parts, first, second))
    return bool(left == right)


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON is written: true is not 1, and 1.0 is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)
