"""`shardSelector`: ranges of hashes by which the API server divides lists and watches (KEP-5866, ShardedListAndWatch)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

UID_FIELD: Final = "object.metadata.uid"
NAMESPACE_FIELD: Final = "object.metadata.namespace"

BITS: Final = 64
"""The length of a hash."""

_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << BITS) - 1


def fnv64a(text: str) -> int:
    """Return the FNV-1a hash of 64 bits, as the API server does (k8s.io/apimachinery/pkg/sharding)."""
    number = _BASIS
    for byte in text.encode():
        number = (number ^ byte) * _PRIME & _MASK
    return number


def uid_selector(ranges: Iterable[tuple[int, int]]) -> str:
    """Return the selector of the objects whose uid has a hash in one of the ranges, each from its start to before its end."""
    return " || ".join(f"shardRange({UID_FIELD}, '0x{start:016x}', '0x{end:016x}')" for start, end in ranges)
