"""Patches: changes of an object, and their formats.

Use `merge_from(base)` in most cases: copy the object, change it, send the difference. Add `optimistic_lock=True` if no other client may
have changed the object in between. Server-side apply is a separate method: `client.apply`.
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
    """A change of an object. `content_type` is the media type of `data`."""

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
    """Return a JSON merge patch from `base` to the patched object.

    `base` is read at once, so you may change the same object afterwards. Lists are replaced completely (RFC 7386). With `optimistic_lock`
    the patch has the base's resourceVersion, and fails with Conflict if the object changed since.
    """
    return _MergeFrom(base, optimistic_lock=optimistic_lock)


def merge_patch(change: Mapping[str, Any]) -> Patch:
    """Return a JSON merge patch (RFC 7386) from a JSON document. None deletes a field."""
    return _Fixed(MERGE, msgspec.json.encode(change))


def json_patch(operations: Sequence[Mapping[str, Any]]) -> Patch:
    """Return a JSON patch (RFC 6902).

    An operation looks like `[{"op": "replace", "path": "/spec/size", "value": 3}]`.
    """
    return _Fixed(JSON_PATCH, msgspec.json.encode(list(operations)))


def strategic_merge_patch(change: Mapping[str, Any]) -> Patch:
    """Return a strategic merge patch.

    It merges lists by the keys that Kubernetes defines. Only built-in kinds support it.
    """
    return _Fixed(STRATEGIC, msgspec.json.encode(change))
