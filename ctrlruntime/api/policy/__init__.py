"""The classes of policy/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.policy.v1 import Eviction, PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus

__all__ = [
    "Eviction",
    "PodDisruptionBudget",
    "PodDisruptionBudgetSpec",
    "PodDisruptionBudgetStatus",
]
