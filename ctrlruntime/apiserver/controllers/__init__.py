"""The controllers of the embedded server: garbage collection, namespaces, and a simulated workload layer with one
node.

They enter by the same door as clients, the `API`, and are level-triggered: a watch names a key, the reconcile reads the
present state.
"""

from __future__ import annotations

from ctrlruntime.apiserver.behaviour import LOG_ANNOTATION, OUTCOME_ANNOTATION, OUTCOMES
from ctrlruntime.apiserver.controllers.assembly import ALL, NODES, WORKLOADS, build

__all__ = ["ALL", "LOG_ANNOTATION", "NODES", "OUTCOMES", "OUTCOME_ANNOTATION", "WORKLOADS", "build"]
