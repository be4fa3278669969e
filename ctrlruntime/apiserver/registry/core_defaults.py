"""Defaults of namespaces, nodes, configuration and related kinds."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from ctrlruntime.apiserver.registry.pod_amounts import round_up
from ctrlruntime.apiserver.registry.trees import ensure_spec, inner, items, put, put_absent
from ctrlruntime.schema.trees import Document

LIMITS: Final = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
"""The amounts of an item of a LimitRange, in the order in which upstream looks at them."""


def namespace(document: Document) -> None:
    metadata = document["metadata"]
    if metadata.get("name"):
        metadata.setdefault("labels", {})["kubernetes.io/metadata.name"] = metadata["name"]
    put(document.setdefault("status", {}), "phase", "Active")


def node(document: Document) -> None:
    status = document.setdefault("status", {})
    if status.get("capacity"):
        put(status, "allocatable", dict(status["capacity"]))
    # podCIDR is the first of podCIDRs, and what it says counts (Convert_v1_NodeSpec_To_core_NodeSpec).
    spec: Document = document.get("spec") or {}
    first, every = spec.get("podCIDR"), spec.get("podCIDRs") or [""]
    if first and first != every[0]:
        spec["podCIDRs"] = [first]
    elif every[0]:
        spec["podCIDR"] = every[0]


def secret(document: Document) -> None:
    _fold_string_data(document)
    put(document, "type", "Opaque")


def resource_quota(document: Document) -> None:
    round_up(inner(document, "spec", "hard"))
    for name in ("hard", "used"):
        round_up(inner(document, "status", name))


def limit_range(document: Document) -> None:
    for item in items(ensure_spec(document), "limits"):
        for name in LIMITS:
            round_up(inner(item, name))
        if item.get("type") != "Container":
            continue
        for source, target in (("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")):
            for name, value in (inner(item, source) or {}).items():
                item.setdefault(target, {}).setdefault(name, value)


def lease(document: Document) -> None:
    """A Lease has no defaults; its struct is written even when empty."""
    ensure_spec(document)


def priority_class(document: Document) -> None:
    put_absent(document, "preemptionPolicy", "PreemptLowerPriority")


def _fold_string_data(document: Document) -> None:
    given = document.pop("stringData", None)
    if isinstance(given, Mapping):
        data = document.get("data")
        folded: Document = {key: base64.b64encode(str(value).encode()).decode() for key, value in given.items()}
        document["data"] = {**(data if isinstance(data, dict) else {}), **folded}
