"""Claims of devices, what they are made from, and classes: their defaults, and what is wrong with them (pkg/apis/resource).

Upstream validates these kinds twice: by hand and by declarations. The declarations are all alpha in 1.36, so they say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from ctrlruntime.apiserver.registry.device_parts import (
    configuration_causes,
    full_attribute_name_causes,
    listed_causes,
    name_of,
    set_causes,
    toleration_causes,
)
from ctrlruntime.apiserver.registry.device_selectors import selector_list_causes
from ctrlruntime.apiserver.registry.internal_types import internal, is_equal
from ctrlruntime.apiserver.registry.pod_resources import is_extended
from ctrlruntime.apiserver.registry.trees import inner, items, put
from ctrlruntime.apiserver.registry.volume_validation import template_metadata_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, label_causes, spec_of, subdomain_causes

CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
CLAIM_TEMPLATES: Final = ("resource.k8s.io", "resourceclaimtemplates")
_MOST: Final = 32
"""Requests, constraints and configurations of a claim."""
_MOST_ALTERNATIVES: Final = 8
_ONE: Final = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE: Final = (
    'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
)
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def default_claim(document: Document) -> None:
    _default_requests(inner(document, "spec", "devices"))
    for result in items(inner(document, "status", "allocation", "devices") or {}, "results"):
        _default_tolerations(result)


def default_claim_template(document: Document) -> None:
    _default_requests(inner(document, "spec", "spec", "devices"))


def _default_requests(devices: Document | None) -> None:
    for request in items(devices or {}, "requests"):
        exactly = inner(request, "exactly")
        for each in (*([] if exactly is None else [exactly]), *items(request, "firstAvailable")):
            put(each, "allocationMode", "ExactCount")
            if each["allocationMode"] == "ExactCount" and not each.get("count"):
                each["count"] = 1
            _default_tolerations(each)


def _default_tolerations(tree: Document) -> None:
    for toleration in items(tree, "tolerations"):
        put(toleration, "operator", "Equal")


def claim_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A claim of devices: after its creation its spec is only looked at for a change."""
    if old is not None:
        return _unchanged_causes(document, old, "resource.ResourceClaimSpec")
    return _claim_spec_causes(spec_of(document), "spec")


def _unchanged_causes(document: Document, old: Document, kind: str) -> Iterator[StatusCause]:
    now, then = internal(kind, spec_of(document)), internal(kind, spec_of(old))
    if not is_equal(now, then):
        yield invalid_value("spec", now, IMMUTABLE)


def claim_template_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """What claims of devices are made from: unlike a claim, it is looked at again before its spec is found changed."""
    yield from template_metadata_causes(inner(document, "spec", "metadata") or {}, "spec.metadata")
    yield from _claim_spec_causes(spec_of(spec_of(document)), "spec.spec")
    if old is not None:
        yield from _unchanged_causes(document, old, "resource.ResourceClaimTemplateSpec")


def class_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, before = spec_of(document), spec_of(old)
    config = spec.get("config") or []
    is_stored = old is not None and config == (before.get("config") or [])

    def configured(each: Document | None, path: str) -> Iterator[StatusCause]:
        return configuration_causes(each, path, is_stored=is_stored)

    yield from selector_list_causes(spec.get("selectors") or [], "spec.selectors")
    yield from listed_causes(config, "spec.config", _MOST, configured)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def _claim_spec_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    devices, where = inner(spec, "devices") or {}, f"{path}.devices"
    names = names_of_requests(spec)

    def constrained(constraint: Document | None, path: str) -> Iterator[StatusCause]:
        return _constraint_causes(constraint or {}, path, names)

    def configured(config: Document | None, path: str) -> Iterator[StatusCause]:
        return claim_configuration_causes(config or {}, path, names)

    yield from set_causes(devices.get("requests") or [], f"{where}.requests", _MOST, _request_causes, name_of)
    yield from listed_causes(devices.get("constraints") or [], f"{where}.constraints", _MOST, constrained)
    yield from listed_causes(devices.get("config") or [], f"{where}.config", _MOST, configured)


def names_of_requests(spec: Document) -> Collection[str]:
    """Return what constraints and results can name: each request of a claim, and each of its alternatives."""
    names: set[str] = set()
    for request in (inner(spec, "devices") or {}).get("requests") or ():
        name = name_of(request)
        names |= {name, *(f"{name}/{name_of(each)}" for each in (request or {}).get("firstAvailable") or ())}
    return names


def _request_causes(request: Document | None, path: str) -> Iterator[StatusCause]:
    request = request or {}
    exactly, several = inner(request, "exactly"), request.get("firstAvailable") or []
    yield from label_causes(name_of(request), f"{path}.name")
    if exactly is not None and several:
        yield invalid_value(path, None, f"{_ONE}, but multiple fields are set")
    elif exactly is not None:
        yield from _device_request_causes(exactly, f"{path}.exactly")
    elif several:
        yield from set_causes(several, f"{path}.firstAvailable", _MOST_ALTERNATIVES, _alternative_causes, name_of)
    else:
        yield required(path, _ONE)


def _alternative_causes(request: Document | None, path: str) -> Iterator[StatusCause]:
    yield from label_causes(name_of(request), f"{path}.name")
    yield from _device_request_causes(request or {}, path)


def _device_request_causes(request: Document, path: str) -> Iterator[StatusCause]:
    name, mode = request.get("deviceClassName") or "", request.get("allocationMode") or ""
    count = request.get("count") or 0
    yield from subdomain_causes(name, f"{path}.deviceClassName") if name else (required(f"{path}.deviceClassName"),)
    yield from selector_list_causes(request.get("selectors") or [], f"{path}.selectors")
    if mode == "ExactCount":
        if count <= 0:
            yield invalid_value(f"{path}.count", count, "must be greater than zero")
    elif mode == "All":
        if count:
            yield invalid_value(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    else:
        yield not_supported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        yield from toleration_causes(toleration, f"{path}.tolerations[{index}]")


def _constraint_causes(constraint: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    yield from _reference_list_causes(constraint, f"{path}.requests", names)
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:  # of both, upstream looks at the first
            yield from full_attribute_name_causes(str(constraint[field]), f"{path}.{field}")
            return
    yield required(path, _ONE_ATTRIBUTE)


def claim_configuration_causes(config: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    """A configuration for the devices of some requests."""
    yield from _reference_list_causes(config, f"{path}.requests", names)
    yield from configuration_causes(config, path)


def _reference_list_causes(holder: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    def referred(name: Any, path: str) -> Iterator[StatusCause]:
        return reference_causes(name, path, names)

    return set_causes(holder.get("requests") or [], path, _MOST, referred, str)


def reference_causes(name: str, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    """The name of a request, or of one of its alternatives (validateRequestNameRef)."""
    parts = name.split("/")
    for part in parts if len(parts) <= 2 else ():
        yield from label_causes(part, path)
    if name not in names:
        yield invalid_value(path, name, _NO_REQUEST)


__all__ = [
    "CLAIMS",
    "CLAIM_TEMPLATES",
    "claim_causes",
    "claim_configuration_causes",
    "claim_template_causes",
    "class_causes",
    "default_claim",
    "default_claim_template",
    "names_of_requests",
    "reference_causes",
]
