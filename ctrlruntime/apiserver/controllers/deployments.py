"""Deployments: one ReplicaSet for each pod template, rolled from old to new inside the limits of surge and
unavailability.

One reconcile makes one step, as upstream does: scale the new set up, or the old sets down, then count and write the
status. The sets' own status changes bring the key back.
"""

from __future__ import annotations

import copy
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    Relabelled,
    claim,
    controller_of,
    is_deleting,
    key_of,
    matching_keys,
    metadata,
    own_key,
    owner_reference,
    parse_time,
    safe_hash,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import AlreadyExists
from ctrlruntime.schema.trees import Document

HASH_LABEL: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
_NO_DEADLINE: Final = 2**31 - 1
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        DESIRED,
        MAXIMUM,
        "deprecated.deployment.rollback.to",
    }
)


@dataclass(frozen=True, slots=True)
class _Rollout:
    """A Deployment with its ReplicaSets as they are now: the one of the present template, and the others, oldest
    first.
    """

    deployment: Document
    new: Document | None
    old: Sequence[Document]

    @property
    def sets(self) -> list[Document]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def replicas(self) -> int:
        return int(self.deployment["spec"].get("replicas", 1))

    @property
    def max_surge(self) -> int:
        return self._limits()[0]

    @property
    def max_unavailable(self) -> int:
        return self._limits()[1]

    @property
    def total(self) -> int:
        return sum(_wanted(replica_set) for replica_set in self.sets)

    def _limits(self) -> tuple[int, int]:
        strategy = self.deployment["spec"].get("strategy") or {}
        if strategy.get("type") != "RollingUpdate":
            return 0, 0
        rolling = strategy.get("rollingUpdate") or {}
        surge = _share(rolling.get("maxSurge", "25%"), self.replicas, math.ceil)
        unavailable = _share(rolling.get("maxUnavailable", "25%"), self.replicas, math.floor)
        # Both zero would stand still for ever.
        return surge, min(self.replicas, unavailable if surge or unavailable else 1)


class Deployments:
    name = "deployment"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("deployment-controller", now)
        self._relabelled = Relabelled("Deployment")

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        owned, orphaned = self._relabelled, matching_keys(api, "apps", "deployments")
        return [
            keys_of(api.watch("apps", "deployments"), own_key),
            keys_of(api.watch("apps", "replicasets"), lambda change: (*owned(change), *orphaned(change))),
            keys_of(api.watch("", "pods"), _RecreateKeys(api)),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        deployment = api.get("apps", "deployments", *key)
        if deployment is None or not _selector(deployment):
            return None
        sets = await claim(api, deployment, "apps", "replicasets", relabelled=self._relabelled.take(key))
        rollout = _rollout(deployment, sets)
        if is_deleting(deployment):
            return await self._write_status(api, rollout)
        if not deployment["spec"].get("paused"):
            rollout = await self._roll(api, rollout)
        elif rollout.new is not None and not any(_wanted(old) for old in rollout.old):
            await self._scale(api, rollout, rollout.new, rollout.replicas)
        rollout = await self._mark_revision(api, self._reread(api, rollout))
        after = await self._write_status(api, rollout)
        await self._drop_history(api, rollout)
        return after

    async def _roll(self, api: API, rollout: _Rollout) -> _Rollout:
        if (rollout.deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
            return await self._recreate(api, rollout)
        if rollout.new is None:
            return await self._create_set(api, rollout)
        wanted = _next_size(rollout, _wanted(rollout.new))
        if wanted != _wanted(rollout.new):
            await self._scale(api, rollout, rollout.new, wanted)
        elif any(_wanted(old) for old in rollout.old):
            await self._shrink_old(api, rollout)
        await self._refresh_sizes(api, self._reread(api, rollout))
        return rollout

    async def _recreate(self, api: API, rollout: _Rollout) -> _Rollout:
        running = [old for old in rollout.old if _wanted(old)]
        for old in running:
            await self._scale(api, rollout, old, 0)
        if running or self._has_old_pods(api, rollout):
            return rollout
        if rollout.new is None:
            return await self._create_set(api, rollout)
        await self._scale(api, rollout, rollout.new, rollout.replicas)
        return rollout

    def _has_old_pods(self, api: API, rollout: _Rollout) -> bool:
        """Pods of old sets that are still going down count too: Recreate never runs two templates at once."""
        uids = {metadata(old)["uid"] for old in rollout.old}
        pods = api.list("", "pods", metadata(rollout.deployment)["namespace"])
        owners = ((pod, controller_of(pod)) for pod in pods)
        return any(
            owner is not None
            and owner.get("uid") in uids
            and (pod.get("status") or {}).get("phase") not in {"Failed", "Succeeded"}
            for pod, owner in owners
        )

    async def _create_set(self, api: API, rollout: _Rollout) -> _Rollout:
        namespace, _ = key_of(rollout.deployment)
        template = _template_with_hash(rollout.deployment)
        name = f"{metadata(rollout.deployment)['name']}-{template['metadata']['labels'][HASH_LABEL]}"
        wanted = _next_size(rollout, 0)
        try:
            created = await api.create("apps", "replicasets", namespace, _new_set(rollout, name, template, wanted))
        except AlreadyExists:
            await self._count_collision(api, rollout.deployment)
            raise
        if wanted:
            await self._events.normal(
                api, rollout.deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {wanted}"
            )
        return _Rollout(rollout.deployment, created, rollout.old)

    async def _count_collision(self, api: API, deployment: Document) -> None:
        """A foreign set has the name this template hashes to; another count gives another hash."""
        status = dict(deployment.get("status") or {})
        status["collisionCount"] = int(status.get("collisionCount") or 0) + 1
        await write_status(api, "apps", "deployments", deployment, status)

    async def _scale(self, api: API, rollout: _Rollout, replica_set: Document, wanted: int) -> None:
        present = _wanted(replica_set)
        if present == wanted:
            return
        namespace, name = key_of(replica_set)
        annotations = {DESIRED: str(rollout.replicas), MAXIMUM: str(rollout.replicas + rollout.max_surge)}
        patch: Document = {"metadata": {"annotations": annotations}, "spec": {"replicas": wanted}}
        await api.merge_patch("apps", "replicasets", namespace, name, patch)
        direction = "up" if wanted > present else "down"
        message = f"Scaled {direction} replica set {name} from {present} to {wanted}"
        await self._events.normal(api, rollout.deployment, "ScalingReplicaSet", message)

    async def _refresh_sizes(self, api: API, rollout: _Rollout) -> None:
        wanted = {DESIRED: str(rollout.replicas), MAXIMUM: str(rollout.replicas + rollout.max_surge)}
        for replica_set in rollout.sets:
            annotations = metadata(replica_set).get("annotations") or {}
            if _wanted(replica_set) and not wanted.items() <= annotations.items():
                await api.merge_patch(
                    "apps", "replicasets", *key_of(replica_set), {"metadata": {"annotations": wanted}}
                )

    async def _shrink_old(self, api: API, rollout: _Rollout) -> None:
        assert rollout.new is not None
        least = rollout.replicas - rollout.max_unavailable
        new_unavailable = _wanted(rollout.new) - _count(rollout.new, "availableReplicas")
        spare = rollout.total - least - new_unavailable
        sizes = {metadata(old)["name"]: _wanted(old) for old in rollout.old}
        # First the pods that are not available anyway, as far as the total allows; then as many as are spare by availability.
        for old in rollout.old:
            unhealthy = max(0, min(spare, _wanted(old) - _count(old, "availableReplicas")))
            sizes[metadata(old)["name"]] -= unhealthy
            spare -= unhealthy
        available = sum(_count(replica_set, "availableReplicas") for replica_set in rollout.sets)
        spare = min(available - least, spare)
        for old in rollout.old:
            healthy = max(0, min(spare, sizes[metadata(old)["name"]]))
            sizes[metadata(old)["name"]] -= healthy
            spare -= healthy
        for old in rollout.old:
            await self._scale(api, rollout, old, sizes[metadata(old)["name"]])

    async def _mark_revision(self, api: API, rollout: _Rollout) -> _Rollout:
        if rollout.new is None:
            return rollout
        latest = max((_revision(old) for old in rollout.old), default=0)
        revision = _revision(rollout.new)
        if revision <= latest:
            revision = latest + 1
            patch: Document = {"metadata": {"annotations": {REVISION: str(revision)}}}
            await api.merge_patch("apps", "replicasets", *key_of(rollout.new), patch)
        if _revision(rollout.deployment) != revision:
            # By the status door, as upstream: an annotation written by the front door would raise the generation.
            marked = copy.deepcopy(rollout.deployment)
            metadata(marked).setdefault("annotations", {})[REVISION] = str(revision)
            self._announce(marked, rollout.new)
            await api.update("apps", "deployments", marked, subresource="status")
        return self._reread(api, rollout)

    def _announce(self, deployment: Document, replica_set: Document) -> None:
        """Say in the conditions that there is a set for the template, together with its revision."""
        if deployment["spec"].get("progressDeadlineSeconds") in {None, _NO_DEADLINE}:
            return
        status: Document = deployment.setdefault("status", {})
        conditions = _Conditions(status.get("conditions") or (), timestamp(self._now()))
        name = metadata(replica_set)["name"]
        if not (replica_set.get("status") or {}).get("observedGeneration"):
            conditions.set("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        elif conditions.get("Progressing") is None:
            conditions.set("Progressing", "True", "FoundNewReplicaSet", f'Found new replica set "{name}"')
        status["conditions"] = conditions.items

    async def _drop_history(self, api: API, rollout: _Rollout) -> None:
        limit = rollout.deployment["spec"].get("revisionHistoryLimit")
        if limit is None or not _is_complete(rollout):
            return
        idle = [old for old in rollout.old if not _wanted(old) and not _count(old, "replicas") and not is_deleting(old)]
        for old in sorted(idle, key=_revision)[: max(0, len(idle) - int(limit))]:
            namespace, name = key_of(old)
            await api.delete("apps", "replicasets", namespace, name, uid=metadata(old)["uid"])

    def _reread(self, api: API, rollout: _Rollout) -> _Rollout:
        """Return the rollout as it stands after our own writes."""
        deployment = api.get("apps", "deployments", *key_of(rollout.deployment)) or rollout.deployment
        fresh = [api.get("apps", "replicasets", *key_of(replica_set)) for replica_set in rollout.sets]
        return _rollout(deployment, [replica_set for replica_set in fresh if replica_set is not None])

    async def _write_status(self, api: API, rollout: _Rollout) -> float | None:
        deployment = rollout.deployment
        status = _counts(rollout)
        before = deployment.get("status") or {}
        if before.get("collisionCount"):
            status["collisionCount"] = before["collisionCount"]
        conditions = _Conditions(before.get("conditions") or (), timestamp(self._now()))
        _set_available(conditions, status, rollout)
        after = self._set_progress(conditions, status, before, rollout)
        status["conditions"] = conditions.items
        await write_status(api, "apps", "deployments", deployment, status)
        return after

    def _set_progress(
        self, conditions: _Conditions, status: Document, before: Document, rollout: _Rollout
    ) -> float | None:
        """Set Progressing; return the seconds until the deadline would pass, if one runs."""
        deadline = rollout.deployment["spec"].get("progressDeadlineSeconds")
        if deadline in {None, _NO_DEADLINE}:
            conditions.drop("Progressing")
            return None
        if rollout.deployment["spec"].get("paused"):
            conditions.set("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
            return None
        if rollout.new is None:
            return None
        name, present = metadata(rollout.new)["name"], conditions.get("Progressing")
        reason = str(present["reason"]) if present is not None else ""
        if present is None:
            conditions.set("Progressing", "True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        elif reason == "DeploymentPaused":
            conditions.set("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed")
        elif reason == "NewReplicaSetAvailable" and name in str(present["message"]) and not _has_old_replicas(status):
            return None
        if _is_complete(rollout):
            conditions.set(
                "Progressing", "True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.'
            )
            return None
        if present is not None and _has_progressed(status, before):
            conditions.set(
                "Progressing", "True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', is_news=True
            )
        return self._check_deadline(conditions, int(deadline), name)

    def _check_deadline(self, conditions: _Conditions, deadline: int, name: str) -> float | None:
        present = conditions.get("Progressing")
        if present is None or present["reason"] in {"NewReplicaSetAvailable", "ProgressDeadlineExceeded"}:
            return None
        since = parse_time(present.get("lastUpdateTime")) or self._now()
        left = deadline - (self._now() - since).total_seconds()
        if left > 0:
            return left + 1
        conditions.set(
            "Progressing", "False", "ProgressDeadlineExceeded", f'ReplicaSet "{name}" has timed out progressing.'
        )
        return None


class _RecreateKeys:
    """Pods matter to a Deployment only under Recreate: it waits until the last one of an old template is gone."""

    def __init__(self, api: API) -> None:
        self._api = api

    def __call__(self, change: Any) -> list[Key]:
        owner = controller_of(change.object)
        if change.type != "DELETED" or owner is None or owner.get("kind") != "ReplicaSet":
            return []
        namespace = str(metadata(change.object).get("namespace", ""))
        replica_set = self._api.get("apps", "replicasets", namespace, str(owner["name"]))
        above = controller_of(replica_set) if replica_set is not None else None
        return [(namespace, str(above["name"]))] if above is not None else []


class _Conditions:
    """The condition list of a Deployment: what changes moves to the end, as upstream's does."""

    def __init__(self, present: Sequence[Document], moment: str) -> None:
        self.items = [dict(item) for item in present]
        self._moment = moment

    def get(self, kind: str) -> Document | None:
        return next((item for item in self.items if item["type"] == kind), None)

    def drop(self, kind: str) -> None:
        self.items = [item for item in self.items if item["type"] != kind]

    def set(self, kind: str, status: str, reason: str, message: str, *, is_news: bool = False) -> None:
        present = self.get(kind)
        is_same = present is not None and (present["status"], present["reason"]) == (status, reason)
        if present is not None and is_same and not is_news and present["message"] == message:
            return
        since = present["lastTransitionTime"] if present is not None and present["status"] == status else self._moment
        self.drop(kind)
        self.items.append(
            {
                "type": kind,
                "status": status,
                "lastUpdateTime": self._moment,
                "lastTransitionTime": since,
                "reason": reason,
                "message": message,
            }
        )


def _rollout(deployment: Document, sets: Sequence[Document]) -> _Rollout:
    ordered = sorted(
        sets, key=lambda replica_set: (metadata(replica_set)["creationTimestamp"], metadata(replica_set)["name"])
    )
    template = _comparable(deployment["spec"]["template"])
    new = next(
        (s for s in ordered if _comparable(s["spec"].get("template") or {}) == template and not is_deleting(s)), None
    )
    return _Rollout(deployment, new, [replica_set for replica_set in ordered if replica_set is not new])


def _comparable(template: Document) -> Document:
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": meta}


def _template_with_hash(deployment: Document) -> Document:
    template: Document = copy.deepcopy(deployment["spec"]["template"])
    collisions = (deployment.get("status") or {}).get("collisionCount") or 0
    template.setdefault("metadata", {}).setdefault("labels", {})[HASH_LABEL] = safe_hash([template, collisions])
    return template


def _new_set(rollout: _Rollout, name: str, template: Document, replicas: int) -> Document:
    deployment = rollout.deployment
    selector = copy.deepcopy(_selector(deployment))
    selector.setdefault("matchLabels", {})[HASH_LABEL] = template["metadata"]["labels"][HASH_LABEL]
    copied = {k: v for k, v in (metadata(deployment).get("annotations") or {}).items() if k not in _NOT_COPIED}
    sizes = {
        DESIRED: str(rollout.replicas),
        MAXIMUM: str(rollout.replicas + rollout.max_surge),
        REVISION: str(max((_revision(old) for old in rollout.old), default=0) + 1),
    }
    spec: Document = {"replicas": replicas, "selector": selector, "template": template}
    if deployment["spec"].get("minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": metadata(deployment)["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {**copied, **sizes},
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": spec,
    }


def _next_size(rollout: _Rollout, present: int) -> int:
    """Return how large the new set may be now."""
    if present >= rollout.replicas or (rollout.deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        return rollout.replicas
    room = rollout.replicas + rollout.max_surge - rollout.total
    return present + max(0, min(room, rollout.replicas - present))


def _counts(rollout: _Rollout) -> Document:
    sets = rollout.sets
    available = sum(_count(s, "availableReplicas") for s in sets)
    status = {
        "observedGeneration": metadata(rollout.deployment).get("generation", 0),
        "replicas": sum(_count(s, "replicas") for s in sets),
        "updatedReplicas": _count(rollout.new, "replicas") if rollout.new is not None else 0,
        "readyReplicas": sum(_count(s, "readyReplicas") for s in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, rollout.total - available),
    }
    terminating = sum(_count(s, "terminatingReplicas") for s in sets)
    return {**{name: value for name, value in status.items() if value}, "terminatingReplicas": terminating}


def _set_available(conditions: _Conditions, status: Document, rollout: _Rollout) -> None:
    if status.get("availableReplicas", 0) >= rollout.replicas - rollout.max_unavailable:
        conditions.set("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        conditions.set(
            "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
        )


def _is_complete(rollout: _Rollout) -> bool:
    counts = _counts(rollout)
    return all(counts.get(name, 0) == rollout.replicas for name in ("updatedReplicas", "replicas", "availableReplicas"))


def _has_old_replicas(status: Document) -> bool:
    return bool(status.get("replicas", 0) != status.get("updatedReplicas", 0))


def _has_progressed(status: Document, before: Document) -> bool:
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_now = status.get("replicas", 0) - status.get("updatedReplicas", 0)
    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_now < old_before or any(status.get(name, 0) > before.get(name, 0) for name in grown)


def _selector(deployment: Document) -> Document:
    found: Document = deployment["spec"].get("selector") or {}
    return found


def _wanted(replica_set: Document) -> int:
    return int(replica_set["spec"].get("replicas", 1))


def _count(replica_set: Document, name: str) -> int:
    return int((replica_set.get("status") or {}).get(name) or 0)


def _revision(obj: Document) -> int:
    text = str((metadata(obj).get("annotations") or {}).get(REVISION, "0"))
    return int(text) if text.isdigit() else 0


def _share(value: Any, total: int, rounded: Any) -> int:
    if isinstance(value, int):
        return value
    text = str(value)
    return int(rounded(int(text[:-1]) * total / 100)) if text.endswith("%") and text[:-1].isdigit() else 0
