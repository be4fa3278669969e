"""Patches: what to change of an object, and how the server should read it.

`merge_from(base)` is the everyday one: copy, change, send the difference. For a change to a few fields that nobody else may have touched in
between add `optimistic_lock=True`. Server-side apply is not a patch here but a verb: `client.apply`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ctrlruntime.api.model import Model, model_like
from ctrlruntime.errors import PatchError
from ctrlruntime.patch import create_merge_patch

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Patch(Protocol):
    """A change to an object. `content_type` says how the server reads what `data` returns."""

    @property
    def content_type(self) -> str: ...

    def data(self, obj: Model) -> bytes:
        """Return the body of the request that patches `obj`. Raises: PatchError."""
        ...


class _MergeFrom:
    content_type = MERGE

    def __init__(self, base: Model, *, optimistic_lock: bool) -> None:
        self._base = base.to_dict()
        self._optimistic_lock = optimistic_lock

    def data(self, obj: Model) -> bytes:
        patch: dict[str, Any] = create_merge_patch(self._base, model_like(obj, self._base))
        if self._optimistic_lock:
            version = self._base.get("metadata", {}).get("resourceVersion")
            if not version:
                raise PatchError(
                    "cannot patch with an optimistic lock: the base has no resourceVersion. Read the object before you change it"
                )
            patch.setdefault("metadata", {})["resourceVersion"] = version
        return msgspec.json.encode(patch)


class _Fixed:
    def __init__(self, content_type: str, body: bytes) -> None:
        self._content_type = content_type
        self._body = body

    @property
    def content_type(self) -> str:
        return self._content_type

    def data(self, obj: Model) -> bytes:
        return self._body


def merge_from(base: Model, *, optimistic_lock: bool = False) -> Patch:
    """Return the JSON merge patch from `base` as it is now to whatever object is patched with it.

    `base` is read at once, so it may be the very object that is changed next. Lists are replaced whole (RFC 7386). With `optimistic_lock`
    the patch carries the base's resourceVersion and fails with Conflict when the object has changed since.
    """
    return _MergeFrom(base, optimistic_lock=optimistic_lock)


def merge_patch(change: Mapping[str, Any]) -> Patch:
    """Return a JSON merge patch (RFC 7386) given as a tree in wire form; None deletes a field."""
    return _Fixed(MERGE, msgspec.json.encode(change))


def json_patch(operations: Sequence[Mapping[str, Any]]) -> Patch:
    """Return a JSON patch (RFC 6902), for example `[{"op": "replace", "path": "/spec/size", "value": 3}]`."""
    return _Fixed(JSON_PATCH, msgspec.json.encode(list(operations)))


def strategic_merge_patch(change: Mapping[str, Any]) -> Patch:
    """Return a strategic merge patch: lists merge by the keys Kubernetes declares. Built-in kinds only."""
    return _Fixed(STRATEGIC, msgspec.json.encode(change))
