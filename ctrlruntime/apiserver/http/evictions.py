"""`pods/eviction`: a delete that asks the PodDisruptionBudgets first, with kube-apiserver's answers.

The budget's status is the ledger: an eviction takes one from `disruptionsAllowed` and notes the pod, so two at once
cannot both pass; the controller counts again when the pod is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.registry import DeleteOptions, Registry, Resource, WriteOptions
from ctrlruntime.errors import StatusCause, TooManyRequests
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class Evictions:
    """Evicts pods from the store of one registry."""

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now

    def evict(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> None:
        """Delete a pod if its budget allows. Nothing awaits, so budget and pod change together.

        Raises: NotFound, TooManyRequests when the budget is used up, APIStatusError (500) when two budgets cover the pod.
        """
        pod = resource.tree(self._registry.record(resource, namespace, name))
        if not _is_free(pod):
            budget = self._budget_of(namespace, pod)
            if budget is not None and not _is_expendable(pod, budget):
                self._take(budget, name, is_dry=options.dry_run)
        if not options.dry_run and pod["spec"].get("nodeName"):
            self._mark(resource, namespace, name)
        self._registry.writer.delete_directly(resource, namespace, name, options)

    def _budget_of(self, namespace: str, pod: Document) -> Document | None:
        labels = pod["metadata"].get("labels") or {}
        found = [
            budget
            for budget in self._registry.list("policy", "poddisruptionbudgets", namespace)
            if budget["spec"].get("selector") is not None
            and from_label_selector(budget["spec"]["selector"]).matches(labels)
        ]
        if len(found) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise failures.plain_internal(text)
        return found[0] if found else None

    def _take(self, budget: Document, pod: str, *, is_dry: bool) -> None:
        """Take one disruption from a budget."""
        name, status = budget["metadata"]["name"], budget.get("status") or {}
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            text = f"The disruption budget {name} is still being processed by the server."
            raise TooManyRequests(_REFUSED, causes=[StatusCause("DisruptionBudget", text)], retry_after=10)
        if not status.get("disruptionsAllowed"):
            healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            text = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
            raise TooManyRequests(_REFUSED, causes=[StatusCause("DisruptionBudget", text)])
        if is_dry:
            return
        moment = self._moment()

        def edit(old: Document | None) -> Document:
            document = old or budget
            changed: Document = document["status"]
            changed["disruptionsAllowed"] -= 1
            changed.setdefault("disruptedPods", {})[pod] = moment
            if not changed["disruptionsAllowed"]:
                none_left = {
                    "type": "DisruptionAllowed",
                    "status": "False",
                    "observedGeneration": changed.get("observedGeneration", 0),
                    "lastTransitionTime": moment,
                    "reason": "InsufficientPods",
                    "message": "",
                }
                others = [c for c in changed.get("conditions") or () if c["type"] != "DisruptionAllowed"]
                changed["conditions"] = [*others, none_left]
            return document

        budgets = self._registry.canonical("policy", "poddisruptionbudgets")
        namespace = budget["metadata"]["namespace"]
        self._registry.writer.update_directly(budgets, namespace, name, edit, WriteOptions(is_patch=True), "status")

    def _mark(self, resource: Resource, namespace: str, name: str) -> None:
        """Say on the pod why it goes."""
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": self._moment(),
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }

        def edit(old: Document | None) -> Document:
            document = old or {}
            status: Document = document.setdefault("status", {})
            others = [c for c in status.get("conditions") or () if c["type"] != "DisruptionTarget"]
            status["conditions"] = [*others, target]
            return document

        self._registry.writer.update_directly(resource, namespace, name, edit, WriteOptions(is_patch=True), "status")

    def _moment(self) -> str:
        return timestamp(self._now())


def _is_free(pod: Document) -> bool:
    """A pod that has ended, or has not begun, or goes already, disrupts nobody."""
    is_running = (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed", "Pending"}
    return bool(pod["metadata"].get("deletionTimestamp")) or not is_running


def _is_expendable(pod: Document, budget: Document) -> bool:
    """A pod that is not ready may go when enough others are healthy, or when the budget does not mind."""
    conditions = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or ()}
    if conditions.get("Ready") == "True":
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status: Document = budget.get("status") or {}
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)
