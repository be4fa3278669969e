"""Differences of two versions of an object, as paths: `spec.size`, `spec.containers[name=app].image`.

To decode and compare two versions takes about 20 µs for an object of 2 KB, so it is done on demand, and not for every event.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeAlias, cast

import msgspec

Path: TypeAlias = tuple[str, ...]
"""Names of members.

An item of a list is `[name=app]` if items have unique names, else `[0]`.
"""

ABSENT: Final = object()
"""Used instead of a value that is missing."""

MAX_PATHS: Final = 32
"""The maximum number of returned paths."""

_KEYS: Final = ("name", "type", "key", "uid", "ip")  # what items of lists are told apart by, in this order
# Items of a list come without their kind, those of a watch with it.
_KIND: Final = frozenset({"apiVersion", "kind"})
_BOOKKEEPING: Final = frozenset({"resourceVersion", "generation", "managedFields"})


def changed_paths(old: bytes, new: bytes, *, limit: int = MAX_PATHS) -> list[str]:
    """Return at most `limit` paths of fields that differ.

    Fields that change with every write are skipped: resourceVersion, generation, managedFields. For bytes that are not JSON the result is
    empty.
    """
    try:
        before, after = (_without_bookkeeping(msgspec.json.decode(raw)) for raw in (old, new))
        return [path_text(path) for path, _, _ in islice(differences(before, after), limit)]
    except (msgspec.DecodeError, RecursionError):
        return []  # it is told to people, and must not break what they ask about


def differences(old: Any, new: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the differences of two JSON documents, with both values, at the highest level at which one is missing or of another type.

    A list of named items in another order differs as a whole, after its items.
    """
    # Nearly all of two versions is equal, and equal trees are compared without a walk through Python.
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_members(cast("dict[str, Any]", old), cast("dict[str, Any]", new), path)
    elif isinstance(old, list) and isinstance(new, list):
        before, after = _named(old, new)
        yield from _of_members(before, after, path)
        if before.keys() == after.keys() and [*before] != [*after]:
            yield path, old, new  # the order
    else:
        yield path, old, new


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the values of a JSON document without members, including empty objects and lists; nothing for ABSENT."""
    members: dict[str, Any] = {}
    if isinstance(tree, dict):
        members = cast("dict[str, Any]", tree)
    elif isinstance(tree, list):
        members, _ = _named(tree, [])
    for segment, value in members.items():
        yield from leaves(value, (*path, segment))
    if not members and tree is not ABSENT:
        yield path, tree


def path_text(path: Path) -> str:
    """Return a path as text; a name that is not a word is in brackets."""
    text = ""
    for segment in path:
        if segment.startswith("["):
            text += segment
        elif not segment.replace("_", "").replace("-", "").isalnum():
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else segment
    return text


def _without_bookkeeping(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    kept = {name: value for name, value in cast("dict[str, Any]", tree).items() if name not in _KIND}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        members = cast("dict[str, Any]", metadata)
        kept["metadata"] = {name: value for name, value in members.items() if name not in _BOOKKEEPING}
    return kept


def _of_members(old: dict[str, Any], new: dict[str, Any], path: Path) -> Iterator[tuple[Path, Any, Any]]:
    for segment in dict.fromkeys((*old, *new)):
        one, other, inner = old.get(segment, ABSENT), new.get(segment, ABSENT), (*path, segment)
        if one is ABSENT or other is ABSENT:
            yield inner, one, other
        else:
            yield from differences(one, other, inner)


def _named(old: list[Any], new: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the items of two lists by what they are called in a path, the same way in both."""
    for key in _KEYS:
        before, after = _by(key, old), _by(key, new)
        if before is not None and after is not None:
            return before, after
    return _by_position(old), _by_position(new)


def _by(key: str, items: list[Any]) -> dict[str, Any] | None:
    """Return the items by that member, None where it does not tell them apart."""
    named: dict[str, Any] = {}
    for item in items:
        name = cast("dict[str, Any]", item).get(key) if isinstance(item, dict) else None
        segment = f"[{key}={name}]"
        if not isinstance(name, str) or segment in named:
            return None
        named[segment] = item
    return named


def _by_position(items: list[Any]) -> dict[str, Any]:
    return {f"[{position}]": item for position, item in enumerate(items)}
