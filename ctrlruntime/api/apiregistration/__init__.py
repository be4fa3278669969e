"""The classes of apiregistration.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.apiregistration.v1 import (
    APIService,
    APIServiceCondition,
    APIServiceSpec,
    APIServiceStatus,
    ServiceReference,
)

__all__ = [
    "APIService",
    "APIServiceCondition",
    "APIServiceSpec",
    "APIServiceStatus",
    "ServiceReference",
]
