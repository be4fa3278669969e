"""The classes of node.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.core.v1 import Toleration
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Quantity

__all__ = [
    "Overhead",
    "RuntimeClass",
    "Scheduling",
]


class Overhead(Model):
    pod_fixed: dict[str, Quantity] = Field(default_factory=dict)


class Scheduling(Model):
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[Toleration] = Field(default_factory=list)


class RuntimeClass(Object, group="node.k8s.io", version="v1", scope="Cluster", always_sent=("handler",)):
    handler: str = ""
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None
