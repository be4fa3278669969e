"""The controllers of the embedded server: garbage collection, namespaces, and a simulated workload layer with one
node.

They enter by the same door as clients, the `API`, and are level-triggered: a watch names a key, the reconcile reads the
present state.
"""

from __future__ import annotations

from ctrlruntime.apiserver.controllers.assembly import ALL, NODES, WORKLOADS, build
from ctrlruntime.apiserver.controllers.kubelet import OUTCOME_ANNOTATION

__all__ = ["ALL", "NODES", "OUTCOME_ANNOTATION", "WORKLOADS", "build"]
