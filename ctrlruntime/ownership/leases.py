"""The Leases of a ring in the API server: what the requests of a member become, and what the responses say.

| Lease | holder | annotation |
|---|---|---|
| `<id>`, the one of leader election | `ring` | `ctrlruntime.dev/ring-slots`: which member owns each slot, and which one gets it next |
| `<id>-<random>`, one for each start of a process | its Pod and its own name | `ctrlruntime.dev/ring-member`: the state of the member |

All have the label `ctrlruntime.dev/ring`, so that one list shows a consistent state of them.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import msgspec

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, NotFound
from ctrlruntime.ownership.messages import (
    RING,
    DeleteMember,
    ExpireMember,
    GetMember,
    Listing,
    ListLeases,
    MemberLease,
    PutMember,
    PutRing,
    Rejected,
    Request,
    Response,
    RingLease,
    State,
    Stored,
)
from ctrlruntime.ownership.ring import Ring

if TYPE_CHECKING:
    from ctrlruntime.api.coordination.v1 import Lease

LABEL: Final = "ctrlruntime.dev/ring"
RING_ANNOTATION: Final = "ctrlruntime.dev/ring-slots"
MEMBER_ANNOTATION: Final = "ctrlruntime.dev/ring-member"

_MOST_SLOTS: Final = 4096
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class _Member(msgspec.Struct, omit_defaults=True):
    """The annotation of a member. Slots are ranges, such as `0-63,128`."""

    pod: str = ""
    state: State = "serving"
    weight: int = 1
    layout: str = ""
    ring: str = ""
    warm: str = ""
    renewal: int = 0


class _Slots(msgspec.Struct):
    """The annotation of the ring. `owners` and `nexts` have the slots of each member, as ranges."""

    layout: str
    slots: int
    epoch: int
    renewal: int
    owners: dict[str, str]
    nexts: dict[str, str]


_decode_member = msgspec.json.Decoder(_Member).decode
_decode_slots = msgspec.json.Decoder(_Slots).decode


class Leases:
    """Sends the requests of a member.

    Args:
        client: Writes without leadership, and reads live.
        ring: The namespace and the name of the ring's Lease.
        pod: The name of the process, for people.
        labels: The labels of all Leases.
        lease_duration: Seconds, for people: the members measure on their own.
        wall: The times in the Leases, for people.

    """

    def __init__(
        self,
        client: Client,
        ring: NamespacedName,
        *,
        pod: str = "",
        labels: Mapping[str, str] = MappingProxyType({}),
        lease_duration: float = 15.0,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._ring = ring
        self._label = label_of(ring.name)
        self._labels = {**labels, LABEL: self._label}
        self._pod = pod
        self._lease_duration = lease_duration
        self._wall = wall
        self._stored: dict[str, Lease] = {}

    async def send(self, request: Request) -> Response:
        """Send a request.

        Raises: CtrlError without a response, or for one that leaves the outcome of a write unknown.
        """
        match request:
            case ListLeases():
                return await self._list()
            case GetMember(identity):
                found = await self._get(identity)
                return None if found is None else self._member_of(found)
            case PutMember(lease):
                return await self._put_member(lease, renews=True)
            case ExpireMember(lease):
                return await self._put_member(lease, renews=False)
            case DeleteMember(identity, uid):
                await self._delete(identity, uid)
                return None
            case PutRing(lease):
                return await self._put_ring(lease)

    def pod_of(self, identity: str) -> str:
        """Return the Pod of a member, as it was seen last; empty if it is unknown."""
        lease = self._stored.get(identity)
        return "" if lease is None else _read_member(lease).pod

    # --- reads -----------------------------------------------------------------------------------------------------

    async def _list(self) -> Listing:
        from ctrlruntime.api.coordination.v1 import Lease

        found = await self._client.list(Lease, namespace=self._ring.namespace, labels={LABEL: self._label})
        self._stored = {lease.metadata.name: lease for lease in found}
        ring = self._stored.get(self._ring.name)
        if ring is None:  # it does not exist, or is an elector's, without the label
            ring = await self._get(self._ring.name)
        members = [lease for name, lease in self._stored.items() if name != self._ring.name]
        return Listing(tuple(map(self._member_of, members)), None if ring is None else self._ring_of(ring))

    async def _get(self, name: str) -> Lease | None:
        from ctrlruntime.api.coordination.v1 import Lease

        try:
            found = await self._client.get(Lease, NamespacedName(self._ring.namespace, name))
        except NotFound:
            return None
        self._stored[name] = found
        return found

    def _member_of(self, lease: Lease) -> MemberLease:
        content = _read_member(lease)
        identity = lease.metadata.name
        return MemberLease(
            identity=identity,
            holder=identity if lease.spec.holder_identity else "",
            state=content.state,
            weight=content.weight,
            layout=content.layout,
            ring_uid=content.ring,
            warm=frozenset(_slots_of(content.warm)),
            renewal=content.renewal,
            uid=lease.metadata.uid,
            version=lease.metadata.resource_version,
        )

    def _ring_of(self, lease: Lease) -> RingLease:
        holder = lease.spec.holder_identity or ""
        ring, renewal = None, 0
        if holder == RING:
            ring, renewal = _read_ring(lease)
        return RingLease(
            holder=holder,
            ring=ring,
            duration=float(lease.spec.lease_duration_seconds or 0),
            renewal=renewal,
            uid=lease.metadata.uid,
            version=lease.metadata.resource_version,
        )

    # --- writes ----------------------------------------------------------------------------------------------------

    async def _put_member(self, member: MemberLease, *, renews: bool) -> Response:
        lease = self._base(member.identity, member.uid, member.version)
        spec = lease.spec
        if renews:
            spec.lease_duration_seconds = math.ceil(self._lease_duration)
            self._renew(lease)
            lease.metadata.annotations[MEMBER_ANNOTATION] = _text(
                _Member(
                    pod=self._pod,
                    state=member.state,
                    weight=member.weight,
                    layout=member.layout,
                    ring=member.ring_uid,
                    warm=_ranges(member.warm),
                    renewal=member.renewal,
                )
            )
        holder = f"{self._pod}_{member.identity}" if self._pod else member.identity
        spec.holder_identity = holder if member.holder else None
        return await self._put(lease)

    async def _put_ring(self, ring: RingLease) -> Response:
        lease = self._base(self._ring.name, ring.uid, ring.version)
        spec = lease.spec
        if spec.holder_identity != (ring.holder or None):
            spec.acquire_time = None
            spec.lease_transitions = (spec.lease_transitions or 0) + (1 if lease.metadata.uid else 0)
        spec.holder_identity = ring.holder or None
        spec.lease_duration_seconds = math.ceil(ring.duration)
        self._renew(lease)
        if ring.ring is None:
            lease.metadata.annotations.pop(RING_ANNOTATION, None)
        else:
            lease.metadata.annotations[RING_ANNOTATION] = _text(_content(ring.ring, ring.renewal))
        return await self._put(lease)

    def _base(self, name: str, uid: str, version: str) -> Lease:
        """Return a Lease to write: the stored one, with what others wrote into it, or a new one."""
        from ctrlruntime.api.coordination.v1 import Lease
        from ctrlruntime.api.meta.v1 import ObjectMeta

        stored = self._stored.get(name) if version else None
        lease = (
            Lease(metadata=ObjectMeta(name=name, namespace=self._ring.namespace))
            if stored is None
            else stored.deep_copy()
        )
        # With both, the write is rejected if the Lease was changed, or deleted and created again. A write without a uid creates it again.
        lease.metadata.uid, lease.metadata.resource_version = uid, version
        lease.metadata.labels.update(self._labels)
        return lease

    def _renew(self, lease: Lease) -> None:
        from ctrlruntime.field import MicroTime

        lease.spec.renew_time = MicroTime.of(self._wall())
        if lease.spec.acquire_time is None:
            lease.spec.acquire_time = lease.spec.renew_time

    async def _put(self, lease: Lease) -> Response:
        try:
            stored = await (
                self._client.update(lease) if lease.metadata.resource_version else self._client.create(lease)
            )
        except (AlreadyExists, Conflict, NotFound):
            return Rejected()
        self._stored[stored.metadata.name] = stored
        return Stored(stored.metadata.uid, stored.metadata.resource_version)

    async def _delete(self, identity: str, uid: str) -> None:
        from ctrlruntime.api.coordination.v1 import Lease
        from ctrlruntime.api.meta.v1 import ObjectMeta

        lease = Lease(metadata=ObjectMeta(name=identity, namespace=self._ring.namespace))
        try:
            await self._client.delete(lease, uid=uid)
        except (Conflict, NotFound):
            return  # it is gone, or is another one


def label_of(id: str) -> str:
    """Return the value of the label of a ring: its id, or a hash of an id that is not a label value."""
    return id if _LABEL_VALUE.fullmatch(id) else hashlib.blake2b(id.encode(), digest_size=16).hexdigest()


# --- the annotations -----------------------------------------------------------------------------------------------


def _text(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def _read_member(lease: Lease) -> _Member:
    """Return the annotation of a member. One that another client damaged says nothing: the member then gets no slots."""
    try:
        content = _decode_member(lease.metadata.annotations.get(MEMBER_ANNOTATION, "{}"))
        _slots_of(content.warm)
    except (ValueError, RecursionError):
        return _Member()
    return content


def _content(ring: Ring, renewal: int) -> _Slots:
    return _Slots(
        layout=ring.layout,
        slots=ring.slots,
        epoch=ring.epoch,
        renewal=renewal,
        owners=_by_member(ring.owners),
        nexts=_by_member(ring.nexts),
    )


def _read_ring(lease: Lease) -> tuple[Ring, int]:
    """Return the ring of a Lease, and its renewal.

    Raises: ConfigError for an annotation that another client damaged. It says nothing about the owners, so no other member may take a slot.
    """
    try:
        content = _decode_slots(lease.metadata.annotations.get(RING_ANNOTATION, ""))
        owners, nexts = _by_slot(content.owners, content.slots), _by_slot(content.nexts, content.slots)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"the annotation {RING_ANNOTATION} of the Lease {lease.metadata.namespace}/{lease.metadata.name} cannot be read ({error}). "
            "Delete the Lease: the members then make a new ring after some seconds"
        ) from error
    return Ring(layout=content.layout, owners=owners, nexts=nexts, epoch=content.epoch), content.renewal


def _by_member(slots: Iterable[str]) -> dict[str, str]:
    found: dict[str, list[int]] = {}
    for slot, member in enumerate(slots):
        if member:
            found.setdefault(member, []).append(slot)
    return {member: _ranges(found[member]) for member in sorted(found)}


def _by_slot(members: dict[str, str], slots: int) -> tuple[str, ...]:
    """Return the member of each slot. Raises: ValueError for a slot that does not exist, or that two members have."""
    if not 0 < slots <= _MOST_SLOTS:
        raise ValueError(f"it has {slots} slots")
    found = [""] * (slots + 1)
    for member, text in members.items():
        for slot in _slots_of(text):
            if slot > slots or found[slot]:
                raise ValueError(f"slot {slot} of {member} does not exist, or has two members")
            found[slot] = member
    return tuple(found)


def _ranges(slots: Iterable[int]) -> str:
    """Return slots as ranges: `0-63,128`."""
    parts: list[list[int]] = []
    for slot in sorted(slots):
        if parts and parts[-1][1] == slot - 1:
            parts[-1][1] = slot
        else:
            parts.append([slot, slot])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _slots_of(text: str) -> list[int]:
    """Return the slots of a text of ranges. Raises: ValueError."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        begin, end = int(first), int(last or first)
        if not 0 <= begin <= end <= _MOST_SLOTS:
            raise ValueError(f"{part!r} is not a range of slots")
        found.extend(range(begin, end + 1))
        if len(found) > _MOST_SLOTS:
            raise ValueError("it names slots twice")
    return found
