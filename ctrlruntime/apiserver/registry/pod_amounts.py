"""Sums of what the containers of a Pod ask for, and the quality of service that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.quantities import add, parse, rounded_up
from ctrlruntime.schema.trees import Document

Amounts: TypeAlias = Mapping[str, str]
COMPUTE: Final = ("cpu", "memory")
HUGE_PAGES: Final = "hugepages-"


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Tell whether a resource is Kubernetes' own (IsNativeResource in pkg/apis/core/helper/helpers.go)."""
    return "/" not in name or "kubernetes.io/" in name


def may_exceed(name: str) -> bool:
    """Tell whether a request may be below the limit, or without one."""
    return is_native(name) and not is_huge_pages(name)


def is_of_pods(name: str) -> bool:
    """Tell whether a Pod itself may ask for a resource."""
    return name in COMPUTE or is_huge_pages(name)


def amounts_of(tree: Document, side: str) -> Amounts:
    """Return the `requests` or `limits` of a container or a Pod's spec."""
    return inner(tree, "resources", side) or {}


def total_of(spec: Document, side: str) -> dict[str, str]:
    """Return what all containers need at the same time: those that run, or an init container and the sidecars before it.

    See AggregateContainerRequests in component-helpers' resource/helpers.go.
    """
    total: dict[str, str] = {}
    for container in items(spec, "containers"):
        _add(total, amounts_of(container, side))
    sidecars: dict[str, str] = {}
    at_start: dict[str, str] = {}
    for container in items(spec, "initContainers"):
        amounts = amounts_of(container, side)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            needed = dict(sidecars)
        else:
            needed = dict(amounts)
            _add(needed, sidecars)
        _raise_to(at_start, needed)
    _raise_to(total, at_start)
    return total


def requests_of(spec: Document) -> dict[str, str]:
    """Return what a Pod asks of its node: its own requests before those of its containers, and the overhead of its runtime.

    See PodRequests in component-helpers' resource/helpers.go.
    """
    total = {**total_of(spec, "requests"), **amounts_of(spec, "requests")}
    _add(total, spec.get("overhead") or {})
    return total


def _add(total: dict[str, str], amounts: Amounts) -> None:
    for name, text in amounts.items():
        total[name] = add(total[name], text) if name in total else text


def _raise_to(total: dict[str, str], amounts: Amounts) -> None:
    for name, text in amounts.items():
        if name not in total or parse(total[name]) < parse(text):
            total[name] = text


def round_up(amounts: Document | None) -> None:
    """Make a thousandth the smallest part of an amount (SetDefaults_ResourceList in pkg/apis/core/v1/defaults.go)."""
    for name, text in (amounts or {}).items():
        if isinstance(text, str) and (text[-1:] in {"n", "u"} or "e-" in text):
            amounts[name] = rounded_up(text)  # type: ignore[index]  # there is something in it


def qos_class(spec: Document) -> str:
    """Return Guaranteed, Burstable or BestEffort: from the Pod's own resources, if it has some, or from those of its containers."""
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    parts = containers if spec.get("resources") is None else [spec]
    amounts = [(amounts_of(part, "requests"), amounts_of(part, "limits")) for part in parts]
    if not any(_amount(side, name) for pair in amounts for side in pair for name in COMPUTE):
        return "BestEffort"
    is_exact = all(
        _amount(limits, name) and _amount(requests, name) in {None, _amount(limits, name)}
        for requests, limits in amounts
        for name in COMPUTE
    )
    return "Guaranteed" if is_exact else "Burstable"


def _amount(side: Amounts, name: str) -> Any:
    try:
        return parse(side[name]) or None
    except (KeyError, ValueError):
        return None
