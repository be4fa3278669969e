"""The SidecarSet controller: counts the Pods of each set. The webhook adds the containers."""

from __future__ import annotations

import json

import ctrlruntime as ctrl
from ctrlruntime.api import core
from examples.sidecarset.api import HASH, SidecarSet, SidecarSetStatus, hash_of, selector_of
from examples.sidecarset.webhook import register_webhooks

REQUEUE_AFTER = 5.0  # seconds

ELECTION = ctrl.LeaderElection("sidecarset.apps.chinalhr.github.io")


def setup(mgr: ctrl.Manager, *, webhooks: bool = True, requeue_after: float = REQUEUE_AFTER) -> None:
    """Add the controller and the webhooks to a manager. `ctrl manifests` calls this too."""
    SidecarSetReconciler(mgr.client, requeue_after=requeue_after).setup_with_manager(mgr)
    if webhooks:
        register_webhooks(mgr)


@ctrl.rbac(groups="", resources="pods", verbs="get;list;watch")
@ctrl.rbac(groups="apps.chinalhr.github.io", resources="sidecarsets", verbs="get;list;watch")
@ctrl.rbac(groups="apps.chinalhr.github.io", resources="sidecarsets/status", verbs="update")
class SidecarSetReconciler:
    """Set `requeue_after`, the seconds between two counts of a set. Its Pods are not watched."""

    def __init__(self, client: ctrl.Client, *, requeue_after: float = REQUEUE_AFTER) -> None:
        self.client = client
        self.requeue_after = requeue_after
        self.log = ctrl.get_logger("sidecarset")

    def setup_with_manager(self, mgr: ctrl.Manager) -> None:
        ctrl.new_controller_managed_by(mgr).for_(SidecarSet).complete(self)

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        sidecar_set = await self.client.get_or_none(SidecarSet, request)
        if sidecar_set is None:
            self.log.info("set no longer exists; Pods keep their containers")
            return None
        try:
            selector = selector_of(sidecar_set)
        except ValueError as error:
            raise ctrl.TerminalError(f"spec.selector: {error}") from error
        # An empty selector matches nothing here, but everything in the API server.
        pods = [] if selector.is_nothing else [*await self.client.list(core.Pod, labels=selector)]
        status = count(sidecar_set, [pod for pod in pods if is_active(pod)])
        if status != sidecar_set.status:
            sidecar_set.status = status
            await self.client.status.update(sidecar_set)
            self.log.info(
                "status written", matched=status.matched_pods, updated=status.updated_pods, ready=status.ready_pods
            )
        return ctrl.Result(requeue_after=self.requeue_after)


def is_active(pod: core.Pod) -> bool:
    """Return whether a Pod is neither finished nor being deleted."""
    return pod.status.phase not in {"Succeeded", "Failed"} and pod.metadata.deletion_timestamp is None


def count(sidecar_set: SidecarSet, pods: list[core.Pod]) -> SidecarSetStatus:
    """Return the status of a set with these matching active Pods."""
    present = sidecar_set.metadata.annotations.get(HASH) or hash_of(sidecar_set)
    return SidecarSetStatus(
        matched_pods=len(pods),
        updated_pods=sum(injected_hash(sidecar_set, pod) == present for pod in pods),
        ready_pods=sum(is_ready(pod) for pod in pods),
    )


def injected_hash(sidecar_set: SidecarSet, pod: core.Pod) -> str | None:
    """Return the hash of the set when its containers were added to the Pod, or None if they were not."""
    try:
        hashes = json.loads(pod.metadata.annotations.get(HASH, "{}"))
    except ValueError:
        return None  # edited by another client
    return hashes.get(sidecar_set.metadata.name) if isinstance(hashes, dict) else None


def is_ready(pod: core.Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
