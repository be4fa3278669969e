"""Garbage collection by owner references: background, foreground and orphan.

Every object is known by its uid and its owners' uids, learned from one watch over all resources. Whether an owner is
alive is asked of the store, not of that memory: an owner of another uid, or of another namespace, is not an owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, Literal, TypeAlias

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key
from ctrlruntime.apiserver.controllers.objects import Now, is_deleting, metadata
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import NotFound
from ctrlruntime.schema.trees import Document

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})


class _Owner(Enum):
    SOLID = "alive"
    WAITING = "in foreground deletion"
    ABSENT = "gone"
    UNKNOWN = "of a kind that cannot be resolved"


_Refs: TypeAlias = dict[_Owner, list[Document]]


class GarbageCollector:
    name = "garbage-collector"

    def __init__(self, now: Now) -> None:
        self._events = Recorder("garbage-collector-controller", now)
        self._key_of_uid: dict[str, Key] = {}
        self._owners: dict[Key, tuple[str, ...]] = {}
        self._dependents: defaultdict[str, dict[Key, None]] = defaultdict(dict)
        self._plurals: dict[tuple[str, str], str] = {}
        self._namespaced: set[tuple[str, str]] = set()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [self._follow(api)]

    async def _follow(self, api: API) -> AsyncIterator[Key]:
        async for group, resource, change in api.watch_all():
            if (group, resource) not in _IGNORED:
                for key in self._learn(group, resource, change):
                    yield key

    def _learn(self, group: str, resource: str, change: Change) -> list[Key]:
        """Remember the object and return the keys that this change may concern."""
        meta = metadata(change.object)
        key: Key = (group, resource, str(meta.get("namespace", "")), str(meta["name"]))
        uid = str(meta["uid"])
        owners = tuple(str(ref.get("uid", "")) for ref in meta.get("ownerReferences") or ())
        self._plurals[group, str(change.object.get("kind", ""))] = resource
        if key[2]:
            self._namespaced.add((group, resource))
        before = self._owners.pop(key, ())
        for owner in before:
            self._dependents[owner].pop(key, None)
            if not self._dependents[owner]:
                del self._dependents[owner]
        if change.type == "DELETED":
            self._key_of_uid.pop(uid, None)
            # Its dependents may be orphaned; its owners may have waited for it.
            return [*self._dependents.pop(uid, {}), *self._known({*before, *owners})]
        self._key_of_uid[uid] = key
        if owners:
            self._owners[key] = owners
            for owner in owners:
                self._dependents[owner][key] = None
        # One that no longer blocks its owner's foreground deletion lets that owner go on.
        is_changed = change.old is not None and metadata(change.old).get("ownerReferences") != meta.get(
            "ownerReferences"
        )
        waiting = self._known({*before, *owners}) if is_changed else []
        return [*([key] if owners or is_deleting(change.object) else []), *waiting]

    def _known(self, uids: Iterable[str]) -> list[Key]:
        return [self._key_of_uid[uid] for uid in uids if uid in self._key_of_uid]

    async def reconcile(self, api: API, key: Key) -> float | None:
        obj = api.get(*key)
        if obj is None:
            return None
        finalizers = metadata(obj).get("finalizers") or ()
        try:
            if is_deleting(obj) and ORPHAN in finalizers:
                await self._orphan_dependents(api, key, obj)
            elif is_deleting(obj) and FOREGROUND in finalizers:
                await self._delete_dependents(api, key, obj)
            elif metadata(obj).get("ownerReferences") and not is_deleting(obj):
                await self._collect(api, key, obj)
        except NotFound:
            return None
        return None

    async def _collect(self, api: API, key: Key, obj: Document) -> None:
        refs = self._sort_owners(api, key, obj)
        if refs[_Owner.UNKNOWN]:
            return
        gone = [*refs[_Owner.ABSENT], *refs[_Owner.WAITING]]
        if refs[_Owner.SOLID]:
            if gone:
                await self._drop_owners(api, key, obj, {str(ref["uid"]) for ref in gone})
            return
        has_dependents = bool(refs[_Owner.WAITING]) and any(self._living_dependents(api, str(metadata(obj)["uid"])))
        await self._delete(api, key, obj, "Foreground" if has_dependents else _policy(obj))

    def _sort_owners(self, api: API, key: Key, obj: Document) -> _Refs:
        refs: _Refs = {state: [] for state in _Owner}
        for ref in metadata(obj)["ownerReferences"]:
            refs[self._state_of(api, key, ref)].append(ref)
        return refs

    def _state_of(self, api: API, key: Key, ref: Document) -> _Owner:
        group = str(ref.get("apiVersion", "")).rpartition("/")[0]
        resource = self._resource_of(api, group, str(ref.get("kind", "")))
        namespace = key[2]
        if resource is None or (not namespace and (group, resource) in self._namespaced):
            # As upstream: a kind that is not served, or a namespaced owner of a cluster-scoped object, is left alone.
            return _Owner.UNKNOWN
        for scope in dict.fromkeys((namespace, "")):
            owner = api.get(group, resource, scope, str(ref.get("name", "")))
            if owner is not None and metadata(owner)["uid"] == ref.get("uid"):
                is_waiting = is_deleting(owner) and FOREGROUND in (metadata(owner).get("finalizers") or ())
                return _Owner.WAITING if is_waiting else _Owner.SOLID
        return _Owner.ABSENT

    def _resource_of(self, api: API, group: str, kind: str) -> str | None:
        if (group, kind) in self._plurals:
            return self._plurals[group, kind]
        for crd in api.list("apiextensions.k8s.io", "customresourcedefinitions"):
            if crd["spec"]["group"] == group and crd["spec"]["names"]["kind"] == kind:
                return str(crd["spec"]["names"]["plural"])
        # No object of a built-in kind was ever seen: its plural follows the English rules.
        lower = kind.lower()
        guesses = {f"{lower}s", f"{lower}es", f"{lower.removesuffix('y')}ies", lower}
        return next((plural for served, plural in api.resources() if served == group and plural in guesses), None)

    async def _delete_dependents(self, api: API, key: Key, owner: Document) -> None:
        """Foreground: the owner goes when nothing that blocks it is left."""
        uid = str(metadata(owner)["uid"])
        is_blocked = False
        for dependent_key, dependent in list(self._living_dependents(api, uid)):
            blocks = any(
                ref.get("blockOwnerDeletion") for ref in metadata(dependent)["ownerReferences"] if ref.get("uid") == uid
            )
            if not is_deleting(dependent):
                try:
                    await self._collect(api, dependent_key, dependent)
                except NotFound:
                    continue
            is_blocked = is_blocked or (blocks and self._is_owned(api, dependent_key, uid))
        if not is_blocked:
            await self._drop_finalizer(api, key, owner, FOREGROUND)

    async def _orphan_dependents(self, api: API, key: Key, owner: Document) -> None:
        uid = str(metadata(owner)["uid"])
        for dependent_key, dependent in list(self._living_dependents(api, uid)):
            try:
                await self._drop_owners(api, dependent_key, dependent, {uid})
            except NotFound:
                continue
        await self._drop_finalizer(api, key, owner, ORPHAN)

    def _living_dependents(self, api: API, uid: str) -> Iterator[tuple[Key, Document]]:
        for key in list(self._dependents.get(uid, ())):
            if self._is_owned(api, key, uid):
                obj = api.get(*key)
                if obj is not None:
                    yield key, obj

    @staticmethod
    def _is_owned(api: API, key: Key, uid: str) -> bool:
        obj = api.get(*key)
        return obj is not None and any(ref.get("uid") == uid for ref in metadata(obj).get("ownerReferences") or ())

    async def _delete(
        self, api: API, key: Key, obj: Document, policy: Literal["Background", "Foreground", "Orphan"]
    ) -> None:
        group, resource, namespace, name = key
        await api.delete(group, resource, namespace, name, uid=metadata(obj)["uid"], propagation_policy=policy)

    async def _drop_owners(self, api: API, key: Key, obj: Document, uids: set[str]) -> None:
        kept = [ref for ref in metadata(obj)["ownerReferences"] if ref.get("uid") not in uids]
        await self._patch(api, key, obj, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, api: API, key: Key, obj: Document, finalizer: str) -> None:
        kept = [name for name in metadata(obj)["finalizers"] if name != finalizer]
        await self._patch(api, key, obj, {"finalizers": kept or None})

    @staticmethod
    async def _patch(api: API, key: Key, obj: Document, change: Document) -> None:
        guard = {"uid": metadata(obj)["uid"], "resourceVersion": metadata(obj)["resourceVersion"]}
        group, resource, namespace, name = key
        await api.merge_patch(group, resource, namespace, name, {"metadata": {**guard, **change}})


def _policy(obj: Document) -> Literal["Background", "Foreground", "Orphan"]:
    """An object that carries a deletion finalizer is deleted in that way."""
    finalizers = metadata(obj).get("finalizers") or ()
    return "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
