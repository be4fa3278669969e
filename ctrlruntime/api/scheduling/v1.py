"""The classes of scheduling.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from ctrlruntime.api.object import Object

__all__ = [
    "PriorityClass",
]


class PriorityClass(
    Object,
    group="scheduling.k8s.io",
    version="v1",
    scope="Cluster",
    short_names=("pc",),
    always_sent=("value",),
):
    description: str = ""
    global_default: bool = False
    preemption_policy: str | None = None
    value: int = 0
