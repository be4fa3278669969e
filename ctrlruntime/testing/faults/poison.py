"""Changes objects on their way: in watch frames, lists and single objects. What is not JSON passes as it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

from ctrlruntime.testing.faults.plan import Poison

__all__ = ["poisoned_answer", "poisoned_frame"]


def poisoned_frame(frame: bytes, poison: Poison) -> bytes:
    """Return the frame with its object changed; empty when it is left out."""
    tree = _tree(frame)
    if tree is None or tree.get("type") not in {"ADDED", "MODIFIED", "DELETED"}:
        return frame
    changed = _changed(cast("dict[str, Any]", tree["object"]), poison)
    if changed is None:
        return b""
    return b'{"type":%b,"object":%b}\n' % (json.dumps(tree["type"]).encode(), changed)


def poisoned_answer(body: bytes, poison: Poison) -> bytes:
    """Return an answer with its object, or the items of its list, changed."""
    tree = _tree(body)
    if tree is None or tree.get("kind") == "Status":
        return body
    items = tree.pop("items", None)
    if not isinstance(items, list):
        changed = _changed(tree, poison)
        return body if changed is None else changed
    changes: Iterable[bytes | None] = (_changed(item, poison) for item in cast("list[dict[str, Any]]", items))
    return json.dumps(tree).encode()[:-1] + b',"items":[' + b",".join(c for c in changes if c is not None) + b"]}"


def _changed(item: dict[str, Any], poison: Poison) -> bytes | None:
    before = json.dumps(item)
    try:
        after = poison.change(item)
    except Exception as error:  # noqa: BLE001 - it is the test's function, and is raised where the block ends
        poison.failure = poison.failure or error
        return before.encode()
    encoded = after if isinstance(after, bytes) else None if after is None else json.dumps(after).encode()
    poison.hits += encoded != before.encode()
    return encoded


def _tree(data: bytes) -> dict[str, Any] | None:
    try:
        tree = json.loads(data)
    except ValueError:
        return None
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else None
