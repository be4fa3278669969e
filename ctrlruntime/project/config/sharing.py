"""What a Deployment with sharding needs besides its replicas."""

from __future__ import annotations

from collections.abc import Iterator

from ctrlruntime.project.config.layout import DEPLOYMENT, KUSTOMIZATION, derived, kustomization, named, selector
from ctrlruntime.project.settings import Settings

__all__ = ["disruption_files"]


def disruption_files(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the files of `sharding`: a node that is drained ends one replica at a time, so its objects move before the next one ends."""
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": named(settings, DEPLOYMENT),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector(settings)}},
    }
    yield "pod_disruption_budget.yaml", derived(budget)
    yield KUSTOMIZATION, derived(kustomization(resources=["pod_disruption_budget.yaml"]))
