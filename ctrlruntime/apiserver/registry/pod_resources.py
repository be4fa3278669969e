"""Validation of what Pods and their containers ask for, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_amounts import (
    COMPUTE,
    HUGE_PAGES,
    Amounts,
    amounts_of,
    is_huge_pages,
    is_native,
    is_of_pods,
    may_exceed,
    total_of,
)
from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.quantities import canonical, is_whole, parse, units
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    NON_NEGATIVE,
    key_problems,
    label_causes,
    qualified_name_causes,
    subdomain_causes,
)

_OF_CONTAINERS: Final = ("cpu", "memory", "ephemeral-storage")
COUNTED_RESOURCES: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
"""What a quota counts and does not measure."""
STANDARD_RESOURCES: Final = COUNTED_RESOURCES | {
    *_OF_CONTAINERS,
    *(f"{side}.{name}" for side in ("requests", "limits") for name in _OF_CONTAINERS),
    "storage",
    "requests.storage",
}
"""What a name without a domain may be (standardResources in pkg/apis/core/helper/helpers.go)."""
_NameRule: TypeAlias = Callable[[str, str], Iterator[StatusCause]]


def resource_name_causes(name: str, path: str, what: str) -> Iterator[StatusCause]:
    """The name of a resource amount (validateContainerResourceName in pkg/apis/core/validation/validation.go)."""
    yield from any_name_causes(name, path)
    if is_huge_pages(name) or name in _OF_CONTAINERS:
        return
    if "/" not in name:
        yield invalid_value(path, name, f"must be a standard resource for {what}")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(path, name, "doesn't follow extended resource name standard")


def any_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    if key_problems(name):
        yield from qualified_name_causes(name, path)
    elif (
        "/" not in name and name not in STANDARD_RESOURCES and not name.removeprefix("requests.").startswith(HUGE_PAGES)
    ):
        yield invalid_value(path, name, "must be a standard resource type or fully qualified")


def is_extended(name: str) -> bool:
    return not is_native(name) and not name.startswith("requests.") and not key_problems(f"requests.{name}")


def container_resource_causes(container: Document, path: str) -> Iterator[StatusCause]:
    return _amount_causes(container, f"{path}.resources", _container_name_causes)


def overhead_causes(amounts: Amounts | None, path: str) -> Iterator[StatusCause]:
    """What a Pod needs in addition to its containers, or what a RuntimeClass says about that (validateOverhead)."""
    return _amount_causes({"resources": {"limits": amounts or {}}}, path, _container_name_causes)


def _container_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    return resource_name_causes(name, path, "containers")


def pod_resource_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """What a Pod itself asks for (validatePodResources)."""
    resources = spec.get("resources")
    if resources is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden_field(f"{path}.resources", "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden_field(f"{path}.resources.claims", "claims may not be set for Resources at pod-level")
    yield from claim_name_causes(spec, path, spec)
    yield from _amount_causes(spec, f"{path}.resources", _pod_name_causes)
    yield from _too_small_causes(spec, path, "requests", lambda _: True)
    yield from _too_small_causes(spec, path, "limits", is_huge_pages)
    limits = amounts_of(spec, "limits")
    for index, container in enumerate(items(spec, "containers")):
        for name, text in amounts_of(container, "limits").items():
            if name in limits and parse(text) > parse(limits[name]):
                where = f"{path}.resources.containers[{index}][{name}].limits"
                yield invalid_value(where, text, f"must be less than or equal to pod limits of {limits[name]}")


def pod_claim_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    """The claims of devices that the containers of a Pod may name."""
    seen: set[str] = set()
    for index, claim in enumerate(items(spec, "resourceClaims")):
        where, name = f"{path}.resourceClaims[{index}]", claim.get("name", "")
        if not name:
            yield required(f"{where}.name")
        elif name in seen:
            yield duplicate(f"{where}.name", name)
        else:
            yield from label_causes(name, f"{where}.name")
        seen.add(name)
        given = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        shown = internal("core.PodResourceClaim", claim)
        if len(given) > 1:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid_value(where, shown, text)
        elif not given:
            yield invalid_value(where, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in given:
            yield from subdomain_causes(claim[field], f"{where}.{field}")


def claim_name_causes(container: Document, path: str, spec: Document) -> Iterator[StatusCause]:
    """The claims that a container names (validateResourceClaimNames)."""
    names = sorted({str(claim["name"]) for claim in items(spec, "resourceClaims") if claim.get("name")})
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(items(inner(container, "resources") or {}, "claims")):
        where, name, request = (
            f"{path}.resources.claims[{index}]",
            str(claim.get("name", "")),
            str(claim.get("request", "")),
        )
        if not name:
            yield required(where)
            continue
        if (name, "") in seen:
            yield duplicate(where, name)
        else:
            if request:
                yield from label_causes(request, f"{where}.request")
            if (name, request) in seen:
                yield duplicate(where, f"{name}/{request}")
            elif not request:
                yield from (duplicate(where, name) for other, _ in seen if other == name)
            seen.add((name, request))
        if name not in names:
            text = "must be one of the names in pod.spec.resourceClaims"
            more = f": {', '.join(names)}" if names else " which is empty"
            yield StatusCause("FieldValueNotFound", f'Not found: "{name}": {text}{more}', where)


def _too_small_causes(spec: Document, path: str, side: str, counts: Callable[[str], bool]) -> Iterator[StatusCause]:
    own = amounts_of(spec, side)
    for name, text in total_of(spec, side).items():
        if name in own and counts(name) and parse(text) > parse(own[name]):
            message = f"must be greater than or equal to aggregate container {side} of {text}"
            yield invalid_value(f"{path}.resources.{side}[{name}]", own[name], message)


def _pod_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    found = list(any_name_causes(name, path))
    yield from found
    if not found and not is_of_pods(name):
        yield not_supported(path, name, ("cpu", HUGE_PAGES, "memory"))


def _amount_causes(tree: Document, path: str, name_causes: _NameRule) -> Iterator[StatusCause]:
    limits, requests = amounts_of(tree, "limits"), amounts_of(tree, "requests")
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            where = f"{path}.{side}[{name}]"
            yield from name_causes(name, where)
            yield from _value_causes(name, text, where)
    for name, text in requests.items():
        yield from _request_causes(name, text, limits, path)
    names = {*limits, *requests}
    if any(map(is_huge_pages, names)) and not names.intersection(COMPUTE):
        yield forbidden_field(path, "HugePages require cpu or memory")


def _value_causes(name: str, text: str, path: str) -> Iterator[StatusCause]:
    if parse(text) < 0:
        yield invalid_value(path, text, NON_NEGATIVE)
    if is_extended(name) and not is_whole(text):
        yield invalid_value(path, canonical(text), "must be an integer")
    if is_huge_pages(name) and not _is_multiple(name, text):
        yield invalid_value(path, text, f"{text} is not positive integer multiple of {name}")


def _is_multiple(name: str, text: str) -> bool:
    size = name.removeprefix(HUGE_PAGES)
    try:
        return is_whole(size) and units(size) > 0 and is_whole(text) and not units(text) % units(size)
    except ValueError:
        return False


def _request_causes(name: str, request: str, limits: Amounts, path: str) -> Iterator[StatusCause]:
    limit = limits.get(name)
    if limit is None:
        if not may_exceed(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif not may_exceed(name) and parse(request) != parse(limit):
        yield invalid_value(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif parse(request) > parse(limit):
        yield invalid_value(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")
