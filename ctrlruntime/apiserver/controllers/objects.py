"""The parts of an object that controllers ask for: its key, its owner, its labels, its conditions, its pods' state."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.controllers.keyed import Key
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

Now: TypeAlias = Callable[[], datetime]
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
FINISHED: Final = frozenset({"Succeeded", "Failed"})


def utc_now() -> datetime:
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def metadata(obj: Document) -> Document:
    found: Document = obj["metadata"]
    return found


def key_of(obj: Document) -> tuple[str, str]:
    return (str(metadata(obj).get("namespace", "")), str(metadata(obj)["name"]))


def own_key(change: Change) -> Iterable[Key]:
    yield key_of(change.object)


def is_deleting(obj: Document) -> bool:
    return bool(metadata(obj).get("deletionTimestamp"))


def controller_of(obj: Document) -> Document | None:
    return next((ref for ref in metadata(obj).get("ownerReferences") or () if ref.get("controller")), None)


def owner_keys(kind: str) -> Callable[[Change], Iterable[Key]]:
    """Map a change to the key of its controlling owner of `kind`, before and after the change."""

    def keys(change: Change) -> Iterable[Key]:
        for obj in (change.object, change.old):
            owner = controller_of(obj) if obj is not None else None
            if obj is not None and owner is not None and owner.get("kind") == kind:
                yield (str(metadata(obj).get("namespace", "")), str(owner["name"]))

    return keys


def matching_keys(api: API, group: str, resource: str) -> Callable[[Change], Iterable[Key]]:
    """Map a change of an object without a controller to the objects of a kind whose selector matches it."""

    def keys(change: Change) -> Iterable[Key]:
        obj = change.object
        if controller_of(obj) is None and change.type != "DELETED":
            for candidate in api.list(group, resource, str(metadata(obj).get("namespace", ""))):
                if selects(_selector_of(candidate), labels_of(obj)):
                    yield key_of(candidate)

    return keys


def owner_reference(owner: Document) -> Document:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata(owner)["name"],
        "uid": metadata(owner)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels_of(obj: Document) -> Mapping[str, str]:
    return metadata(obj).get("labels") or {}


def _selector_of(owner: Document) -> Document | None:
    """Return an owner's selector; a ReplicationController's is a plain map of labels."""
    found: Document | None = (owner.get("spec") or {}).get("selector")
    return {"matchLabels": found} if found and owner.get("kind") == "ReplicationController" else found


def selects(selector: Document | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector picks these labels; an empty or absent one picks nothing here."""
    if not selector or not (selector.get("matchLabels") or selector.get("matchExpressions")):
        return False
    try:
        return from_label_selector(selector).matches(labels)
    except ValueError:  # a selector nobody can read picks nothing
        return False


class Relabelled:
    """Remembers the owners whose objects changed labels: only these must look at objects their selector does not
    pick.
    """

    def __init__(self, kind: str) -> None:
        self._owner_keys = owner_keys(kind)
        self._keys: set[Key] = set()

    def __call__(self, change: Change) -> list[Key]:
        keys = list(self._owner_keys(change))
        if change.old is not None and labels_of(change.old) != labels_of(change.object):
            self._keys.update(keys)
        return keys

    def take(self, key: Key) -> bool:
        was_there = key in self._keys
        self._keys.discard(key)
        return was_there


async def claim(api: API, owner: Document, group: str, resource: str, *, relabelled: bool = False) -> list[Document]:
    """Return the objects of a kind that `owner` controls: matching orphans are adopted, those that no longer match
    released.

    Those that do not match are looked for only when `relabelled`: it costs a look at every object of the namespace.
    """
    selector, is_leaving = _selector_of(owner), is_deleting(owner)
    wanted = None if relabelled else (selector or {}).get("matchLabels")
    claimed: list[Document] = []
    for obj in api.list(group, resource, str(metadata(owner).get("namespace", "")), labels=wanted):
        ref, is_match = controller_of(obj), selects(selector, labels_of(obj))
        if ref is not None and ref.get("uid") == metadata(owner)["uid"]:
            if is_match or is_leaving:
                claimed.append(obj)
            else:
                refs = [r for r in metadata(obj)["ownerReferences"] if r.get("uid") != ref["uid"]]
                await _set_owners(api, group, resource, obj, refs)
        elif ref is None and is_match and not is_leaving and not is_deleting(obj):
            refs = [*(metadata(obj).get("ownerReferences") or ()), owner_reference(owner)]
            claimed.append(await _set_owners(api, group, resource, obj, refs))
    return claimed


async def _set_owners(api: API, group: str, resource: str, obj: Document, refs: list[Document]) -> Document:
    return await patch_unchanged(api, group, resource, obj, {"metadata": {"ownerReferences": refs or None}})


async def patch_unchanged(api: API, group: str, resource: str, obj: Document, patch: Document) -> Document:
    """Patch the object if it is still what it was. Raises: Conflict, NotFound."""
    guard = {"uid": metadata(obj)["uid"], "resourceVersion": metadata(obj)["resourceVersion"]}
    patch = {**patch, "metadata": {**patch.get("metadata", {}), **guard}}
    return await api.merge_patch(group, resource, *key_of(obj), patch)


async def write_status(api: API, group: str, resource: str, obj: Document, status: Document) -> Document:
    """Write the status unless it is there already; zeros that Go would omit must be left out by the caller. Raises:
    Conflict.
    """
    if (obj.get("status") or {}) == status:
        return obj
    changed = {**copy.deepcopy(obj), "status": copy.deepcopy(status)}
    return await api.update(group, resource, changed, subresource="status")


def condition(obj: Document, kind: str) -> Document | None:
    return next((c for c in (obj.get("status") or {}).get("conditions") or () if c.get("type") == kind), None)


def is_true(obj: Document, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def is_active(pod: Document) -> bool:
    return not is_deleting(pod) and (pod.get("status") or {}).get("phase") not in FINISHED


def seconds_until_available(pod: Document, min_ready_seconds: int, now: datetime) -> float | None:
    """Return 0 for a pod that is available, the seconds a ready one still has to stay ready, None for one that is not
    ready.
    """
    ready = condition(pod, "Ready")
    if ready is None or ready.get("status") != "True":
        return None
    if not min_ready_seconds:
        return 0.0
    since = parse_time(ready.get("lastTransitionTime")) or now
    return max(0.0, min_ready_seconds - (now - since).total_seconds())


def parse_time(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if isinstance(text, str) and text else None


def safe_hash(value: Any) -> str:
    """Return ten letters and digits for a JSON value, of the alphabet that cannot form words."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    return "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(10))


def pod_from(template: Document, owner: Document, **names: str) -> Document:
    """Return a new Pod of a template, controlled by `owner`; `names` is its name or generateName."""
    meta = template.get("metadata") or {}
    kept = {name: copy.deepcopy(meta[name]) for name in ("labels", "annotations", "finalizers") if meta.get(name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**names, **kept, "ownerReferences": [owner_reference(owner)]},
        "spec": copy.deepcopy(template.get("spec") or {}),
    }
