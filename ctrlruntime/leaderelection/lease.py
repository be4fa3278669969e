"""The lock in a Lease of coordination.k8s.io/v1, with the same record as in Go controllers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ctrlruntime.api.metadata import NamespacedName, ObjectKey
from ctrlruntime.errors import ConfigError, Conflict, NotFound
from ctrlruntime.leaderelection.lock import LeaseRecord
from ctrlruntime.leaderelection.options import LeaderElection

if TYPE_CHECKING:
    from ctrlruntime.api.coordination.v1 import Lease

T = TypeVar("T")

NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""The file with the namespace of a pod."""


class LeaseClient(Protocol):
    """The part of a client that the lock uses: it reads live, and its writes need no leadership."""

    async def get(self, kind: type[T], key: ObjectKey) -> T: ...

    async def create(self, obj: T) -> T: ...

    async def update(self, obj: T) -> T: ...


class LeaseLock:
    """Stores the record in the Lease `options.id`.

    `namespace_file` has the namespace if the options have none. Raises: ConfigError if the namespace is unknown.
    """

    def __init__(self, client: LeaseClient, options: LeaderElection, *, namespace_file: Path = NAMESPACE_FILE) -> None:
        self._client = client
        self._key = NamespacedName(
            options.namespace or namespace_of_pod("leader election", "LeaderElection(namespace=…)", namespace_file),
            options.id,
        )
        self._labels: Mapping[str, str] = dict(options.labels)
        self._lease: Lease | None = None

    @property
    def name(self) -> str:
        return str(self._key)

    async def get(self) -> LeaseRecord | None:
        from ctrlruntime.api.coordination.v1 import Lease

        try:
            self._lease = await self._client.get(Lease, self._key)
        except NotFound:
            self._lease = None
            return None
        return _record(self._lease)

    async def create(self, record: LeaseRecord) -> None:
        from ctrlruntime.api.coordination.v1 import Lease
        from ctrlruntime.api.meta.v1 import ObjectMeta

        lease = Lease(metadata=ObjectMeta(name=self._key.name, namespace=self._key.namespace))
        self._fill(lease, record)
        self._lease = await self._client.create(lease)

    async def update(self, record: LeaseRecord) -> None:
        if self._lease is None:
            raise Conflict(f"cannot update the lease {self._key}: it has not been read, so its version is unknown")
        # A copy: after a write that failed we still hold what the server said last. What others wrote into it is kept.
        lease = self._lease.deep_copy()
        self._fill(lease, record)
        self._lease = await self._client.update(lease)

    def _fill(self, lease: Lease, record: LeaseRecord) -> None:
        from ctrlruntime.field import MicroTime

        lease.metadata.labels.update(self._labels)
        spec = lease.spec
        spec.holder_identity = record.holder or None
        spec.lease_duration_seconds = record.lease_duration
        spec.acquire_time = None if record.acquire_time is None else MicroTime.of(record.acquire_time)
        spec.renew_time = None if record.renew_time is None else MicroTime.of(record.renew_time)
        spec.lease_transitions = record.transitions


def _record(lease: Lease) -> LeaseRecord:
    spec = lease.spec
    return LeaseRecord(
        holder=spec.holder_identity or "",
        lease_duration=spec.lease_duration_seconds or 0,
        acquire_time=spec.acquire_time,
        renew_time=spec.renew_time,
        transitions=spec.lease_transitions or 0,
    )


def namespace_of_pod(what: str, option: str, file: Path = NAMESPACE_FILE) -> str:
    """Return the namespace of this pod.

    Raises: ConfigError outside a pod. `what` needs the namespace, and `option` sets it.
    """
    try:
        namespace = file.read_text("utf-8").strip()
    except OSError:
        namespace = ""
    if not namespace:
        raise ConfigError(
            f"{what} needs a namespace for its lease, and this process does not run in a pod. "
            f"Pass {option} or --leader-election-namespace"
        )
    return namespace
