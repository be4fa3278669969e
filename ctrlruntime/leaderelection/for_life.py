"""Leader for life: the first Pod that creates a ConfigMap leads until this Pod is deleted.

The Pod owns the ConfigMap, so the garbage collector deletes it with the Pod, and the next candidate creates it again. Nothing is renewed,
and two Pods never lead at once. If a node fails, the next leader waits until the Pod is deleted. (`LeaderElection` by Lease hands over in
seconds.)
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ctrlruntime import log
from ctrlruntime.api.metadata import NamespacedName, ObjectKey
from ctrlruntime.errors import TRANSIENT_ERRORS, AlreadyExists, ConfigError, Conflict, Forbidden, NotFound
from ctrlruntime.leaderelection.lease import NAMESPACE_FILE
from ctrlruntime.rest.config import Config

if TYPE_CHECKING:
    from ctrlruntime.api.core.v1 import ConfigMap, Pod
    from ctrlruntime.api.meta.v1 import OwnerReference

T = TypeVar("T")

FIRST_WAIT: Final = 1.0
LONGEST_WAIT: Final = 16.0
JITTER: Final = 0.2


class LockClient(Protocol):
    """The part of a client that `become` uses.

    It reads live, and its writes need no leadership.
    """

    async def get(self, kind: type[T], key: ObjectKey) -> T: ...

    async def create(self, obj: T) -> T: ...

    async def delete(self, obj: object, *, uid: str = "") -> None: ...


async def become(
    cluster: Config | LockClient,
    name: str,
    *,
    namespace: str | None = None,
    pod: str | None = None,
    environ: Mapping[str, str] = os.environ,
    namespace_file: Path = NAMESPACE_FILE,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    rng: Callable[[], float] = random.random,
) -> None:
    """Wait until this Pod is the leader, for the rest of its life.

    Call it before the manager starts.

    Args:
        cluster: the configuration of the cluster, or a client.
        name: the name of the ConfigMap, the same in all replicas.
        namespace: default POD_NAMESPACE, or the namespace of the service account.
        pod: the name of this Pod; default POD_NAME.
        environ: the environment variables.
        namespace_file: the file with the namespace of the service account.
        sleep: waits between two attempts.
        rng: returns a number from 0 to 1, for the jitter of the waits.

    Outside a cluster, where all three are unknown, it returns at once. It deletes a leader's Pod that was evicted, preempted, or whose node
    is not ready. Otherwise it waits for it: 1 s, doubled up to 16 s.

    Raises: ConfigError if POD_NAME or the namespace is missing, Forbidden with the required permissions.

    """
    place = _place(name, namespace, pod, environ, namespace_file)
    if place is None:
        log.get_logger("leaderelection").info("not in a pod, leading without a lock", lock=name)
        return
    if not isinstance(cluster, Config):
        await _Candidate(cluster, name, place, sleep, rng).run()
        return
    from ctrlruntime.client.api import APIClient
    from ctrlruntime.rest.mapper import RESTMapper
    from ctrlruntime.rest.transport import Transport
    from ctrlruntime.scheme import Scheme

    transport = Transport(cluster)
    mapper = RESTMapper(transport.fetch)
    try:
        await _Candidate(APIClient(transport, mapper, Scheme()), name, place, sleep, rng).run()
    finally:
        await mapper.close()
        await transport.close()


def _place(
    name: str, namespace: str | None, pod: str | None, environ: Mapping[str, str], file: Path
) -> NamespacedName | None:
    """Return namespace and name of this Pod; None outside a cluster."""
    if not name:
        raise ConfigError("leader.become needs a name of the lock, such as 'memcached-operator-lock'")
    where = namespace or environ.get("POD_NAMESPACE", "") or _read(file)
    who = pod or environ.get("POD_NAME", "")
    if not where and not who:
        return None
    if not who:
        raise ConfigError(
            "leader.become needs the name of this Pod: set POD_NAME in the Deployment (env: name POD_NAME, "
            "valueFrom.fieldRef.fieldPath metadata.name), or pass pod=…"
        )
    if not where:
        raise ConfigError(
            f"leader.become needs the namespace of the Pod {who}: set POD_NAMESPACE in the Deployment (env: name "
            "POD_NAMESPACE, valueFrom.fieldRef.fieldPath metadata.namespace), mount the service account's token, or pass namespace=…"
        )
    return NamespacedName(where, who)


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except OSError:
        return ""


class _Candidate:
    """One Pod that wants the lock."""

    def __init__(
        self,
        client: LockClient,
        name: str,
        place: NamespacedName,
        sleep: Callable[[float], Awaitable[None]],
        rng: Callable[[], float],
    ) -> None:
        self._client = client
        self._key = NamespacedName(place.namespace, name)
        self._pod = place
        self._sleep = sleep
        self._rng = rng
        self._said = ""
        self._log = log.get_logger("leaderelection").bind(lock=str(self._key), pod=place.name)

    async def run(self) -> None:
        try:
            await self._wait_and_take()
        except Forbidden as error:
            raise Forbidden(
                f"{error}; leader.become needs get and create of configmaps and get of pods in {self._pod.namespace}; to take over "
                "from a Pod that is lost also delete of both, and get of nodes",
                status=error.status,
            ) from error

    async def _wait_and_take(self) -> None:
        me: Pod | None = None
        wait = FIRST_WAIT
        while True:
            try:
                if me is None:
                    me = await self._me()
                if await self._attempt(me):
                    self._log.info("became leader for life")
                    return
            except TRANSIENT_ERRORS as error:
                self._say("API server does not respond, retrying", error=log.describe(error))
            # Also when the lock vanished in between: whoever else wants it is asked to be patient, too.
            await self._sleep(wait * (1.0 + JITTER * self._rng()))
            wait = min(LONGEST_WAIT, wait * 2)

    async def _me(self) -> Pod:
        from ctrlruntime.api.core.v1 import Pod

        try:
            return await self._client.get(Pod, self._pod)
        except NotFound as error:
            raise ConfigError(
                f"Pod {self._pod} of this process does not exist. Check POD_NAME and POD_NAMESPACE"
            ) from error

    async def _attempt(self, me: Pod) -> bool:
        """Create the lock, or look at who holds it; say whether it is ours."""
        from ctrlruntime.api.core.v1 import ConfigMap

        try:
            lock = await self._client.get(ConfigMap, self._key)
        except NotFound:
            return await self._create(me)
        owners = lock.metadata.owner_references
        # By uid: a Pod of a StatefulSet has its predecessor's name, and the predecessor's lock is about to be collected.
        if any(owner.uid == me.metadata.uid for owner in owners):
            self._log.info("already holds the lock: this container was restarted")
            return True
        if len(owners) != 1 or owners[0].kind != "Pod":
            self._say("lock is not owned by exactly one Pod", hint="delete the lock")
        else:
            await self._look_at(lock, owners[0])
        return False

    async def _create(self, me: Pod) -> bool:
        from ctrlruntime.api.core.v1 import ConfigMap
        from ctrlruntime.api.meta.v1 import ObjectMeta, OwnerReference

        owner = OwnerReference(api_version="v1", kind="Pod", name=me.metadata.name, uid=me.metadata.uid)
        lock = ConfigMap(
            metadata=ObjectMeta(name=self._key.name, namespace=self._key.namespace, owner_references=[owner])
        )
        try:
            await self._client.create(lock)
        except AlreadyExists:
            return False
        return True

    async def _look_at(self, lock: ConfigMap, owner: OwnerReference) -> None:
        """Wait for the Pod that leads, and see to it that it goes when it is lost."""
        from ctrlruntime.api.core.v1 import Pod

        try:
            leader = await self._client.get(Pod, NamespacedName(self._key.namespace, owner.name))
        except NotFound:
            self._say("leader is gone, waiting for deletion of its lock", leader=owner.name)
            return
        if leader.metadata.uid != owner.uid:
            self._say("leader was replaced, waiting for deletion of its lock", leader=owner.name)
        elif _is_ended_by_its_node(leader):
            if leader.metadata.deletion_timestamp is None:
                self._say("leader was evicted or preempted, deleting it", leader=owner.name)
                await self._delete(leader)
        elif await self._is_on_a_lost_node(leader):
            self._say("node of the leader is not ready, deleting leader and lock", leader=owner.name)
            await self._delete(leader)
            await self._delete(lock)
        else:
            self._say("another Pod leads, waiting for its end", leader=owner.name)

    async def _is_on_a_lost_node(self, pod: Pod) -> bool:
        from ctrlruntime.api.core.v1 import Node

        if not pod.spec.node_name:
            return False
        try:
            node = await self._client.get(Node, NamespacedName("", pod.spec.node_name))
        except (NotFound, Forbidden):
            return False  # nothing is known of it: the Pod counts
        return any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions)

    async def _delete(self, obj: Pod | ConfigMap) -> None:
        try:
            await self._client.delete(obj, uid=obj.metadata.uid)
        except (NotFound, Conflict):
            return  # somebody was faster

    def _say(self, what: str, **fields: str) -> None:
        """Log what is waited for, once."""
        said = f"{what} {fields}"
        if said != self._said:
            self._said = said
            self._log.info(what, **fields)


def _is_ended_by_its_node(pod: Pod) -> bool:
    return pod.status.phase == "Failed" and pod.status.reason in {"Evicted", "Preempting"}
