"""The classes of discovery.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.discovery.v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)

__all__ = [
    "Endpoint",
    "EndpointConditions",
    "EndpointHints",
    "EndpointPort",
    "EndpointSlice",
    "ForNode",
    "ForZone",
]
