"""The status of PodDisruptionBudgets: how many pods are healthy, how many must be, and how many may be evicted now."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    condition,
    controller_of,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    metadata,
    own_key,
    parse_time,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_PATIENCE: Final = timedelta(minutes=2)
"""So long a pod that is to be evicted counts as gone although it is still there."""
_PLURALS: Final[Mapping[str, tuple[str, str]]] = {
    "ReplicaSet": ("apps", "replicasets"),
    "StatefulSet": ("apps", "statefulsets"),
    "Deployment": ("apps", "deployments"),
    "ReplicationController": ("", "replicationcontrollers"),
}


class DisruptionBudgets:
    name = "disruption"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("controllermanager", now)
        self._told: dict[str, str] = {}

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def of_pod(change: Change) -> Iterable[Key]:
            for pod in filter(None, (change.object, change.old)):
                for budget in api.list("policy", "poddisruptionbudgets", str(metadata(pod).get("namespace", ""))):
                    if _picks(budget, pod):
                        yield key_of(budget)

        def of_scale(change: Change) -> Iterable[Key]:
            old = (change.old or {}).get("spec") or {}
            if (change.object.get("spec") or {}).get("replicas") != old.get("replicas"):
                yield from map(
                    key_of, api.list("policy", "poddisruptionbudgets", str(metadata(change.object)["namespace"]))
                )

        return [
            keys_of(api.watch("policy", "poddisruptionbudgets"), own_key),
            keys_of(api.watch("", "pods"), of_pod),
            *(keys_of(api.watch(*served), of_scale) for served in _PLURALS.values()),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        budget = api.get("policy", "poddisruptionbudgets", *key)
        if budget is None or is_deleting(budget):
            return None
        pods = [
            pod
            for pod in api.list("", "pods", key[0])
            if _picks(budget, pod) and (pod.get("status") or {}).get("phase") not in FINISHED
        ]
        if not pods:
            await self._tell(api, budget, "Normal", "NoPods", "No matching pods found")
        expected, desired = _wanted(api, budget["spec"], pods)
        disrupted, after = self._disrupted(budget, pods)
        healthy = sum(
            1
            for pod in pods
            if is_true(pod, "Ready") and not is_deleting(pod) and metadata(pod)["name"] not in disrupted
        )
        status = self._status(budget, expected, desired, healthy, disrupted)
        await write_status(api, "policy", "poddisruptionbudgets", budget, status)
        return after

    def _disrupted(self, budget: Document, pods: Sequence[Document]) -> tuple[Document, float | None]:
        """Return the evicted pods that are still to go, and the seconds until one of them counts as there again."""
        present = {metadata(pod)["name"]: pod for pod in pods}
        kept: Document = {}
        waits: list[float] = []
        for name, moment in ((budget.get("status") or {}).get("disruptedPods") or {}).items():
            left = (parse_time(moment) or self._now()) + _PATIENCE - self._now()
            if name in present and not is_deleting(present[name]) and left > timedelta():
                kept[name] = moment
                waits.append(left.total_seconds())
        return kept, min(waits, default=None)

    def _status(self, budget: Document, expected: int, desired: int, healthy: int, disrupted: Document) -> Document:
        allowed = max(0, healthy - desired) if expected > 0 else 0
        generation, before = metadata(budget).get("generation", 0), condition(budget, "DisruptionAllowed")
        text, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
        since = before["lastTransitionTime"] if before and before["status"] == text else timestamp(self._now())
        shown = {
            "type": "DisruptionAllowed",
            "status": text,
            "observedGeneration": generation,
            "lastTransitionTime": since,
            "reason": reason,
            "message": "",
        }
        others = [c for c in (budget.get("status") or {}).get("conditions") or () if c["type"] != "DisruptionAllowed"]
        status: Document = {"observedGeneration": generation}
        if disrupted:
            status["disruptedPods"] = disrupted
        return status | {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [*others, shown],
        }

    async def _tell(self, api: API, budget: Document, type_: str, reason: str, message: str) -> None:
        """Write an event once for each state of the budget."""
        uid, state = str(metadata(budget)["uid"]), f"{reason} {metadata(budget).get('generation')}"
        if self._told.get(uid) != state:
            self._told[uid] = state
            if type_ == "Normal":
                await self._events.normal(api, budget, reason, message)


def _picks(budget: Document, pod: Document) -> bool:
    """Tell whether a budget covers a pod; an empty selector covers all of the namespace, an absent one none."""
    selector = budget["spec"].get("selector")
    if selector is None:
        return False
    try:
        return from_label_selector(selector).matches(labels_of(pod))
    except ValueError:
        return False


def _wanted(api: API, spec: Document, pods: Sequence[Document]) -> tuple[int, int]:
    """Return how many pods there should be, and how many of them must be healthy."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is not None:
        expected = _expected(api, pods)
        return expected, max(0, expected - _share(most, expected))
    if isinstance(least, str):
        expected = _expected(api, pods)
        return expected, _share(least, expected)
    return len(pods), int(least or 0)


def _share(value: Any, total: int) -> int:
    if isinstance(value, int):
        return value
    text = str(value).removesuffix("%")
    return math.ceil(int(text) * total / 100) if text.isdigit() else 0


def _expected(api: API, pods: Sequence[Document]) -> int:
    """Return the sum of the scales of what controls the pods; pods without a controller do not count."""
    found: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod)
        scaled = _scaled(api, str(metadata(pod)["namespace"]), owner) if owner is not None else None
        if scaled is not None:
            found[str(metadata(scaled)["uid"])] = int((scaled.get("spec") or {}).get("replicas", 1))
    return sum(found.values())


def _scaled(api: API, namespace: str, owner: Document) -> Document | None:
    """Return the controller of a pod that has a scale: of a ReplicaSet that belongs to a Deployment, the Deployment."""
    kind = str(owner.get("kind", ""))
    if kind not in _PLURALS:
        return _custom(api, namespace, owner)
    found = api.get(*_PLURALS[kind], namespace, str(owner.get("name", "")))
    if found is None or metadata(found)["uid"] != owner.get("uid"):
        return None
    above = controller_of(found) if kind == "ReplicaSet" else None
    if above is not None and above.get("kind") == "Deployment":
        return _scaled(api, namespace, above) or found
    return found


def _custom(api: API, namespace: str, owner: Document) -> Document | None:
    """Return a custom resource that controls pods, when its spec says how many."""
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    for crd in api.list("apiextensions.k8s.io", "customresourcedefinitions"):
        names = crd["spec"]["names"]
        if (crd["spec"]["group"], names["kind"]) == (group, owner.get("kind")):
            found = api.get(group, names["plural"], namespace, str(owner.get("name", "")))
            has_scale = found is not None and isinstance((found.get("spec") or {}).get("replicas"), int)
            return found if has_scale else None
    return None
