"""Remembers writes that would change nothing; `create_or_update` skips them for a while.

An object that is written without the values that the server sets differs from the stored one at each run. The same write to the same state
changes nothing again, and a write to the state that the same write made changes nothing. This holds unless the server decides differently:
a new CRD, a removed webhook, another policy or feature gate may let it through. So a record ends with any change of the object, with
`forget`, and with time.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from ctrlruntime.api.kind import GroupVersionKind

MAX_OBJECTS: Final = 10_000
"""The number of objects of a cluster whose last write is stored (about 300 bytes each)."""

FIRST_AGE: Final = 60.0
"""Seconds after which an unchanged write is sent again; doubled each time it changes nothing."""

LONGEST_AGE: Final = 600.0

DECIDING_GROUPS: Final = frozenset({"apiextensions.k8s.io", "admissionregistration.k8s.io"})
"""Groups whose objects affect the result of a write: CRDs, webhooks and policies."""

_CHANGES_BY_ITSELF: Final = frozenset({"resourceVersion", "managedFields", "generation"})
_REVISION: Final = "deployment.kubernetes.io/revision"
"""The annotation that the Deployment controller changes at each rollout."""


class LeftOut(NamedTuple):
    """A write that was skipped, because the server changed nothing for the same one."""

    verb: str
    kind: GroupVersionKind
    namespace: str
    name: str
    seconds: float
    """The maximum time until it is sent again."""


class _Known(NamedTuple):
    before: bytes
    wanted: bytes
    age: float
    ends: float

    def is_for(self, before: bytes, wanted: bytes) -> bool:
        return self.before == before and self.wanted == wanted


class UnchangedWrites:
    """The last write of each recent object whose result differs from what was written.

    A direct client has one; its wrappers share it.

    `tell` is called with each skipped write. `clock` returns seconds.
    """

    def __init__(
        self, tell: Callable[[LeftOut], None] = lambda _: None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._known: OrderedDict[tuple[object, ...], _Known] = OrderedDict()

    def leaves_out(
        self, verb: str, kind: GroupVersionKind, before: Mapping[str, Any], wanted: Mapping[str, Any]
    ) -> bool:
        """Return whether to skip this write, because the server recently changed nothing for it in this state."""
        known = self._known.get(_identity(kind, before))
        now = self._clock()
        if known is None or now >= known.ends or not known.is_for(_digest(before), _digest(wanted)):
            return False
        metadata = before["metadata"]
        namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
        self._tell(LeftOut(verb, kind, namespace, name, known.ends - now))
        return True

    def note(
        self, kind: GroupVersionKind, before: Mapping[str, Any], wanted: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> bool:
        """Record a write with its response, and return whether it changed nothing."""
        identity = _identity(kind, before)
        known = self._known.pop(identity, None)
        unchanged = is_unchanged(before, answer)
        made, asked = _digest(answer), _digest(wanted)
        if made == asked:
            return unchanged
        age = FIRST_AGE if known is None or not known.is_for(made, asked) else min(2 * known.age, LONGEST_AGE)
        self._known[identity] = _Known(made, asked, age, self._clock() + age)
        if len(self._known) > MAX_OBJECTS:
            self._known.popitem(last=False)
        return unchanged

    def forget(self) -> None:
        """Send each write once more, because the server may decide differently now."""
        self._known.clear()


@runtime_checkable
class RemembersUnchanged(Protocol):
    """A client that remembers unchanged writes; any other sends them each time."""

    @property
    def unchanged_writes(self) -> UnchangedWrites: ...


def unchanged_writes_of(client: object) -> UnchangedWrites:
    return client.unchanged_writes if isinstance(client, RemembersUnchanged) else UnchangedWrites()


def is_unchanged(before: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Return whether a write that found `before` and got `answer` changed nothing.

    The version alone is not enough: the response to a dry run has the version before and the content after.
    """
    versions = [wire["metadata"].get("resourceVersion") for wire in (before, answer)]
    return versions[0] == versions[1] and _digest(before) == _digest(answer)


def _identity(kind: GroupVersionKind, wire: Mapping[str, Any]) -> tuple[object, ...]:
    metadata = wire["metadata"]
    return kind, metadata.get("namespace"), metadata.get("name"), metadata.get("uid")


def _digest(wire: Mapping[str, Any]) -> bytes:
    """Return a digest of what a write is about: without what each change of the object changes."""
    metadata = {name: value for name, value in wire["metadata"].items() if name not in _CHANGES_BY_ITSELF}
    if _REVISION in metadata.get("annotations", ()):
        others = {name: value for name, value in metadata.pop("annotations").items() if name != _REVISION}
        metadata |= {"annotations": others} if others else {}
    return hashlib.blake2b(
        msgspec.json.encode({**wire, "metadata": metadata}, order="deterministic"), digest_size=16
    ).digest()
