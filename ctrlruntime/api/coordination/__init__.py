"""The classes of coordination.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.coordination.v1 import Lease, LeaseSpec

__all__ = [
    "Lease",
    "LeaseSpec",
]
