"""JSON trees: copied, compared and written as the API server does."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, TypeAlias

import msgspec

Document: TypeAlias = dict[str, Any]
"""A JSON object."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_WITH_EXPONENT = 1e21
"""From here on Go writes a float with an exponent."""
_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_sorting_encoder = msgspec.json.Encoder(order="sorted")


def encode(document: Any) -> bytes:
    return _encoder.encode(document)


def encode_sorted(document: Any) -> bytes:
    """Return the JSON with sorted keys, as kube-apiserver writes custom resources."""
    return _sorting_encoder.encode(document)


def is_same(value: Any, other: Any) -> bool:
    """Tell whether two values are the same for Go: 1 is neither 1.0 nor true there, which Python calls equal."""
    return value == other and encode_sorted(value) == encode_sorted(other)


def settle_numbers(tree: Any) -> None:
    """Make the numbers of a tree, in place, what they are after Go has written them as JSON and read them again.

    A float without a fraction is written as digits below 1e21, and digits beyond int64 are read as a float (encoding/json and
    sigs.k8s.io/json).
    """
    for key, value in tree.items() if type(tree) is dict else enumerate(tree):
        kind = type(value)
        if kind is dict or kind is list:
            settle_numbers(value)
        elif kind is float:
            if value.is_integer():
                tree[key] = _whole(value)
        elif kind is int and not _SMALLEST <= value <= _LARGEST:
            tree[key] = _whole(float(value))


def settled(value: Any) -> Any:
    """Return a value with its numbers settled; a tree is changed in place."""
    holder = [value]
    settle_numbers(holder)
    return holder[0]


def _whole(value: float) -> float:
    # The shortest digits that mean the float, and then zeros: 2**63 is written as 9223372036854776000.
    return int(Decimal(repr(value))) if abs(value) < _WITH_EXPONENT else value


def copy_tree(document: Document) -> Document:
    """Return a copy that shares nothing (a JSON round trip is several times faster than copy.deepcopy)."""
    copied: Document = _decoder.decode(_encoder.encode(document))
    return copied


def in_key_order(tree: Any) -> Any:
    """Return the tree with the keys of all its maps in order."""
    if type(tree) is dict:
        return {key: in_key_order(tree[key]) for key in sorted(tree)}
    return [in_key_order(item) for item in tree] if type(tree) is list else tree


def json_type(value: Any) -> str:
    """Return the type of a JSON value as a schema's `type` names it; null, which no schema names, is "null"."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


__all__ = [
    "Document",
    "copy_tree",
    "encode",
    "encode_sorted",
    "in_key_order",
    "is_same",
    "json_type",
    "settle_numbers",
    "settled",
]
