"""Which writes to which state of an object the server answered with no change; `create_or_update` does not send them again.

An object that is written whole, without the values the server fills in, differs from the stored one at each run. Sent again to the same
state, it would change nothing again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

MAX_OBJECTS: Final = 10_000
"""Objects of a cluster of which the last unchanged write is kept (some 300 bytes each)."""

_CHANGES_BY_ITSELF: Final = frozenset({"resourceVersion", "managedFields", "generation"})


class UnchangedWrites:
    """The last write of each object that changed nothing, for the objects written last. A direct client has one; its wrappers share it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, tuple[bytes, bytes]] = OrderedDict()

    def knows(self, kind: Hashable, before: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        """Whether the server answered this write to this state with no change."""
        known = self._known.get(_identity(kind, before))
        return known is not None and known == (_digest(before), _digest(wanted))

    def note(self, kind: Hashable, before: Mapping[str, Any], wanted: Mapping[str, Any], *, unchanged: bool) -> None:
        """Take note of an answered write."""
        identity = _identity(kind, before)
        self._known.pop(identity, None)
        if unchanged:
            self._known[identity] = _digest(before), _digest(wanted)
            if len(self._known) > MAX_OBJECTS:
                self._known.popitem(last=False)


@runtime_checkable
class RemembersUnchanged(Protocol):
    """A client that keeps its unchanged writes; one that does not sends them each time."""

    @property
    def unchanged_writes(self) -> UnchangedWrites: ...


def unchanged_writes_of(client: object) -> UnchangedWrites:
    return client.unchanged_writes if isinstance(client, RemembersUnchanged) else UnchangedWrites()


def is_unchanged(before: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether a write that found `before` and was answered with `answer` changed nothing.

    The version alone does not say it: a dry run answers with the version before and the content after.
    """
    versions = [wire["metadata"].get("resourceVersion") for wire in (before, answer)]
    return versions[0] == versions[1] and _digest(before) == _digest(answer)


def _identity(kind: Hashable, wire: Mapping[str, Any]) -> Hashable:
    metadata = wire["metadata"]
    return kind, metadata.get("namespace"), metadata.get("name"), metadata.get("uid")


def _digest(wire: Mapping[str, Any]) -> bytes:
    """Return a digest of what a write is about: without what each change of the object changes."""
    metadata = {name: value for name, value in wire["metadata"].items() if name not in _CHANGES_BY_ITSELF}
    return hashlib.blake2b(
        msgspec.json.encode({**wire, "metadata": metadata}, order="deterministic"), digest_size=16
    ).digest()
