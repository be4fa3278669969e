"""`pods/eviction`: a delete that asks the PodDisruptionBudgets first, with kube-apiserver's answers.

The budget's status is the ledger: an eviction takes one from `disruptionsAllowed` and notes the pod, so two at once
cannot both pass; the controller counts again when the pod is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.options import check_delete_options, options_to_delete
from ctrlruntime.apiserver.http.posted import Posted
from ctrlruntime.apiserver.interfaces import PODS
from ctrlruntime.apiserver.registry import DeleteOptions, Registry, Resource, WriteOptions
from ctrlruntime.apiserver.registry.bindings import set_condition
from ctrlruntime.apiserver.registry.deletion import check_preconditions
from ctrlruntime.errors import BadRequest, StatusCause, TooManyRequests
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_IGNORES: Final = "ignoreStoreReadErrorWithClusterBreakingPotential"
_MOST_DISRUPTED: Final = 2000
_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


class Evictions(Posted):
    """Evicts pods from the store of one registry."""

    kind = Resource("policy", "v1", "evictions", "eviction", "Eviction", namespaced=True, verbs=("create",))
    also = ("policy/v1beta1",)

    def __init__(self, registry: Registry, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now

    def check(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> None:
        if body["metadata"].get("name", "") != target.name:
            raise BadRequest("name in URL does not match name in Eviction object")
        given: Document = body.get("deleteOptions") or {}
        if given.get(_IGNORES):
            text = "can not be set for pod eviction, try after removing the option"
            cause = invalid_value(f"deleteOptions.{_IGNORES}", True, text)
            raise failures.invalid(self.kind.kind, self.kind.group, target.name, [cause])
        asked = call.queries.get("dryRun") or []
        mine: list[str] = given.get("dryRun") or []
        if asked and mine and asked != mine:
            shown = f"[{' '.join(asked)}] and [{' '.join(mine)}]"
            raise failures.plain_internal(f"Non-matching dry-run options in request and content: {shown}")
        if body.get("deleteOptions") is not None and asked:
            body["deleteOptions"] = {**given, "dryRun": asked}

    def act(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> Document | None:
        """Delete a pod if its budget allows. Nothing awaits, so budget and pod change together.

        Raises: NotFound, TooManyRequests when the budget is used up, APIStatusError (500) when two budgets cover the pod.
        """
        given: Document = body.get("deleteOptions") or {"dryRun": call.queries.get("dryRun")}
        pods, key = self._registry.canonical(*PODS), (target.namespace, target.name)
        pod = pods.tree(self._registry.record(pods, *key))
        wanted = options_to_delete(call, given)
        if not _is_free(pod):
            budget = self._budget_of(target.namespace, pod)
            if budget is not None and _is_expendable(pod, budget):
                # Upstream sets the version at which it has seen the pod to be unready in place of the client's.
                wanted.resource_version = None
            elif budget is not None:
                self._take(budget, target.name, is_dry=wanted.dry_run)
        if not wanted.dry_run:
            self._mark(pods, key, wanted)
            wanted.resource_version = None  # it was as the client wanted, and is another one since
        check_delete_options(given)
        self._registry.writer.delete_directly(pods, *key, wanted)
        return None

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
        if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
            text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise failures.forbidden("poddisruptionbudget", "policy", name, text)
        if not status.get("disruptionsAllowed"):
            raise TooManyRequests(_REFUSED, causes=[StatusCause("DisruptionBudget", _why_none(name, status))])
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

    def _mark(self, pods: Resource, key: tuple[str, str], options: DeleteOptions) -> None:
        """Say on the pod why it goes. Raises: Conflict when it is not the one the client means."""
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "lastProbeTime": None,
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        meant = replace(options, uid=options.uid or None, resource_version=options.resource_version or None)
        check_preconditions(pods, self._registry.record(pods, *key), meant)

        def edit(pod: Document) -> Document:
            set_condition(pod["status"], target, self._moment())
            return pod

        self._registry.writer.replace(pods, *key, edit)

    def _moment(self) -> str:
        return timestamp(self._now())


def _why_none(name: str, status: Document) -> str:
    """Return why a budget allows no disruption (checkAndDecrement in pkg/registry/core/pod/storage/eviction.go)."""
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    condition = conditions.get("DisruptionAllowed", {})
    message = condition.get("message") if condition.get("status") == "False" else ""
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    if message and condition.get("reason") == "SyncFailed":
        return f"{refused} because it failed sync: {message}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"{refused} ({condition.get('reason', '')}): {message}" if message else refused


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
