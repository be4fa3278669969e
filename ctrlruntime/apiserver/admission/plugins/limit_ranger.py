"""The plugin LimitRanger (plugin/pkg/admission/limitranger/admission.go): limits of what containers, Pods and claims ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ctrlruntime.apiserver.admission.following import Namespaced
from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.registry.pod_amounts import COMPUTE, Amounts, amounts_of, total_of
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.trees import items
from ctrlruntime.quantities import canonical, comparable
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import spec_of

_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))
Limits: TypeAlias = list[Document]
"""The `spec.limits` of a LimitRange."""
_Rule: TypeAlias = Callable[[str, str, str, Amounts, Amounts], str]
"""Takes the type, the resource, its limit, the requests and the limits; returns what is wrong, or nothing."""


class LimitRanger(Plugin):
    """Sets the defaults of a namespace's LimitRanges, and refuses what they do not allow."""

    writes = frozenset(
        {
            ("", "pods", "", "CREATE"),
            ("", "pods", "resize", "UPDATE"),
            ("", "persistentvolumeclaims", "", "CREATE"),
            ("", "persistentvolumeclaims", "", "UPDATE"),
        }
    )

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._ranges = Namespaced(registry.store.table("", "limitranges"), _limits_of)

    def has_work(self) -> bool:
        return bool(self._ranges)

    def admit(self, attributes: AdmissionAttributes) -> None:
        resource: Resource = attributes.resource
        if resource.plural == "pods":
            for limits in self._of(attributes):
                set_defaults(attributes.object or {}, limits)

    def check(self, attributes: AdmissionAttributes) -> None:
        resource: Resource = attributes.resource
        problems = pod_problems if resource.plural == "pods" else claim_problems
        for limits in self._of(attributes):
            found = list(dict.fromkeys(problems(spec_of(attributes.object), limits)))
            if found:
                raise forbidden(attributes, found[0] if len(found) == 1 else f"[{', '.join(found)}]")

    def _of(self, attributes: AdmissionAttributes) -> list[Limits]:
        """Return the LimitRanges of the namespace, in the order of their names; none for an object that is being deleted."""
        if ((attributes.old or {}).get("metadata") or {}).get("deletionTimestamp"):
            return []
        return self._ranges.of(attributes.namespace)


def _limits_of(document: Document) -> Limits:
    return spec_of(document).get("limits") or []


def set_defaults(pod: Document, limits: Limits) -> None:
    """Set what the containers of a Pod do not ask for, and say so in an annotation (PodMutateLimitFunc)."""
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            defaults["requests"].update(limit.get("defaultRequest") or {})
            defaults["limits"].update(limit.get("default") or {})
    said: list[str] = []
    for name, what in _CONTAINERS:
        for container in items(spec_of(pod), name):
            said.extend(_complete(container, defaults, what))
    if said:
        metadata: Document = pod["metadata"]
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: text}


def _complete(container: Document, defaults: dict[str, dict[str, str]], what: str) -> Iterator[str]:
    """Set what is missing; yield what was set."""
    for side, amounts in defaults.items():
        given = amounts_of(container, side)
        missing = sorted(amounts.keys() - given.keys())
        if missing:
            resources: Document = container.setdefault("resources", {})
            resources[side] = {**given, **{name: amounts[name] for name in missing}}
            yield f"{', '.join(missing)} {side.removesuffix('s')} for {what} {container.get('name', '')}"


def pod_problems(spec: Document, limits: Limits) -> Iterator[str]:
    """What is wrong with a Pod (PodValidateLimitFunc)."""
    for limit in limits:
        if limit.get("type") == "Container":
            for name, _ in _CONTAINERS:
                for container in items(spec, name):
                    yield from _problems(limit, amounts_of(container, "requests"), amounts_of(container, "limits"))
        elif limit.get("type") == "Pod":
            yield from _problems(limit, _whole(spec, "requests"), _whole(spec, "limits"))


def claim_problems(spec: Document, limits: Limits) -> Iterator[str]:
    """What is wrong with a PersistentVolumeClaim, whose own limits do not count (PersistentVolumeClaimValidateLimitFunc)."""
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            requests = amounts_of(spec, "requests")
            for side, rule in (("min", _too_little), ("max", _request_too_much)):
                for name, text in sorted((limit.get(side) or {}).items()):
                    if problem := rule("PersistentVolumeClaim", name, text, requests, {}):
                        yield problem


def _whole(spec: Document, side: str) -> Amounts:
    """What a Pod asks for: as itself says, else as the sum of its containers."""
    own = amounts_of(spec, side)
    return {**total_of(spec, side), **{name: own[name] for name in COMPUTE if name in own}}


def _problems(limit: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for side, rule in _RULES.items():
        for name, text in sorted((limit.get(side) or {}).items()):
            if problem := rule(limit["type"], name, text, requests, limits):
                yield problem


def _too_little(kind: str, name: str, least: str, requests: Amounts, limits: Amounts) -> str:
    head = f"minimum {name} usage per {kind} is {canonical(least)}"
    (request, limit, bound), _ = comparable(requests.get(name, "0"), limits.get(name, "0"), least)
    if name not in requests:
        return f"{head}.  No request is specified"
    if request < bound:
        return f"{head}, but request is {canonical(requests[name])}"
    return f"{head}, but limit is {canonical(limits[name])}" if name in limits and limit < bound else ""


def _too_much(kind: str, name: str, most: str, requests: Amounts, limits: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {canonical(most)}"
    (request, limit, bound), _ = comparable(requests.get(name, "0"), limits.get(name, "0"), most)
    if name not in limits:
        return f"{head}.  No limit is specified"
    if limit > bound:
        return f"{head}, but limit is {canonical(limits[name])}"
    return f"{head}, but request is {canonical(requests[name])}" if name in requests and request > bound else ""


def _request_too_much(kind: str, name: str, most: str, requests: Amounts, _limits: Amounts) -> str:
    head = f"maximum {name} usage per {kind} is {canonical(most)}"
    (request, bound), _ = comparable(requests.get(name, "0"), most)
    if name not in requests:
        return f"{head}.  No request is specified"
    return f"{head}, but request is {canonical(requests[name])}" if request > bound else ""


def _too_far_apart(kind: str, name: str, ratio: str, requests: Amounts, limits: Amounts) -> str:
    head = f"{name} max limit to request ratio per {kind} is {canonical(ratio)}, but"
    (request, limit, _), _ = comparable(requests.get(name, "0"), limits.get(name, "0"), ratio)
    if not request:
        return f"{head} no request is specified or request is 0"
    if not limit:
        return f"{head} no limit is specified or limit is 0"
    (bound,), parts = comparable(ratio)
    return f"{head} provided ratio is {limit / request:f}" if limit / request * parts > bound else ""


_RULES: Final[dict[str, _Rule]] = {"min": _too_little, "max": _too_much, "maxLimitRequestRatio": _too_far_apart}


__all__ = ["LimitRanger", "claim_problems", "pod_problems", "set_defaults"]
