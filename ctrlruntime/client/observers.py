"""Observers of a cluster's traffic: calls with their outcome, writes with their response, and changes from watches.

Audits, the journal, traces and the detection of write loops are observers. An observer that fails does not affect a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.client.unchanged import LeftOut
from ctrlruntime.rest.fence import Actor, current_actor

Origin: TypeAlias = Literal["client", "cache", "unfenced"]
"""The origin of a call: a client of user code, a list-watch of a cache, or a part of the manager that needs no leadership."""


class Call(msgspec.Struct, frozen=True, gc=False):
    """One request, before it is sent."""

    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    actor: Actor | None
    origin: Origin = "client"
    cluster: str = ""
    body: bytes = b""
    """The body of a write."""


class Write(msgspec.Struct, frozen=True, gc=False):
    """One write with its response."""

    verb: str
    kind: GroupVersionKind
    namespace: str
    name: str
    subresource: str
    manager: str
    """The field manager of the write."""

    is_apply: bool
    before: bytes
    """The object in the cache when the write was sent; empty if unknown."""

    sent: bytes
    after: bytes
    meta: Metadata | None = None
    """The metadata in `after`, if it was decoded."""

    def __repr__(self) -> str:
        return f"Write({self.verb} {self.kind} {self.namespace}/{self.name}, {len(self.after)} bytes)"  # which may be a Secret's


Ended: TypeAlias = Callable[[BaseException | None], None]
"""Called at the end of a call, with its error or None."""

CallObserver: TypeAlias = Callable[[Call], Ended | None]
"""Called with each call before it is sent; its result is called at the end of the call."""

WriteObserver: TypeAlias = Callable[[Write], None]
"""Called with each write that got a response."""

ChangeObserver: TypeAlias = Callable[[GroupVersionKind, Metadata, bytes], None]
"""Called with the kind, the metadata and the JSON of each object from a watch, managedFields included."""

LeftOutObserver: TypeAlias = Callable[[LeftOut], None]
"""Called with each write that is skipped, because the server changed nothing for the same one."""

CachedBytes: TypeAlias = Callable[[GroupVersionKind, str, str], bytes | None]
"""Returns the JSON of the cached object of a kind, namespace and name.

None if it is not cached completely.
"""

witnesses: Final[list[Callable[[Call], None]]] = []
"""Called with every call of all clients in the process.

Only for audits of test runs; other code observes one cluster.
"""


class CallObservers:
    """The observers of one cluster's clients and cache.

    Args:
        origin: the origin of the calls.
        cluster: the name of the cluster.

    """

    def __init__(self, *, origin: Origin = "client", cluster: str = "") -> None:
        self._origin: Origin = origin
        self._cluster = cluster
        self._calls: tuple[CallObserver, ...] = ()
        self._writes: tuple[WriteObserver, ...] = ()
        self._changes: tuple[ChangeObserver, ...] = ()
        self._left_out: tuple[LeftOutObserver, ...] = ()
        self._cached: CachedBytes = _nothing_cached
        self._log = log.get_logger("client")

    def add_observer(self, observe: CallObserver) -> None:
        """Call `observe` with each call before it is sent; its result is called at the end of the call."""
        self._calls = (*self._calls, observe)

    def add_write_observer(self, observe: WriteObserver) -> None:
        """Call `observe` with each write whose response has an object, except for dry runs."""
        self._writes = (*self._writes, observe)

    def add_change_observer(self, observe: ChangeObserver) -> None:
        """Call `observe` with each change from a watch of the cache, for kinds that are cached completely."""
        self._changes = (*self._changes, observe)

    def add_left_out_observer(self, observe: LeftOutObserver) -> None:
        """Call `observe` with each write that `create_or_update` and `create_or_patch` skip."""
        self._left_out = (*self._left_out, observe)

    def use_cache(self, cached: CachedBytes) -> None:
        """Look up the cached object with `cached` right before a write to it."""
        self._cached = cached

    def record(
        self,
        verb: str,
        group: str,
        resource: str,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
        *,
        body: bytes = b"",
        origin: Origin | None = None,
    ) -> Ended | None:
        """Pass a call to the observers; return the function to call at its end.

        `origin`: if it is not that of the client.
        """
        if not self._calls and not witnesses:
            return None
        call = Call(
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            current_actor(),
            origin or self._origin,
            self._cluster,
            body,
        )
        ends = [ended for observe in self._calls if (ended := observe(call)) is not None]
        for witness in tuple(witnesses):
            witness(call)
        if not ends:
            return None
        return ends[0] if len(ends) == 1 else _all_of(ends)

    def cached(self, gvk: GroupVersionKind, namespace: str, name: str) -> bytes:
        """Return the cached object for `Write.before`; empty if it is not cached or no observer needs it."""
        if not self._writes:
            return b""
        return self._cached(gvk, namespace, name) or b""

    def changed(self, kind: GroupVersionKind, meta: Metadata, raw: bytes) -> None:
        """Pass a change from a watch to the observers."""
        for observe in self._changes:
            observe(kind, meta, raw)

    def left_out(self, write: LeftOut) -> None:
        """Pass a skipped write to the observers."""
        for observe in self._left_out:
            observe(write)

    def wrote(self, write: Write) -> None:
        """Pass a write with its response to the observers."""
        for observe in self._writes:
            try:
                observe(write)
            except Exception as error:  # noqa: BLE001 - the write succeeded: an observer must not make it look failed
                self._log.error("write observer failed", kind=write.kind.kind, error=repr(error))


def _nothing_cached(_kind: GroupVersionKind, _namespace: str, _name: str) -> None:
    return None


def _all_of(ends: list[Ended]) -> Ended:
    def end(error: BaseException | None) -> None:
        for ended in ends:
            ended(error)

    return end
