"""The classes of scheduling.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.scheduling.v1 import PriorityClass

__all__ = [
    "PriorityClass",
]
