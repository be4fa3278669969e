"""The classes of node.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.node.v1 import Overhead, RuntimeClass, Scheduling

__all__ = [
    "Overhead",
    "RuntimeClass",
    "Scheduling",
]
