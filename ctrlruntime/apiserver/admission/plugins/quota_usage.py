"""What an object counts in a ResourceQuota, and which quotas count it (pkg/quota/v1/evaluator/core and apiserver's pkg/quota/v1).

Pure functions on trees: the plugin charges by them, and `controllers.resourcequotas` counts again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from ctrlruntime.apiserver.interfaces import PODS
from ctrlruntime.apiserver.registry.pod_amounts import (
    Amounts,
    amounts_of,
    is_huge_pages,
    is_native,
    is_of_pods,
    qos_class,
    total_of,
)
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.registry.storage_classes import class_of
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.quantities import add, is_whole, parse, units
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

Name: TypeAlias = tuple[str, str]
"""Group and plural of a kind."""
CLAIMS: Final = ("", "persistentvolumeclaims")
IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events"), ("", "bindings"), ("", "namespaces")})
"""What no quota counts."""
_ALIASES: Final = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
"""Kinds that are counted by their plural too."""
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = frozenset(
    {"count/pods", "pods", *_COMPUTE, *(f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE)}
)
_REQUIRED: Final = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""Each container has to ask for them where a quota counts them."""
_OF_SERVICES: Final = frozenset({"count/services", "services", "services.nodeports", "services.loadbalancers"})
_OF_CLAIMS: Final = ("persistentvolumeclaims", "requests.storage")
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS: Final = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """How the objects of a kind are counted."""

    counts: Callable[[str], bool]
    """Tells whether a resource of a quota counts such objects."""
    usage: Callable[[Document, float], dict[str, str]]
    """Returns what an object counts, at a time."""
    scopes: Mapping[str, Callable[[Document, Document], bool]]
    """By the scope's name: takes the selector and the object."""


def evaluator_of(name: Name) -> Evaluator:
    return _EVALUATORS.get(name) or _counting(name)


def scope_selectors(quota: Document) -> Iterator[Document]:
    spec = spec_of(quota)
    yield from ({"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ())
    yield from items(inner(spec, "scopeSelector") or {}, "matchExpressions")


def is_in_scope(evaluator: Evaluator, quota: Document, document: Document) -> bool:
    return all(
        (matches := evaluator.scopes.get(selector["scopeName"])) is not None and matches(selector, document)
        for selector in scope_selectors(quota)
    )


def kinds_of(resources: Iterable[str], known: Iterable[Name]) -> list[Name]:
    """Return the kinds that the resources of a quota count."""
    resources = list(resources)
    names = {PODS, SERVICES, CLAIMS, *(("", plural) for plural in _ALIASES), *map(_counted, resources)}
    return [
        name for name in sorted(names.intersection(known) - IGNORED) if any(map(evaluator_of(name).counts, resources))
    ]


def total_usage(
    quota: Document, kinds: Iterable[Name], objects: Callable[[Name], Iterable[Document]], now: float
) -> dict[str, str]:
    """Return what the objects of a quota's namespace use of it (CalculateUsage in apiserver's pkg/quota/v1/resources.go)."""
    hard: Amounts = spec_of(quota).get("hard") or {}
    total: dict[str, str] = {}
    for name in kinds:
        evaluator = evaluator_of(name)
        counted = {resource: "0" for resource in hard if evaluator.counts(resource)}
        for document in objects(name):
            if is_in_scope(evaluator, quota, document):
                counted = sum_of(counted, evaluator.usage(document, now))
        total = sum_of(total, {resource: counted[resource] for resource in counted if resource in hard})
    return total


def sum_of(amounts: Amounts, more: Amounts) -> dict[str, str]:
    return {
        **more,
        **{name: add(text, more[name]) if name in more else text for name, text in amounts.items()},
    }


def unspecified(resources: Iterable[str], pod: Document) -> str:
    """Tell what the containers of a Pod do not ask for although a quota counts it, or nothing (Constraints in pods.go)."""
    spec, required = spec_of(pod), _REQUIRED.intersection(resources)
    if any(is_of_pods(name) for side in ("requests", "limits") for name in amounts_of(spec, side)):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        given = _compute_usage(amounts_of(container, "requests"), amounts_of(container, "limits"))
        for resource in required - given.keys():
            missing.setdefault(resource, set()).add(str(container.get("name", "")))
    said = [f"{resource} for: {','.join(sorted(names))}" for resource, names in sorted(missing.items())]
    return f"must specify {'; '.join(said)}" if said else ""


# Any kind


def _counting(name: Name) -> Evaluator:
    group, plural = name
    counted = {f"count/{plural}.{group}" if group else f"count/{plural}"}
    if not group and plural in _ALIASES:
        counted.add(plural)
    return Evaluator(counted.__contains__, lambda _document, _now: dict.fromkeys(counted, "1"), {})


def _counted(resource: str) -> Name:
    plural, _, group = resource.removeprefix("count/").partition(".")
    return group, plural


# Pods


def is_limited_in_time(pod: Document) -> bool:
    seconds = spec_of(pod).get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _counts_pods(resource: str) -> bool:
    if resource in _OF_PODS or resource.removeprefix("requests.").startswith("hugepages-"):
        return True
    is_extended = not is_native(resource) or resource.startswith(f"requests.{_DEVICE_CLASS}")
    return is_extended and resource.startswith("requests.")


def _pod_usage(pod: Document, now: float) -> dict[str, str]:
    if not _is_charged(pod, now):
        return {"count/pods": "1"}
    spec = spec_of(pod)
    requests, limits = _whole(spec, "requests"), _whole(spec, "limits")
    overhead: Amounts = spec.get("overhead") or {}
    limited = {name: text for name, text in overhead.items() if name in limits and parse(limits[name])}
    return {"count/pods": "1", **_compute_usage(sum_of(requests, overhead), sum_of(limits, limited))}


def _is_charged(pod: Document, now: float) -> bool:
    """Tell whether a Pod may still use something (QuotaV1Pod in pods.go)."""
    if (pod.get("status") or {}).get("phase") in {"Failed", "Succeeded"}:
        return False
    metadata: Document = pod["metadata"]
    deletion, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    return deletion is None or grace is None or now <= datetime.fromisoformat(deletion).timestamp() + grace


def _whole(spec: Document, side: str) -> dict[str, str]:
    own = {name: text for name, text in amounts_of(spec, side).items() if is_of_pods(name)}
    return {**total_of(spec, side), **own}


def _compute_usage(requests: Amounts, limits: Amounts) -> dict[str, str]:
    used = {"pods": "1"}
    for name, text in requests.items():
        if name in _COMPUTE or is_huge_pages(name):
            used[name] = used[f"requests.{name}"] = text
        elif not is_native(name) or name.startswith(_DEVICE_CLASS):
            used[f"requests.{name}"] = text
    return {**used, **{f"limits.{name}": text for name, text in limits.items() if name in _COMPUTE}}


def _crosses_namespaces(_selector: Document, pod: Document) -> bool:
    for sort in ("podAffinity", "podAntiAffinity"):
        affinity = inner(spec_of(pod), "affinity", sort) or {}
        terms = list(items(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
        preferred = items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += [inner(term, "podAffinityTerm") or {} for term in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False


def _is_selected(selector: Document, names: set[str]) -> bool:
    """Tell whether one of the names, or their absence, is what a scope selector wants."""
    wanted = set(selector.get("values") or ())
    match selector.get("operator"):
        case "Exists":
            return bool(names)
        case "DoesNotExist":
            return not names
        case "In":
            return bool(names & wanted)
        case _:
            return not names or bool(names - wanted)


def _has_priority_class(selector: Document, pod: Document) -> bool:
    name = spec_of(pod).get("priorityClassName")
    return _is_selected(selector, {name} if name else set())


def _is_best_effort(pod: Document) -> bool:
    return ((pod.get("status") or {}).get("qosClass") or qos_class(spec_of(pod))) == "BestEffort"


# Services


def _service_usage(service: Document, _now: float) -> dict[str, str]:
    spec = spec_of(service)
    kind, ports = spec.get("type"), list(items(spec, "ports"))
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    return {
        "count/services": "1",
        "services": "1",
        "services.loadbalancers": "1" if kind == "LoadBalancer" else "0",
        "services.nodeports": str(len(ports)) if kind in {"NodePort", "LoadBalancer"} else "0",
    }


# Claims


def _counts_claims(resource: str) -> bool:
    _, separator, of_class = resource.rpartition(_BY_CLASS)
    return resource == "count/persistentvolumeclaims" or (of_class if separator else resource) in _OF_CLAIMS


def _claim_usage(claim: Document, _now: float) -> dict[str, str]:
    used = {"persistentvolumeclaims": "1"}
    storage = amounts_of(spec_of(claim), "requests").get("storage")
    if storage is not None:
        allocated = (inner(claim, "status", "allocatedResources") or {}).get("storage", "0")
        used["requests.storage"] = _in_bytes(max(storage, allocated, key=parse))
    name = class_of(claim)
    by_class = {f"{name}{_BY_CLASS}{resource}": text for resource, text in used.items()} if name else {}
    return {"count/persistentvolumeclaims": "1", **used, **by_class}


def _in_bytes(text: str) -> str:
    return text if is_whole(text) else str(units(text))


def _has_attributes_class(selector: Document, claim: Document) -> bool:
    status: Document = claim.get("status") or {}
    names = {
        spec_of(claim).get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (inner(status, "modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return _is_selected(selector, {str(name) for name in names if name})


_EVALUATORS: Final[Mapping[Name, Evaluator]] = {
    PODS: Evaluator(
        _counts_pods,
        _pod_usage,
        {
            "Terminating": lambda _selector, pod: is_limited_in_time(pod),
            "NotTerminating": lambda _selector, pod: not is_limited_in_time(pod),
            "BestEffort": lambda _selector, pod: _is_best_effort(pod),
            "NotBestEffort": lambda _selector, pod: not _is_best_effort(pod),
            "PriorityClass": _has_priority_class,
            "CrossNamespacePodAffinity": _crosses_namespaces,
        },
    ),
    SERVICES: Evaluator(_OF_SERVICES.__contains__, _service_usage, {}),
    CLAIMS: Evaluator(_counts_claims, _claim_usage, {"VolumeAttributesClass": _has_attributes_class}),
}
