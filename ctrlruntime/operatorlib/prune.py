"""Deletes finished objects: the oldest of many, or those older than an age.

Only objects that may be deleted are candidates. By default Pods that run and Jobs that are not complete are kept. Objects with a veto are
always kept. Kinds whose deletion loses data or access must be enabled explicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ctrlruntime.api import apps, batch, core
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object, gvk_for, object_key
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError, Conflict, NotFound

__all__ = ["Pruner", "keep_newest", "older_than"]

T = TypeVar("T", bound=Object)

Strategy: TypeAlias = Callable[[Sequence[Any]], Iterable[Any]]
"""Receives the objects that may be deleted, the newest first, and returns those to delete."""

_IRREPLACEABLE: Final = frozenset(
    ("", kind)
    for kind in ("Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim", "Secret", "ServiceAccount")
) | {("apiextensions.k8s.io", "CustomResourceDefinition")}
"""Groups and kinds whose deletion loses data or access."""


def keep_newest(count: int) -> Strategy:
    """Return a strategy that keeps the newest `count` objects.

    Raises: ValueError for a negative one.
    """
    if count < 0:
        raise ValueError(f"keep_newest({count}): a number of objects is 0 or more")
    return lambda objects: objects[count:]


def older_than(age: timedelta, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Strategy:
    """Return a strategy that deletes objects older than `age`.

    Raises: ValueError for a negative one.
    """
    if age < timedelta(0):
        raise ValueError(f"older_than({age}): an age is not below 0")
    return lambda objects: [each for each in objects if _created(each) < now() - age]


class Pruner(Generic[T]):
    """Deletes objects of one kind with `labels`, in one namespace or in all.

    strategy: `keep_newest(n)`, `older_than(age)`, or a function that receives the objects that may be deleted, the newest first, and
    returns those to delete.
    is_prunable: returns whether an object may be deleted. Default for Pods: succeeded; Jobs: complete; ReplicaSets: without Pods. Required
    for other kinds.
    veto: returns whether to keep an object in any case; such objects are not counted.
    sensitive: True allows kinds whose deletion loses data or access (Secret, Namespace, PersistentVolumeClaim and others).

    Raises: ConfigError for a missing argument.
    """

    def __init__(
        self,
        client: Client,
        kind: type[T],
        strategy: Strategy,
        *,
        namespace: str | None = None,
        labels: str | dict[str, str] | None = None,
        is_prunable: Callable[[T], bool] | None = None,
        veto: Callable[[T], bool] | None = None,
        sensitive: bool = False,
    ) -> None:
        found = gvk_for(kind)
        if (found.group, found.kind) in _IRREPLACEABLE and not sensitive:
            raise ConfigError(
                f"pruning {found.kind} objects deletes data that cannot be recreated; pass sensitive=True to allow it"
            )
        self._client = client
        self._kind = kind
        self._strategy = strategy
        self._namespace = namespace
        self._labels = labels
        self._is_prunable: Callable[[Any], bool] = is_prunable or _known(found)
        self._veto: Callable[[T], bool] = veto or (lambda _: False)

    async def prune(self, *, dry_run: bool = False) -> list[T]:
        """Delete objects and return them; with `dry_run` only return them.

        An object that another client changed or deleted since it was listed is skipped. Raises: the errors of the client.
        """
        listed = await self._client.list(self._kind, namespace=self._namespace, labels=self._labels)
        idle = [each for each in listed if self._may_go(each)]
        ordered = sorted(idle, key=lambda each: (_created(each), str(object_key(each))), reverse=True)
        return [each for each in self._strategy(ordered) if dry_run or await self._remove(each)]

    def _may_go(self, obj: T) -> bool:
        return obj.metadata.deletion_timestamp is None and self._is_prunable(obj) and not self._veto(obj)

    async def _remove(self, obj: T) -> bool:
        metadata = obj.metadata
        try:
            await self._client.delete(
                obj, uid=metadata.uid, resource_version=metadata.resource_version, propagation_policy="Background"
            )
        except (NotFound, Conflict):
            return False
        return True


def _created(obj: Object) -> datetime:
    return obj.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)


def _known(kind: GroupVersionKind) -> Callable[[Any], bool]:
    found = _PRUNABLE.get((kind.group, kind.kind))
    if found is None:
        raise ConfigError(f"when a {kind.kind} may go is not known: say it with is_prunable=")
    return found


def _has_succeeded(pod: core.Pod) -> bool:
    return pod.status.phase == "Succeeded"


def _is_complete(job: batch.Job) -> bool:
    return any(each.type == "Complete" and each.status == "True" for each in job.status.conditions)


def _is_empty(replica_set: apps.ReplicaSet) -> bool:
    return not replica_set.spec.replicas and not replica_set.status.replicas


_PRUNABLE: Final[dict[tuple[str, str], Callable[[Any], bool]]] = {
    ("", "Pod"): _has_succeeded,
    ("batch", "Job"): _is_complete,
    ("apps", "ReplicaSet"): _is_empty,
}
