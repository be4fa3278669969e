"""Judges replicas that share objects, by the server's own order of what it stored: `audit` needs no word of the replicas and no clock of theirs.

A write is good if its process owned the slot of the object in the ring of that moment. A root is served when it and its child have its value
from the process that owns it; until then it waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from operators.history import Version
from operators.sharer import CHILD, ID, LEADER, ROOT, SEEN, TERM, VALUE, WRITER

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.ownership.leases import MEMBER_ANNOTATION, RING_ANNOTATION, _by_slot
from ctrlruntime.ownership.ring import slot_of
from ctrlruntime.ownership.shards import key_of

_text_of: Final = key_of("name", "", "ConfigMap")


def whole(root: str) -> str:
    """Return the text that decides about the slot of a root: its key."""
    return root


def by_cluster(root: str) -> str:
    """Return the same, if the processes divide clusters, and each is a namespace."""
    return f"namespaces/{root.split('/')[2]}"


def slim(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an object that is looked at here: a soak stores hundreds of thousands of versions."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "labels", "annotations") if name in metadata}
    found: dict[str, Any] = {"metadata": {**kept, "resourceVersion": metadata["resourceVersion"]}}
    if kind == "Lease":
        found["spec"] = {"holderIdentity": obj["spec"].get("holderIdentity")}
    return found


@dataclass(frozen=True)
class TakeOver:
    """A kill, and when another process had served each root of the one that was killed."""

    at: float
    served: list[tuple[float, str]]
    """Seconds since the kill, and the root, in this order."""

    @property
    def last(self) -> Wait:
        """The wait of the root that was served last."""
        seconds, root = self.served[-1]
        return Wait(root, self.at, self.at + seconds, is_move=True)


@dataclass(frozen=True)
class Wait:
    """A root that was not served for some time."""

    root: str
    since: float
    until: float
    is_move: bool
    """Whether it waited for its new owner, and not for the reconcile of a change."""

    @property
    def seconds(self) -> float:
        return self.until - self.since


@dataclass(frozen=True)
class Kill:
    """A process that ended without a word. `at`: CLOCK_MONOTONIC."""

    pod: str
    at: float


@dataclass
class Findings:
    """What the history says."""

    writes: int = 0
    moves: int = 0
    """How often a slot got another owner."""

    violations: list[str] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    pending: list[Wait] = field(default_factory=list)
    """Roots that are not served at the end, which is the last version."""

    take_overs: list[TakeOver] = field(default_factory=list)

    owners: tuple[str, ...] = ()
    """The Pods at the end, by slot; the last one leads."""


@dataclass
class _Root:
    value: str
    seen: tuple[str, str] = ("", "")
    """Who wrote it last, and what this process saw."""

    since: float | None = None
    is_move: bool = False


class Audit:
    """Takes one version after the other, in the order of the server."""

    def __init__(self, kills: Sequence[Kill] = (), *, divide: Callable[[str], str] = whole) -> None:
        self._divide = divide
        self._found = Findings()
        self._roots: dict[str, _Root] = {}
        self._children: dict[str, tuple[str, str]] = {}
        """The same of children."""

        self._pods: dict[str, str] = {}
        self._expired: set[str] = set()
        self._owners: tuple[str, ...] = ()
        """Leases, by slot."""

        self._former: list[str] = []
        """The owners of a ring that was deleted, for slots that the new ring has not given to another member: they may write until they see it."""

        self._now = 0.0
        self._terms: dict[tuple[str, str], int] = {}
        self._last: dict[str, str] = {}
        self._kills = sorted(kills, key=lambda kill: kill.at)
        self._taken: list[tuple[Kill, set[str], TakeOver]] = []

    def take(self, version: Version) -> None:
        while self._kills and self._kills[0].at <= version.seen_at:
            self._begin(self._kills.pop(0))
        self._now = version.seen_at
        if version.kind == "Lease":
            self._take_lease(version)
        else:
            self._take_object(version)

    # --- the ring ------------------------------------------------------------------------------------------------------

    def _take_lease(self, version: Version) -> None:
        name = version.object["metadata"]["name"]
        if version.type == "DELETED":
            return  # nobody else has taken what it stands for
        annotations = version.object["metadata"].get("annotations") or {}
        if name == ID:
            if text := annotations.get(RING_ANNOTATION):
                content = json.loads(text)
                if version.type == "ADDED":
                    self._former = list(self._owners)
                self._take_ring(_by_slot(content["owners"], content["slots"]), version.seen_at)
            return
        if text := annotations.get(MEMBER_ANNOTATION):
            self._pods[name] = json.loads(text).get("pod", "")
        if version.object["spec"]["holderIdentity"]:
            self._expired.discard(name)
        else:
            self._expired.add(name)

    def _take_ring(self, owners: tuple[str, ...], now: float) -> None:
        before = self._owners or ("",) * len(owners)
        moved = {slot for slot, pair in enumerate(zip(before, owners, strict=True)) if pair[0] != pair[1]}
        self._found.moves += sum(1 for slot in moved if before[slot])
        self._owners = owners
        self._former = ["" if owner else former for owner, former in zip(owners, self._former, strict=False)]
        for name in self._roots:
            if self._slot(name) in moved:
                self._look(name, now, is_move=True)

    def _slot(self, root: str) -> int:
        return slot_of(self._divide(root), len(self._owners) - 1)

    def _owner(self, slot: int) -> str:
        """Return the Pod that owns a slot, "" without one. An expired Lease still owns it, but its process may not write."""
        return self._pods.get(self._owners[slot], "") if self._owners else ""

    # --- objects -------------------------------------------------------------------------------------------------------

    def _take_object(self, version: Version) -> None:
        metadata = version.object["metadata"]
        name, annotations = metadata["name"], metadata.get("annotations") or {}
        is_root = (metadata.get("labels") or {}).get("role") == ROOT["role"]
        root = _text_of(NamespacedName(metadata["namespace"], name.removesuffix(CHILD)))
        state = (annotations.get(WRITER, ""), annotations.get(SEEN, ""))
        if version.type == "DELETED":
            if is_root:
                self._roots.pop(root, None)
                self._served(root, "", version.seen_at)
            else:
                self._children.pop(root, None)
                self._look(root, version.seen_at)
            self._last.pop(f"{version.kind}/{name}", None)
            return
        if TERM in annotations and self._last.get(f"{version.kind}/{name}") != annotations[TERM]:
            self._last[f"{version.kind}/{name}"] = annotations[TERM]
            self._judge(version, root, state[0], int(annotations[TERM].split()[0]))
        if name == LEADER:
            return
        if is_root:
            found = self._roots.setdefault(root, _Root(annotations[VALUE]))
            found.value, found.seen = annotations[VALUE], state
        else:
            self._children[root] = state
        self._look(root, version.seen_at)

    def _judge(self, version: Version, root: str, writer: str, term: int) -> None:
        self._found.writes += 1
        what = f"version {version.resource_version}, {version.kind} {version.object['metadata']['name']}"
        if not self._owners:
            self._found.violations.append(f"{what}: written by {writer} before there was a ring")
            return
        leads = version.object["metadata"]["name"] == LEADER
        slot = len(self._owners) - 1 if leads else self._slot(root)
        lease = self._owners[slot] or (self._former[slot] if self._former else "")
        owner = self._pods.get(lease, "")
        if writer != owner:
            self._found.violations.append(f"{what}: written by {writer} while {owner or 'no process'} owns slot {slot}")
        elif lease in self._expired:
            self._found.violations.append(f"{what}: written by {writer} after its Lease {lease} had expired")
        share = str(slot) if leads or self._divide is whole else self._divide(root)
        latest = self._terms.get((writer, share), 0)
        if term < latest and not leads:
            self._found.violations.append(f"{what}: written by {writer} in term {term} of slot {slot}, after {latest}")
        self._terms[writer, share] = max(term, latest)

    # --- waits ---------------------------------------------------------------------------------------------------------

    def _look(self, root: str, now: float, *, is_move: bool = False) -> None:
        """See whether a root is served now."""
        state = self._roots.get(root)
        if state is None or not self._owners:
            return
        slot = self._slot(root)
        wanted = (self._owner(slot), state.value)
        if state.seen == wanted and self._children.get(root) == wanted:
            if state.since is not None:
                self._found.waits.append(Wait(root, state.since, now, state.is_move))
            state.since, state.is_move = None, False
            self._served(root, wanted[0], now)
        elif state.since is None:
            state.since, state.is_move = now, is_move
        else:
            state.is_move = state.is_move or is_move

    def _begin(self, kill: Kill) -> None:
        missing = {root for root in self._roots if self._owner(self._slot(root)) == kill.pod}
        self._taken.append((kill, missing, TakeOver(kill.at, [])))

    def _served(self, root: str, pod: str, now: float) -> None:
        """Note that a root is served by a Pod, or gone ("")."""
        for entry in list(self._taken):
            kill, missing, take_over = entry
            if root in missing and pod != kill.pod:
                missing.discard(root)
                take_over.served.append((now - kill.at, root))
                if not missing:
                    self._found.take_overs.append(take_over)
                    self._taken.remove(entry)

    def owner_of(self, root: str) -> str:
        """Return the Pod that owns the slot of a root."""
        return self._owner(self._slot(root)) if self._owners else ""

    def findings(self) -> Findings:
        """Return what was found so far."""
        self._found.pending = [
            Wait(name, root.since, self._now, root.is_move)
            for name, root in self._roots.items()
            if root.since is not None
        ]
        self._found.owners = tuple(self._pods.get(owner, "") for owner in self._owners)
        return self._found


def story(versions: Iterable[Version], wait: Wait, *, divide: Callable[[str], str] = whole) -> list[str]:
    """Return what the server stored of a root and its child, and the owners of its slot, from five seconds before a wait until its end."""
    watched, owner, lines = Audit(divide=divide), "", list[str]()
    for version in versions:
        watched.take(version)
        at = version.seen_at - wait.since
        if version.kind == "Lease":
            now = watched.owner_of(wait.root)
            text = f"owned by {now or 'no process'}" if now != owner else ""
            owner = now
        else:
            metadata = version.object["metadata"]
            name = _text_of(NamespacedName(metadata["namespace"], metadata["name"].removesuffix(CHILD)))
            annotations = metadata.get("annotations") or {}
            values = (annotations.get(each, "") for each in (WRITER, SEEN, VALUE))
            text = f"{version.type} {metadata['name']}: {' '.join(values)}" if name == wait.root else ""
        if text and -5 <= at <= wait.seconds:
            lines.append(f"{at:8.2f} s  {text}")
    return lines


def audit(versions: Iterable[Version], kills: Sequence[Kill] = (), *, divide: Callable[[str], str] = whole) -> Findings:
    """Look at the versions of Leases, ConfigMaps and Secrets, in the order of the server."""
    one = Audit(kills, divide=divide)
    for version in versions:
        one.take(version)
    return one.findings()
