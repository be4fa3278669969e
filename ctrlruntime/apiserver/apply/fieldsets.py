"""Sets of field paths, held as the JSON that managedFields writes (FieldsV1), so that reading and writing them costs nothing.

A set is a nested dict. A key is one step of a path: `f:NAME` a field, `k:{…}` the item of a list with these keys, `v:…` the item of a set,
`i:N` an index. A path is in the set when its node is empty or holds `.`; the root is never itself in a set, so an empty root is the empty
set. Sets are values: no function changes its arguments, and results may share nodes with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.schema.trees import settled

FieldSet: TypeAlias = dict[str, Any]

SELF = "."
_sorted = msgspec.json.Encoder(order="sorted")
_RANKS = {int: 0, float: 0, str: 1, bool: 2, list: 3, dict: 4, type(None): 5}


def is_member(node: FieldSet) -> bool:
    """Tell whether the path of a node (not the root) is itself in the set."""
    return not node or SELF in node


def union(a: FieldSet, b: FieldSet) -> FieldSet:
    if not a or not b:
        return a or b
    result = dict(a)
    for key, theirs in b.items():
        mine = a.get(key)
        result[key] = theirs if mine is None else _join(mine, theirs)
    return result


def _join(a: FieldSet, b: FieldSet) -> FieldSet:
    if a and b:
        return union(a, b)
    node = a or b  # the other one is a path without any below it
    return node if is_member(node) else {SELF: {}, **node}


def difference(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return the paths of `a` that are not in `b`; paths below a path of `b` stay."""
    if not a or not b:
        return a
    result: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            result[key] = node
        elif key != SELF:
            left = _subtract(node, other)
            if left is not None:
                result[key] = left
    return result


def _subtract(node: FieldSet, other: FieldSet) -> FieldSet | None:
    if not node:
        return None if is_member(other) else node
    left = difference(node, other or {SELF: {}})
    if len(left) == 1 and SELF in left:
        return {}
    return left or None


def intersection(a: FieldSet, b: FieldSet) -> FieldSet:
    result: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            continue
        shared = _share(node, other)
        if shared is not None:
            result[key] = shared
    return result


def _share(node: FieldSet, other: FieldSet) -> FieldSet | None:
    if not node or not other:
        return {} if is_member(node) and is_member(other) else None
    shared = intersection(node, other)
    if len(shared) == 1 and SELF in shared:
        return {}
    return shared or None


def cut(a: FieldSet, b: FieldSet) -> FieldSet:
    """Return `a` without the paths of `b` and everything below them."""
    result: FieldSet = {}
    for key, node in a.items():
        other = b.get(key)
        if other is None:
            result[key] = node
        elif not is_member(other):
            left = cut(node, other)
            if left or not node:
                result[key] = {} if len(left) == 1 and SELF in left else left
    return result


def ordered(fields: FieldSet) -> FieldSet:
    """Return the set with its keys in the order in which kube-apiserver writes them."""
    if not fields:
        return fields
    if len(fields) == 1:
        ((key, node),) = fields.items()
        return {key: ordered(node)} if node else fields
    if any(key[0] not in "f." for key in fields):
        return {key: ordered(fields[key]) for key in sorted(fields, key=step_order)}
    return {key: ordered(fields[key]) for key in sorted(fields)}


def step_order(key: str) -> tuple[Any, ...]:
    """Return by what steps are sorted: the path itself, fields, list items by key, set items, indexes."""
    match key[0]:
        case ".":
            return (-1,)
        case "f":
            return (0, key[2:])
        case "k":
            return (1, [(name, _value_order(value)) for name, value in sorted(decode(key[2:].encode()).items())])
        case "v":
            return (2, _value_order(decode(key[2:].encode())))
        case _:
            return (3, int(key[2:]))


def _value_order(value: Any) -> tuple[int, Any]:
    rank = _RANKS[type(value)]
    return (rank, value if rank < 3 else encode_value(value))


def encode_value(value: Any) -> str:
    """Return JSON as Go writes it: keys sorted, and three characters escaped for the sake of HTML."""
    text = _sorted.encode(settled(value)).decode()
    if "<" in text or ">" in text or "&" in text:
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return text


def shown_value(value: Any) -> str:
    """Return a key's value as messages show it."""
    return _sorted.encode(value).decode()


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Yield the paths as messages show them (`.spec.containers[name="c"].image`): at each level those that end there first."""
    steps = sorted((key for key in fields if key != SELF), key=step_order)
    shown = [(prefix + shown_step(key), fields[key]) for key in steps]
    for path, node in shown:
        if is_member(node):
            yield path
    for path, node in shown:
        if node:
            yield from paths(node, path)


def shown_step(key: str) -> str:
    text = key[2:]
    match key[0]:
        case "f":
            return f".{text}"
        case "k":
            pairs = sorted(decode(text.encode()).items())
            return f"[{','.join(f'{name}={shown_value(value)}' for name, value in pairs)}]"
        case "v":
            return f"[={shown_value(decode(text.encode()))}]"
        case _:
            return f"[{text}]"


def parse(fields: Any) -> FieldSet:
    """Return a client's FieldsV1 in canonical form. Raises: ValueError if it is invalid."""
    if not isinstance(fields, dict):
        raise ValueError("fieldsV1 must be an object")  # noqa: TRY004 - of a client's data, not of a type of ours
    result: FieldSet = {}
    for key, node in fields.items():
        if key == SELF:
            result[key] = {}
            continue
        result[_parse_step(key)] = parse(node)
    if len(result) == 1 and SELF in result:
        return {}
    return result


def _parse_step(key: str) -> str:
    head, text = key[:2], key[2:]
    match head:
        case "f:":
            return key
        case "k:":
            keys = decode(text.encode())
            if not isinstance(keys, dict):
                raise ValueError(f"{key}: not the keys of an item")  # noqa: TRY004 - as above
            return f"k:{encode_value(keys)}"
        case "v:":
            return f"v:{encode_value(decode(text.encode()))}"
        case "i:":
            return f"i:{int(text)}"
        case _:
            raise ValueError(f"{key}: not a step of a path")
