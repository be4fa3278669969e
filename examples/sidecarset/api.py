"""The SidecarSet kind: containers that are added to every Pod with certain labels, in all namespaces."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import core, meta
from ctrlruntime.selector import NOTHING, LabelSelector, from_label_selector

HASH = "chinalhr.github.io/sidecar-hash"
"""The annotation: on a SidecarSet its hash, on a Pod a JSON object with the hash of each injected set."""


class SidecarSetSpec(ctrl.Model):
    # The webhook checks required fields, so that it can return all errors at once.
    selector: meta.LabelSelector | None = Field(default=None, description="The Pods that get the containers. Required.")
    containers: Annotated[list[core.Container], crd.ListMap("name")] = Field(
        default_factory=list[core.Container], description="The containers that are added to a Pod."
    )


class SidecarSetStatus(ctrl.Model, always_sent=("matched_pods", "updated_pods", "ready_pods")):
    matched_pods: ctrl.Int32 = Field(default=0, description="The number of matching active Pods.")
    updated_pods: ctrl.Int32 = Field(default=0, description="The number of those with the current containers.")
    ready_pods: ctrl.Int32 = Field(default=0, description="The number of those that are ready.")


@crd.printcolumn("MATCHED", ".status.matchedPods")
@crd.printcolumn("UPDATED", ".status.updatedPods")
@crd.printcolumn("READY", ".status.readyPods")
class SidecarSet(
    ctrl.Object,
    group="apps.chinalhr.github.io",
    version="v1alpha1",
    scope="Cluster",
    olm=crd.OLM(resources=[core.Pod]),
):
    """Containers for Pods that are created later."""

    spec: SidecarSetSpec = Field(default_factory=SidecarSetSpec)
    status: SidecarSetStatus | None = None


def selector_of(sidecar_set: SidecarSet) -> LabelSelector:
    """Return the selector of a set; an empty one matches nothing. Raises: ValueError for an invalid selector."""
    tree = sidecar_set.spec.selector.to_dict() if sidecar_set.spec.selector is not None else None
    return from_label_selector(tree) if tree else NOTHING


def hash_of(sidecar_set: SidecarSet) -> str:
    """Return the hash of a set's containers. Other changes of the set do not change it."""
    containers = [container.to_dict() for container in sidecar_set.spec.containers]
    text = json.dumps(containers, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
