"""The rules of read-your-writes: what a cached read waits for.

A state machine without I/O.

Each write of this process has a mark, from the moment before it is sent until the cache shows its effect. A read collects the existing
marks at its start (`Marks.needed`). It is served from the cache when none of them delays it (`verdict`). Later marks do not concern it, so
that a steady writer does not delay a reader.

| state | a write enters it when |
|---|---|
| OPEN | it is about to be sent |
| STORED v | the server returned the object at version v |
| DELETED uid | the server returned that this object was deleted |
| UNKNOWN | the response is missing, a 5xx, or without a version; or another process wrote while it was the leader |
| LISTED p | a consistent list at version p, sent after the end of an unknown write, had the object at a version v or not at all |
| FAILED | the server rejected it, or it was not sent |

| state | a read waits until the cache | the mark is dropped when the cache |
|---|---|---|
| OPEN | (until the write ends) | |
| STORED v | shows v or later, is past v, or shows no object and v is outside its selectors | shows v or later, or is past v |
| DELETED uid | does not show this uid | does not show it, and is past its last known version |
| UNKNOWN | (until a list of the key was compared) | |
| LISTED p | shows v or later, or is past p; if the object is missing: shows none as old as p | shows v or later, or is past p |
| FAILED | (not at all) | (at once) |

A kind or namespace that no cache has, has only open marks, because its first list comes after the write.

"The cache is past v" means that its position, the version of the last frame or bookmark, is at least v. No state waits only for a position,
because a kind that never changes gets a bookmark only about once a minute.

A write to a whole collection has a mark for the namespace. Its response lists the deleted objects, so it becomes DELETED with a part for
each of them. A STORED mark replaces every mark of its key that had ended before it was opened, because the stored object includes the
earlier writes.

Versions are compared as integers of any length. The API guarantees this order (KEP-5504, resource versions are comparable). For a server
whose versions are not integers, a version is shown only if it is equal.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol, TypeAlias

from ctrlruntime.api.metadata import Metadata

Kind: TypeAlias = tuple[str, str]
"""Group and kind. All versions of a kind have the same objects, so they share marks."""

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""

WHOLE: Final = ""
"""Used instead of a name: all objects of a namespace."""

NOT_CACHED: Final = sys.maxsize
"""The position of a cache in a namespace that it does not have: no read waits there."""

SWEEP_AT: Final = 1024
"""The number of keys of one kind above which a write looks for marks to drop."""

MAX_KEYS: Final = 16_384
"""The number of keys of one kind with their own mark; others share one, which the next read compares."""


class View(Protocol):
    """The current objects of one kind in one informer."""

    def position(self, namespace: str) -> int:
        """Return the version seen in the namespace: 0 before the first list, -1 if it is not an integer, or `NOT_CACHED`."""
        ...

    def entry(self, namespace: str, name: str) -> Metadata | None: ...

    def entries(self, namespace: str) -> Iterable[Metadata]:
        """Return all objects of the namespace ("" = all)."""
        ...

    def covers(self, namespace: str, meta: Metadata | None) -> bool:
        """Return whether the cache includes an object with this metadata in this namespace."""
        ...

    @property
    def is_part(self) -> bool:
        """Whether it has only the objects of the shares of this process."""
        ...


class State(Enum):
    """See the table of the module."""

    OPEN = "open"
    STORED = "stored"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    LISTED = "listed"
    FAILED = "failed"


class Verdict(Enum):
    """The next step of a read."""

    READ = "read"
    """Read the cache."""
    COMPARE = "compare"
    """Compare the keys of `unknown` with the server."""
    WAIT = "wait"
    """Wait until a write ends or the cache changes."""


class Listing(NamedTuple):
    """The result of a consistent list at `position`: the version of each object."""

    position: str
    versions: Mapping[Key, str]
    part: frozenset[Key] | None = None
    """The keys that a view of a part of the kind shows; None without such a view."""

    def version(self, view: View, key: Key) -> str | None:
        """Return the version of an object that a view has to show; None: it has none."""
        is_hidden = self.part is not None and view.is_part and key not in self.part
        return None if is_hidden else self.versions.get(key)

    def expected(self, view: View, namespace: str) -> Mapping[Key, str]:
        """Return the objects of a namespace ("" = all) that a view has to show."""
        part = self.part if self.part is not None and view.is_part else None
        return {
            key: version
            for key, version in self.versions.items()
            if (not namespace or key[0] == namespace) and (part is None or key in part)
        }


class Mark:
    """One write of this process. Readers hold marks, so a dropped mark keeps its state."""

    __slots__ = (
        "_may_linger",
        "_shown_at",
        "ended",
        "key",
        "known",
        "listing",
        "meta",
        "opened",
        "opened_at",
        "parts",
        "state",
        "uid",
        "version",
    )

    def __init__(self, key: Key, opened: int = 0, opened_at: float = 0.0, known: Metadata | None = None) -> None:
        self.key = key
        self.opened = opened
        """The number of the step that opened it; `Marks` counts steps."""
        self.opened_at = opened_at
        self.known = known
        """The object in the cache when the write was opened."""
        self.ended = 0
        self.state = State.OPEN
        self.version = ""
        """STORED: the stored version. DELETED: the last known version of the object."""
        self.uid = ""
        self.meta: Metadata | None = None
        """The object as it was stored or deleted, to know whether a view has it."""
        self.listing: Listing | None = None
        self.parts: dict[Key, Mark] = {}
        """DELETED, for a collection: a mark for each object."""
        self._may_linger = False
        self._shown_at: tuple[View, int] | None = None

    @classmethod
    def of_deleted(cls, meta: Metadata) -> Mark:
        """Return the mark of one object of a deleted collection.

        It may stay terminating because of finalizers or a grace period.
        """
        mark = cls(meta.key)
        mark.state, mark.uid, mark.version = State.DELETED, meta.uid, meta.resource_version
        mark.meta, mark._may_linger = meta, True
        return mark

    def is_shown(self, view: View, key: Key | None = None) -> bool:
        """Return whether a read of `view` may be served: of `key`, of a namespace (its name is WHOLE), or of everything."""
        if self.state is State.OPEN:
            return False
        namespace, name = self.key
        if name == WHOLE and key is not None:
            namespace, name = key[0] or namespace, key[1]
        position = view.position(namespace)
        if position == NOT_CACHED:
            return True
        match self.state:
            case State.STORED:
                entry = view.entry(namespace, name)
                if position >= (number := _number(self.version)) >= 0:
                    return True
                if entry is None:
                    return not view.covers(namespace, self.meta)
                return _is_at_least(entry.resource_version, number, self.version)
            case State.DELETED if self.key[1] != WHOLE:
                return self._is_gone(view)
            case State.DELETED:
                parts = self.parts.values() if name == WHOLE else (self.parts.get((namespace, name)),)
                return all(part is None or part.is_shown(view) for part in parts)
            case State.LISTED:
                return self._is_listing_shown(view, position, namespace, name)
            case State.UNKNOWN:
                return False
            case _:
                return True

    def is_over(self, view: View) -> bool:
        """Return whether the mark delays no read of `view` from now on."""
        if self.state is State.OPEN:
            return False
        position = view.position(self.key[0])
        if position == NOT_CACHED:
            return True
        match self.state:
            case State.STORED:
                if position >= (number := _number(self.version)) >= 0:
                    return True
                entry = view.entry(*self.key)
                return entry is not None and _is_at_least(entry.resource_version, number, self.version)
            case State.DELETED if self.key[1] != WHOLE:
                return position >= _number(self.version) and self._is_gone(view)
            case State.DELETED:
                return all(part.is_over(view) for part in self.parts.values())
            case State.LISTED:
                return self._is_listing_over(view, position)
            case State.UNKNOWN:
                return False
            case _:
                return True

    def _is_gone(self, view: View) -> bool:
        entry = view.entry(*self.key)
        if entry is not None:
            return entry.uid != self.uid or (self._may_linger and entry.deletion_timestamp is not None)
        # A terminating object that the cache has not seen at all is still to come.
        namespace, _ = self.key
        is_to_come = self._may_linger and view.position(namespace) < _number(self.version)
        return not (is_to_come and view.covers(namespace, self.meta))

    def _is_listing_shown(self, view: View, position: int, namespace: str, name: str) -> bool:
        assert self.listing is not None
        listed = _number(self.listing.position)
        if position >= listed >= 0:
            return True
        if self._shown_at == (view, position):
            return True
        if name != WHOLE:
            return _is_as_listed(view.entry(namespace, name), self.listing.version(view, (namespace, name)), listed)
        expected = self.listing.expected(view, namespace)
        shown = {(meta.namespace, meta.name): meta for meta in view.entries(namespace)}
        is_shown = all(
            _is_as_listed(shown.get(key), expected.get(key), listed) for key in expected.keys() | shown.keys()
        )
        if is_shown and namespace == self.key[0]:
            # What comes and goes later moves the position, so nothing has to be looked at again until then.
            self._shown_at = (view, position)
        return is_shown

    def _is_listing_over(self, view: View, position: int) -> bool:
        assert self.listing is not None
        listed = _number(self.listing.position)
        if position >= listed >= 0:
            return True
        if listed < 0:  # there is no position to wait for
            return self.is_shown(view)
        if self.key[1] == WHOLE:
            return False
        entry = view.entry(*self.key)
        # An object that is absent could still be one that came and went before the list.
        return entry is not None and _is_as_listed(entry, self.listing.version(view, self.key), listed)


class Marks:
    """The marks of one cluster.

    `views`: the informers of a kind; a mark is dropped when it is over for each of them.
    """

    def __init__(self, views: Callable[[Kind], Sequence[View]] = lambda _kind: ()) -> None:
        self.views = views
        self._kinds: dict[Kind, dict[Key, list[Mark]]] = {}
        self._sweep_at: dict[Kind, int] = {}
        self.steps = 0
        """The number of marks opened and ended so far.

        Read it before a list is sent, for `compared`.
        """

    def has(self, group: str, kind: str) -> bool:
        """Return whether a kind has any mark."""
        return bool(self._kinds.get((group, kind)))

    def __len__(self) -> int:
        return sum(len(marks) for keys in self._kinds.values() for marks in keys.values())

    # --- writes ------------------------------------------------------------------------------------------------------

    def open(self, kind: Kind, namespace: str, name: str, at: float = 0.0) -> Mark:
        """Open the mark of a write that is about to be sent.

        `name` WHOLE: to all objects of the namespace.
        """
        self.steps += 1
        known = next((found for view in self.views(kind) if (found := view.entry(namespace, name))), None)
        mark = Mark((namespace, name), self.steps, at, known)
        self._kinds.setdefault(kind, {}).setdefault(mark.key, []).append(mark)
        return mark

    def stored(self, kind: Kind, mark: Mark, meta: Metadata) -> None:
        """The server returned the stored object."""
        if not meta.resource_version:
            self.unknown(kind, mark)
            return
        mark.version, mark.uid, mark.meta = meta.resource_version, meta.uid, meta
        self._end(kind, mark, State.STORED)

    def deleted(self, kind: Kind, mark: Mark, uid: str, version: str = "") -> None:
        """The object with this uid was deleted.

        `version`: its last version, if the response has it.
        """
        version = version or self._last_version(kind, mark, uid)
        if not uid or not version:
            # The cache may not have seen the object yet: it could still come and go.
            self.unknown(kind, mark)
            return
        mark.uid, mark.version = uid, version
        self._end(kind, mark, State.DELETED)

    def deleted_all(self, kind: Kind, mark: Mark, items: Iterable[Metadata]) -> None:
        """The server returned the objects of a deleted collection, in their last state."""
        # One that was terminating already need not change.
        mark.parts = {meta.key: Mark.of_deleted(meta) for meta in items if meta.deletion_timestamp is None}
        self._end(kind, mark, State.DELETED)

    def failed(self, kind: Kind, mark: Mark) -> None:
        """The server rejected the write, or it was not sent: nothing changed."""
        self._end(kind, mark, State.FAILED)

    def unknown(self, kind: Kind, mark: Mark) -> None:
        """The response is missing or has no version: the write may have happened."""
        self._end(kind, mark, State.UNKNOWN)

    def _last_version(self, kind: Kind, mark: Mark, uid: str) -> str:
        """Return the last version of an object that is known here."""
        shown = [mark.known, *(view.entry(*mark.key) for view in self.views(kind))]
        versions = [meta.resource_version for meta in shown if meta is not None and meta.uid == uid]
        versions += [one.version for one in self._kinds[kind][mark.key] if one.state is State.STORED and one.uid == uid]
        return max(versions, key=_number, default="")

    def _end(self, kind: Kind, mark: Mark, state: State) -> None:
        self.steps += 1
        mark.ended, mark.state = self.steps, state
        keys = self._kinds[kind]
        marks = keys[mark.key]
        views = self.views(kind)
        if state is State.STORED and len(marks) > 1:
            self._supersede(marks, mark)
        self._prune(keys, mark.key, views)
        if len(keys) >= self._sweep_at.get(kind, SWEEP_AT):
            self._sweep(kind, keys, views)

    def _supersede(self, marks: list[Mark], stored: Mark) -> None:
        for mark in list(marks):
            if not mark.ended or mark is stored:
                continue
            is_before = mark.ended < stored.opened
            if is_before and mark.state is State.UNKNOWN:
                # Readers that hold it get something to wait for.
                mark.state, mark.version, mark.meta = State.STORED, stored.version, stored.meta
            if is_before or (mark.state is State.STORED and 0 <= _number(mark.version) <= _number(stored.version)):
                marks.remove(mark)

    def _sweep(self, kind: Kind, keys: dict[Key, list[Mark]], views: Sequence[View]) -> None:
        """Drop what is over for keys that are written and never read; bound what is left."""
        for key in list(keys):
            self._prune(keys, key, views)
        if len(keys) > MAX_KEYS:
            self._merge(keys)
        self._sweep_at[kind] = max(SWEEP_AT, 2 * len(keys))

    def _prune(self, keys: dict[Key, list[Mark]], key: Key, views: Sequence[View]) -> None:
        """Drop the marks of a key that are over."""
        left = [mark for mark in keys.get(key, ()) if mark.state is State.OPEN or not all(map(mark.is_over, views))]
        if left:
            keys[key] = left
        else:
            keys.pop(key, None)

    def _merge(self, keys: dict[Key, list[Mark]]) -> None:
        """Replace all marks that have ended by one for the whole kind, which the next read compares."""
        ended = [mark for marks in keys.values() for mark in marks if mark.ended]
        for key, marks in list(keys.items()):
            if left := [mark for mark in marks if not mark.ended]:
                keys[key] = left
            else:
                del keys[key]
        merged = Mark(("", WHOLE), 0, min(mark.opened_at for mark in ended), None)
        merged.state, merged.ended = State.UNKNOWN, self.steps
        keys.setdefault(merged.key, []).append(merged)

    # --- reads -------------------------------------------------------------------------------------------------------

    def concerns(self, kind: Kind, namespace: str, name: str) -> bool:
        """Return whether a read of one key needs any mark; `needed` returns them.

        The namespace may be that of a caller who gives one for a cluster-scoped kind.
        """
        keys = self._kinds.get(kind)
        if not keys:
            return False
        return (namespace, name) in keys or ("", name) in keys or (namespace, WHOLE) in keys or ("", WHOLE) in keys

    def needed(self, kind: Kind, namespace: str, name: str | None) -> list[Mark]:
        """Return the marks for a read that starts now: of one key, or (name None) of a list; namespace "" = all."""
        keys = self._kinds.get(kind)
        if not keys:
            return []
        if name is None:
            if not namespace:
                return [mark for marks in keys.values() for mark in marks]
            return [mark for key, marks in keys.items() if not key[0] or key[0] == namespace for mark in marks]
        wanted = dict.fromkeys(((namespace, name), (namespace, WHOLE), ("", WHOLE)))
        return [mark for key in wanted for mark in keys.get(key, ())]

    def compared(self, kind: Kind, key: Key, listing: Listing, steps: int) -> None:
        """Resolve unknown writes to a key (or a namespace) with a list that was sent when `steps` were counted."""
        keys = self._kinds.get(kind, {})
        for mark in keys.get(key, ()):
            if mark.state is State.UNKNOWN and mark.ended <= steps:
                mark.state, mark.listing = State.LISTED, listing
        self._prune(keys, key, self.views(kind))

    def drop_shown(self, kind: Kind, needed: Iterable[Mark]) -> None:
        """Drop those of `needed` that are over."""
        keys = self._kinds.get(kind, {})
        views = self.views(kind)
        for key in {mark.key for mark in needed}:
            self._prune(keys, key, views)


def verdict(needed: Iterable[Mark], view: View, key: Key | None = None) -> Verdict:
    """Return the next step of a read of `key` (a namespace: its name is WHOLE) that started with the marks `needed`."""
    found = Verdict.READ
    for mark in needed:
        if mark.is_shown(view, key):
            continue
        if mark.state is State.UNKNOWN:
            return Verdict.COMPARE
        found = Verdict.WAIT
    return found


def doubt(needed: Iterable[Mark], view: View) -> None:
    """Compare what `view` has not shown for long: it may be outside the informer's field selectors, which only the server can evaluate."""
    for mark in needed:
        if mark.state in {State.STORED, State.DELETED} and not mark.is_shown(view):
            mark.state = State.UNKNOWN


def unknown(needed: Iterable[Mark], view: View) -> list[Key]:
    """Return the keys to compare."""
    return list(dict.fromkeys(mark.key for mark in needed if mark.state is State.UNKNOWN and not mark.is_shown(view)))


def _is_as_listed(entry: Metadata | None, version: str | None, listed: int) -> bool:
    """Return whether an object is shown at its listed version or later; version None: it was not in the list at `listed`."""
    if version is None:
        return entry is None or 0 <= listed < _number(entry.resource_version)
    return entry is not None and _is_at_least(entry.resource_version, _number(version), version)


def _is_at_least(shown: str, number: int, version: str) -> bool:
    return _number(shown) >= number >= 0 or shown == version


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else -1
