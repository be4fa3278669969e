"""JSON Patch as kube-apiserver applies it, to what clients send and what mutating webhooks answer.

It is laxer than RFC 6902 (a replace adds a missing key, a copy of nothing is a null, indexes may be negative), compares numbers as they
are written, and clients of webhooks see its sentences. `ctrlruntime.patch` is the RFC's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ctrlruntime.errors import PatchError
from ctrlruntime.selector import utf8_length

Operation: TypeAlias = Mapping[str, Any]
_Container: TypeAlias = "dict[str, Any] | list[Any]"
_MISSING = "missing value"


class FailedTestError(PatchError):
    """A `test` operation that found another value."""


def apply(document: Any, operations: Sequence[Operation], *, copy_limit: int | None = None) -> Any:
    """Return the document with the operations applied; it is changed on the way.

    Args:
        document: the tree that is patched.
        operations: the decoded patch.
        copy_limit: bytes of JSON that `copy` operations may add in total, since each of them can double a document; None: no limit.

    Raises:
        PatchError: an operation is malformed or does not apply, a test fails, or the limit is exceeded.

    """
    copied = 0
    for operation in operations:
        name = operation.get("op")
        run = _OPERATIONS.get(name) if isinstance(name, str) else None
        if run is None:
            raise PatchError(f"Unexpected kind: {name if isinstance(name, str) else 'unknown'}")
        if copy_limit is not None and name == "copy":
            text = json.dumps(_source_value(document, operation), ensure_ascii=False, separators=(",", ":"))
            copied += utf8_length(text)
            if copied > copy_limit:
                size = f"the accumulated size increase of copy is {copied}"
                raise PatchError(f"Unable to complete the copy, {size}, exceeding the limit {copy_limit}")
        document = run(document, operation)
    return document


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
        return _copied(operation.get("value"))
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
    head, *parts = path.split("/")
    if head or not parts:
        return None, ""
    node = document
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    for key in way:
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list):
            index = _index(node, key)
            node = None if index is None else node[index]
    return (node, last) if isinstance(node, dict | list) else (None, last)


def _index(items: list[Any], key: str) -> int | None:
    try:
        index = int(key)
    except ValueError:
        return None
    if index < 0:
        index += len(items)
    return index if 0 <= index < len(items) else None


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
    index = len(container) if key == str(len(container)) else _index(container, key)
    if index is None:
        raise PatchError(f"{prefix}: {_bad_index(key)}")
    container.insert(index, value)


def _bad_index(key: str) -> str:
    try:
        int(key)
    except ValueError:
        return f'strconv.Atoi: parsing "{key}": invalid syntax'
    return f"Unable to access invalid index: {key}: invalid index referenced"


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _same(left: Any, right: Any) -> bool:
    """Compare as JSON is written: true is not 1, and 1.0 is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)


__all__ = ["apply"]
