"""Detects write loops: no-op, reverted or contested writes of one controller to one object.

`CallObservers` passes on every write with its response (`Write`), and the cache passes on changes of suspected objects. A record of the
last response is kept for each recently written object. After three such writes in a row, a warning names the object, the fields and, for a
contested write, the other field manager. The records have limits. Nothing here sends a request or changes a write.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata, metadata_of
from ctrlruntime.changes import ABSENT, Path, differences, leaves, path_text
from ctrlruntime.client.observers import Write
from ctrlruntime.journal import Trigger
from ctrlruntime.rest.fence import Actor, current_actor

THRESHOLD: Final = 3
"""The number of consecutive writes from which they are a loop."""

WINDOW: Final = 600.0
"""Seconds between two writes after which the count starts again, so that a resync is not a loop."""

MAX_TRAILS: Final = 1024
MAX_BYTES: Final = 4 * 1024 * 1024
MAX_OBJECT: Final = 64 * 1024
"""The size of an object in bytes above which only its version is compared."""

MAX_NAMED: Final = 10
"""The number of objects of one kind and controller named in the log for one reason; others are counted."""

MAX_FIELDS: Final = 8


class Waste(StrEnum):
    """Why a write was redundant."""

    NO_OP = "no_op"
    """The object had the same version before and after."""

    REVERTED = "reverted"
    """The write undid the previous write of the controller, and nothing but own writes triggered it."""

    CONTESTED = "contested"
    """Another client changed the fields back in between."""


_HINTS: Final = {
    Waste.NO_OP: "compare with what the server stored before writing; the fields are those the server stores otherwise than sent",
    Waste.REVERTED: "two places of this controller want different values of these fields",
    Waste.CONTESTED: "let one of the two own these fields: leave them out of what is written here, or configure the other",
}


_NO_FIELDS: Final = {
    Waste.NO_OP: "none: what is written is there already",
    Waste.REVERTED: "unknown",
    Waste.CONTESTED: "unknown: the object is not cached whole",
}


class LoopCounter(Protocol):
    """Counts, such as `metrics.client(cluster)`."""

    def wasted(self, controller: str, kind: str, reason: str) -> None: ...

    def looped(self, controller: str, kind: str, reason: str) -> None: ...


_Key: TypeAlias = tuple[str, str, str, str, str, str]
_Fields: TypeAlias = dict[Path, tuple[Any, Any]]

_NOT_MAIN: Final = frozenset({"apiVersion", "kind", "metadata", "status"})
_MAIN_METADATA: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class WriteLoop(NamedTuple):
    """A write loop, for diagnostics."""

    controller: str
    group: str
    kind: str
    namespace: str
    name: str
    subresource: str
    why: Waste
    writes: int
    """The number of consecutive redundant writes."""

    fields: tuple[str, ...]
    others: tuple[str, ...]
    """Other field managers of these fields."""


class _Content:
    """The content of a response, extracted on demand, because most objects are written once and never compared."""

    __slots__ = ("_cut", "_raw", "_subresource")

    def __init__(self, raw: bytes, subresource: str) -> None:
        self._raw = raw if len(raw) <= MAX_OBJECT else b""
        self._subresource = subresource
        self._cut: bytes | None = None if self._raw else b""

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return len(self._raw if self._cut is None else self._cut)

    @property
    def text(self) -> bytes:
        """The content as JSON without fields that the server changes; empty if it is too large."""
        if self._cut is None:
            self._cut = _content(self._raw, self._subresource)
            self._raw = b""
        return self._cut


_NO_CONTENT: Final = _Content(b"", "")


class _Trail:
    """The record of the writes of one controller to one object."""

    __slots__ = (
        "at",
        "changed",
        "content",
        "count",
        "fields",
        "generation",
        "manager",
        "others",
        "reconcile_id",
        "size",
        "told",
        "uid",
        "version",
        "waste",
    )

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.version = ""
        self.generation = 0
        self.content = _NO_CONTENT
        """The last response."""

        self.size = 0
        """The counted size in bytes."""

        self.changed: _Fields = {}
        """The fields that the last write changed, with their values before and after."""

        self.reconcile_id = ""
        """The reconcile of the last write."""

        self.manager = ""
        self.at = 0.0
        self.waste: Waste | None = None
        self.count = 0
        self.fields: dict[Path, None] = {}
        self.others: dict[str, None] = {}
        self.told: set[Waste] = set()

    def add(self, waste: Waste | None, fields: Iterable[Path]) -> None:
        """Count a redundant write. Another reason, or none, resets the count."""
        if waste is not self.waste:
            self.waste, self.count = waste, 0
            self.fields.clear()
            self.others.clear()
        if waste is not None:
            self.count += 1
            self.fields.update(dict.fromkeys(fields))


class WriteLoops:
    """Watches the writes of one cluster's client. Use it on one event loop.

    Args:
        cluster: the name of the cluster.
        counter: called for each redundant write, and for each loop.
        threshold: how many of them in a row are a loop.
        window: seconds after which another write resets the count.
        clock: measures `window`.

    """

    def __init__(
        self,
        cluster: str = "",
        *,
        counter: LoopCounter | None = None,
        threshold: int = THRESHOLD,
        window: float = WINDOW,
        max_trails: int = MAX_TRAILS,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self._counter = counter
        self._threshold = threshold
        self._window = window
        self._max_trails = max_trails
        self._max_bytes = max_bytes
        self._clock = clock
        self._trails: OrderedDict[_Key, _Trail] = OrderedDict()
        self._bytes = 0
        self._own: OrderedDict[str, None] = OrderedDict()
        """The versions that the latest writes made, whose events trigger reconciles."""

        self._suspects: dict[tuple[str, str, str, str], dict[_Key, None]] = {}
        self._named: dict[tuple[str, str, Waste], int] = {}
        self._log = log.get_logger("client")

    def __len__(self) -> int:
        return len(self._trails)

    def wrote(self, write: Write) -> None:
        """Check a write with its response.

        One outside a controller is skipped, because it is not repeated.
        """
        actor = current_actor()
        if actor is None or not actor.controller:
            return
        meta = write.meta or metadata_of(write.after)
        key = (actor.controller, write.kind.group, write.kind.kind, write.namespace, write.name, write.subresource)
        trail = self._trail(key, meta.uid)
        trail.manager = write.manager
        content = _Content(write.after, write.subresource)
        if write.verb == "create":
            trail.add(None, ())
        else:
            waste, fields = self._judge(trail, write, meta, content, actor)
            trail.add(waste, fields)
            if waste is not None:
                self._wasted(key, trail, waste, write)
        self._keep(trail, meta, content, actor)
        self._suspect(key, trail)
        self._shrink()

    def saw(self, kind: GroupVersionKind, meta: Metadata, raw: bytes) -> None:
        """Check a change from a watch, with managedFields, for the other field manager."""
        if not self._suspects:
            return
        for key in self._suspects.get((kind.group, kind.kind, meta.namespace, meta.name), ()):
            trail = self._trails[key]
            if trail.content.text and _is_newer(meta.resource_version, trail.version):
                differing = _differences(trail.content.text, _content(raw, key[-1]))
                for manager in _managers(raw, differing, trail.manager):
                    if len(trail.others) < MAX_FIELDS:
                        trail.others[manager] = None

    def loops(self) -> list[WriteLoop]:
        """Return the current loops, the latest first."""
        now = self._clock()
        return [
            WriteLoop(
                *key,
                trail.waste,
                trail.count,
                tuple(path_text(path) for path in trail.fields)[:MAX_FIELDS],
                tuple(trail.others),
            )
            for key, trail in reversed(self._trails.items())
            if trail.waste is not None and trail.count >= self._threshold and now - trail.at <= self._window
        ]

    # --- judging -----------------------------------------------------------------------------------------------------

    def _judge(
        self, trail: _Trail, write: Write, meta: Metadata, content: _Content, actor: Actor
    ) -> tuple[Waste | None, Iterable[Path]]:
        before = metadata_of(write.before).resource_version if write.before else ""
        sent = _version_sent(write)
        if meta.resource_version in {version for version in (sent, before, trail.version) if version}:
            trail.changed = {}
            # Who will not be told of the fields need not look for them; apply is judged by them.
            is_near = trail.count >= self._threshold - 1 and Waste.NO_OP not in trail.told
            fields = _stored_otherwise(write, content.text) if is_near or write.is_apply else []
            # To apply the same again and again is how apply is meant to be used; it is a loop if the server keeps something else.
            return (None if write.is_apply and not fields else Waste.NO_OP), fields
        if not trail.version or not trail.content.text or not content.text:
            trail.changed = {}
            return None, ()
        old, new = trail.content.text, content.text
        changed = {} if new == old else _differences(old, new)
        last, trail.changed = trail.changed, changed
        if before and _is_newer(before, trail.version):
            meanwhile = _differences(old, _content(write.before, write.subresource))
            restored = [path for path in meanwhile if path not in changed]
            if restored:
                return Waste.CONTESTED, restored
        is_main = not write.subresource  # a status stays the same while its specification changes
        if is_main and not before and not changed and meta.generation > trail.generation + 1 > 1:
            return Waste.CONTESTED, ()  # not cached, but the specification went somewhere and came back
        undone = [path for path, (_, now) in changed.items() if path in last and last[path][0] == now]
        return (Waste.REVERTED, undone) if undone and self._is_own_doing(trail, actor) else (None, ())

    def _is_own_doing(self, trail: _Trail, actor: Actor) -> bool:
        """Whether only this process led from the last write to this one.

        A value that goes back and forth with what others change, such as Ready during rollouts, is no loop.
        """
        return trail.reconcile_id == actor.reconcile_id or (
            bool(actor.triggers)
            and all(isinstance(cause, Trigger) and cause.resource_version in self._own for cause in actor.triggers)
        )

    def _wasted(self, key: _Key, trail: _Trail, waste: Waste, write: Write) -> None:
        controller, label = key[0], write.kind.group_kind
        if self._counter is not None:
            self._counter.wasted(controller, label, waste.value)
        if trail.count < self._threshold or waste in trail.told:
            return
        trail.told.add(waste)
        if self._counter is not None:
            self._counter.looped(controller, label, waste.value)
        named = self._named[controller, label, waste] = self._named.get((controller, label, waste), 0) + 1
        if named > MAX_NAMED:
            return
        self._warn(controller, label, trail, waste, write)

    def _warn(self, controller: str, label: str, trail: _Trail, waste: Waste, write: Write) -> None:
        fields = [path_text(path) for path in trail.fields]
        shown = ", ".join(fields[:MAX_FIELDS]) + (
            f" and {len(fields) - MAX_FIELDS} more" if fields[MAX_FIELDS:] else ""
        )
        more: dict[str, Any] = {}
        if waste is Waste.CONTESTED:
            more["otherManager"] = ", ".join(trail.others) or "unknown (not seen by the cache)"
        if write.subresource:
            more["subresource"] = write.subresource
        self._log.warning(
            "write loop",
            controller=controller,
            kind=label,
            object=f"{write.namespace}/{write.name}" if write.namespace else write.name,
            reason=waste.value,
            writes=trail.count,
            fields=shown or _NO_FIELDS[waste],
            hint=_HINTS[waste],
            **more,
        )

    # --- remembering -------------------------------------------------------------------------------------------------

    def _trail(self, key: _Key, uid: str) -> _Trail:
        now = self._clock()
        trail = self._trails.get(key)
        if trail is None or trail.uid != uid:
            self._forget(key)
            trail = self._trails[key] = _Trail(uid)
        elif now - trail.at > self._window:
            trail.add(None, ())
            trail.changed = {}
        trail.at = now
        self._trails.move_to_end(key)
        return trail

    def _keep(self, trail: _Trail, meta: Metadata, content: _Content, actor: Actor) -> None:
        self._bytes += content.size - trail.size
        trail.size = content.size
        trail.version, trail.generation, trail.content = meta.resource_version, meta.generation, content
        trail.reconcile_id = actor.reconcile_id
        self._own[meta.resource_version] = None
        if len(self._own) > self._max_trails:
            self._own.popitem(last=False)

    def _suspect(self, key: _Key, trail: _Trail) -> None:
        if trail.waste is Waste.CONTESTED:
            self._suspects.setdefault(key[1:5], {})[key] = None
        else:
            self._clear(key)

    def _clear(self, key: _Key) -> None:
        suspects = self._suspects.get(key[1:5])
        if suspects is not None:
            suspects.pop(key, None)
            if not suspects:
                del self._suspects[key[1:5]]

    def _forget(self, key: _Key) -> None:
        trail = self._trails.pop(key, None)
        if trail is not None:
            self._bytes -= trail.size
            self._clear(key)

    def _shrink(self) -> None:
        while len(self._trails) > self._max_trails or (self._bytes > self._max_bytes and len(self._trails) > 1):
            self._forget(next(iter(self._trails)))


# --- contents --------------------------------------------------------------------------------------------------------

_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_SHORT: Final = 16  # bytes; nothing empty is longer


def _content(raw: bytes, subresource: str) -> bytes:
    """Return what a write is about, as JSON: without what the server changes by itself; empty when it is too large."""
    if len(raw) > MAX_OBJECT:
        return b""
    # Cut, not decoded: contents that differ in bytes alone (the order of members) have no differing leaves.
    members = _cut(raw)
    if subresource:
        name = "status" if subresource == "status" else "spec"
        return msgspec.json.encode({name: members[name]} if name in members else {})
    metadata = _cut(members.get("metadata", b"{}"))
    own = {name: metadata[name] for name in _MAIN_METADATA if name in metadata and not _is_empty(metadata[name])}
    kept: dict[str, object] = {name: value for name, value in members.items() if name not in _NOT_MAIN}
    return msgspec.json.encode(kept | {"metadata": own})


def _cut(raw: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of an object, each as JSON; none of what is not an object."""
    try:
        return _decode_members(raw)
    except msgspec.ValidationError:
        return {}


def _is_empty(value: msgspec.Raw) -> bool:
    """Whether it is an empty object or list, or null."""
    return len(value) < _SHORT and not msgspec.json.decode(value)


def _version_sent(write: Write) -> str:
    try:
        return metadata_of(write.sent).resource_version
    except ValueError:
        return ""  # a JSON patch, or a patch that leaves metadata alone


def _stored_otherwise(write: Write, content: bytes) -> list[Path]:
    """Return the fields a write carried with another value than the server keeps."""
    if len(write.sent) > MAX_OBJECT or not content:
        return []
    return [
        path
        for path, (value, kept) in _differences(_content(write.sent, write.subresource), content).items()
        # An empty list, object or null means the same as nothing.
        if value is not ABSENT and not (kept is ABSENT and value in (None, [], {}))
    ]


def _differences(old: bytes, new: bytes) -> _Fields:
    """Return the leaves that differ between two contents, with both values."""
    return _differing(msgspec.json.decode(old), msgspec.json.decode(new))


def _differing(old: Any, new: Any) -> _Fields:
    fields: _Fields = {}
    for path, one, other in differences(old, new):
        before, after = dict(leaves(one, path)), dict(leaves(other, path))
        for leaf in before.keys() | after.keys():
            values = before.get(leaf, ABSENT), after.get(leaf, ABSENT)
            if values[0] != values[1]:  # lists in another order differ in no leaf
                fields[leaf] = values
    return fields


def _is_newer(version: str, than: str) -> bool:
    return version.isdecimal() and than.isdecimal() and int(version) > int(than)


# --- managers --------------------------------------------------------------------------------------------------------


class _Entry(msgspec.Struct, gc=False, rename="camel"):
    manager: str = ""
    fields_v1: dict[str, Any] = {}


class _Managed(msgspec.Struct, gc=False, rename="camel"):
    managed_fields: list[_Entry] = []


class _Envelope(msgspec.Struct, gc=False):
    metadata: _Managed


_decode_managed = msgspec.json.Decoder(_Envelope).decode


def _managers(raw: bytes, paths: Iterable[Path], own: str) -> Iterator[str]:
    """Yield who, other than `own`, owns one of the fields."""
    wanted = list(paths)
    for entry in _decode_managed(raw).metadata.managed_fields:
        if entry.manager and entry.manager != own and any(_owns(entry.fields_v1, path) for path in wanted):
            yield entry.manager


def _owns(fields: Mapping[str, Any], path: Path) -> bool:
    """Whether a field set holds the field at a path, or something of the list the path goes through."""
    node: Any = fields
    for segment in path:
        if segment.startswith("["):
            return bool(node)
        node = node.get(f"f:{segment}")
        if node is None:
            return False
    return True
