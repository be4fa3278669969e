"""Claims of devices: their defaults, and what is wrong with them (pkg/apis/resource)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.trees import inner, items, put
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import label_causes, spec_of, subdomain_causes

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_ONE: Final = "exactly one of `exactly` or `firstAvailable` is required"


def default_claim(document: Document) -> None:
    _default_requests(inner(document, "spec", "devices"))


def default_claim_template(document: Document) -> None:
    _default_requests(inner(document, "spec", "spec", "devices"))


def _default_requests(devices: Document | None) -> None:
    for request in items(devices or {}, "requests"):
        exactly = inner(request, "exactly")
        for each in (*([] if exactly is None else [exactly]), *items(request, "firstAvailable")):
            put(each, "allocationMode", "ExactCount")
            if each["allocationMode"] == "ExactCount" and not each.get("count"):
                each["count"] = 1
            for toleration in items(each, "tolerations"):
                put(toleration, "operator", "Equal")


def claim_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    return _device_causes(spec_of(document), "spec")


def claim_template_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    return _device_causes(spec_of(spec_of(document)), "spec.spec")


def _device_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    for index, request in enumerate(items(inner(spec, "devices") or {}, "requests")):
        where, exactly = f"{path}.devices.requests[{index}]", inner(request, "exactly")
        several = list(items(request, "firstAvailable"))
        yield from _name_causes(request, f"{where}.name")
        if exactly is None and not several:
            yield required(where, _ONE)
        elif exactly is not None and several:
            yield invalid_value(where, None, f"{_ONE}, but multiple fields are set")
        elif exactly is not None:
            yield from _class_causes(exactly, f"{where}.exactly")
        for number, each in enumerate(several if exactly is None else ()):
            yield from _name_causes(each, f"{where}.firstAvailable[{number}].name")
            yield from _class_causes(each, f"{where}.firstAvailable[{number}]")


def _name_causes(request: Document, path: str) -> Iterator[StatusCause]:
    if not request.get("name"):
        yield required(path)
    else:
        yield from label_causes(request["name"], path)


def _class_causes(request: Document, path: str) -> Iterator[StatusCause]:
    name = request.get("deviceClassName")
    if not name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from subdomain_causes(name, f"{path}.deviceClassName")


def first_with_admin_access(document: Document) -> str:
    """Return the path of the first request for devices that others use; empty without one."""
    spec = spec_of(document)
    devices = inner(spec, "devices") or inner(spec, "spec", "devices") or {}
    for index, request in enumerate(items(devices, "requests")):
        if (inner(request, "exactly") or {}).get("adminAccess"):
            return f"spec.devices.requests[{index}].adminAccess"
    return ""
