"""Claims of devices: their defaults, and what is wrong with them (pkg/apis/resource)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final

from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_resources import is_extended
from ctrlruntime.apiserver.registry.trees import inner, items, put
from ctrlruntime.apiserver.registry.volume_sources import driver_causes
from ctrlruntime.apiserver.registry.volume_validation import template_metadata_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value, not_supported, required, too_long
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, label_causes, qualified_name_causes, spec_of, subdomain_causes
from ctrlruntime.selector import label_value_problems

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_OPERATORS: Final = ("Equal", "Exists")
_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_LONGEST_NAME: Final = 32
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' "
    "(e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
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


def claim_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A claim of devices: after its creation its spec is only looked at for a change."""
    if old is not None:
        return _unchanged_causes(document, old, "resource.ResourceClaimSpec")
    return _device_causes(spec_of(document), "spec")


def _unchanged_causes(document: Document, old: Document, kind: str) -> Iterator[StatusCause]:
    now, then = internal(kind, spec_of(document)), internal(kind, spec_of(old))
    if now != then:
        yield invalid_value("spec", now, IMMUTABLE)


def claim_template_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """What claims of devices are made from."""
    if old is not None:
        yield from _unchanged_causes(document, old, "resource.ResourceClaimTemplateSpec")
        return
    yield from template_metadata_causes(inner(document, "spec", "metadata") or {}, "spec.metadata")
    yield from _device_causes(spec_of(spec_of(document)), "spec.spec")


def class_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from selector_list_causes(spec.get("selectors") or [], "spec.selectors")
    for index, config in enumerate(spec.get("config") or ()):
        yield from _opaque_causes((config or {}).get("opaque"), f"spec.config[{index}].opaque")
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name")


def _device_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    devices, names = inner(spec, "devices") or {}, set[str]()
    for index, request in enumerate(devices.get("requests") or ()):
        yield from _request_causes(request or {}, f"{path}.devices.requests[{index}]")
        names |= _names_of(request or {})
    for index, constraint in enumerate(devices.get("constraints") or ()):
        yield from _constraint_causes(constraint or {}, f"{path}.devices.constraints[{index}]", names)
    for index, config in enumerate(devices.get("config") or ()):
        where = f"{path}.devices.config[{index}]"
        yield from _reference_causes(config or {}, f"{where}.requests", names)
        yield from _opaque_causes((config or {}).get("opaque"), f"{where}.opaque")


def _names_of(request: Document) -> set[str]:
    """Return what constraints can name: a request, and each of its alternatives."""
    name = str(request.get("name", ""))
    return {name, *(f"{name}/{each.get('name', '')}" for each in items(request, "firstAvailable"))} - {""}


def _request_causes(request: Document, path: str) -> Iterator[StatusCause]:
    exactly, several = inner(request, "exactly"), request.get("firstAvailable") or []
    yield from label_causes(request.get("name", ""), f"{path}.name")
    if exactly is None and not several:
        yield required(path, _ONE)
    elif exactly is not None and several:
        yield invalid_value(path, None, f"{_ONE}, but multiple fields are set")
    elif exactly is not None:
        yield from _device_request_causes(exactly, f"{path}.exactly")
    for number, each in enumerate(several if exactly is None else ()):
        yield from label_causes((each or {}).get("name", ""), f"{path}.firstAvailable[{number}].name")
        yield from _device_request_causes(each or {}, f"{path}.firstAvailable[{number}]")


def _device_request_causes(request: Document, path: str) -> Iterator[StatusCause]:
    name, mode, count = request.get("deviceClassName"), request.get("allocationMode", ""), request.get("count", 0)
    if not name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from subdomain_causes(name, f"{path}.deviceClassName")
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
        yield from _toleration_causes(toleration or {}, f"{path}.tolerations[{index}]")


def selector_list_causes(selectors: Sequence[Document | None], path: str) -> Iterator[StatusCause]:
    """What selects devices: expressions about `device`."""
    for index, selector in enumerate(selectors):
        where, found = f"{path}[{index}].cel", (selector or {}).get("cel")
        if found is None:
            yield required(where)
            continue
        problem = _problem_of(found.get("expression", ""))
        if problem:
            yield invalid_value(f"{where}.expression", found.get("expression", ""), problem)


@lru_cache(maxsize=1024)
def _problem_of(expression: str) -> str:
    from ctrlruntime import cel
    from ctrlruntime.cel import types

    try:
        program = cel.compile(expression, variables={"device": types.DYN})
    except cel.CompileError as error:
        return f"compilation failed: {error}"
    kind = program.result_type.kind
    return "" if kind in {"bool", "dyn"} else "must evaluate to bool or the unknown type, not " + kind


def _toleration_causes(toleration: Document, path: str) -> Iterator[StatusCause]:
    if toleration.get("key"):
        yield from qualified_name_causes(toleration["key"], f"{path}.key")
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if operator not in _OPERATORS:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    value = toleration.get("value") or ""
    yield from (invalid_value(f"{path}.value", value, text) for text in label_value_problems(value))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, _EFFECTS)


def _constraint_causes(constraint: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    yield from _reference_causes(constraint, f"{path}.requests", names)
    given = [field for field in ("matchAttribute", "distinctAttribute") if constraint.get(field) is not None]
    if len(given) != 1:
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        yield required(path, text)
    for field in given if len(given) == 1 else ():
        where, name = f"{path}.{field}", str(constraint[field])
        yield from attribute_name_causes(name, where)
        if "/" not in name:
            yield invalid_value(where, name, "a fully qualified name must be a domain and a name separated by a slash")


def attribute_name_causes(name: str, path: str) -> Iterator[StatusCause]:
    """The name of an attribute of a device: a C identifier, after a domain or not (validateQualifiedName)."""
    domain, slash, last = name.rpartition("/")
    if slash and not domain:
        yield invalid_value(path, "", "the domain must not be empty")
    elif slash:
        yield from driver_causes(domain, path)
    if slash and not last:
        yield invalid_value(path, "", "the name must not be empty")
        return
    if len(last) > _LONGEST_NAME:
        yield too_long(path, _LONGEST_NAME)
    if not _IDENTIFIER.fullmatch(last):
        yield invalid_value(path, last, _NO_IDENTIFIER)


def _reference_causes(holder: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    for index, name in enumerate(holder.get("requests") or ()):
        where = f"{path}[{index}]"
        for part in str(name).split("/", 1):
            yield from label_causes(part, where)
        if name not in names:
            text = (
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
            )
            yield invalid_value(where, name, text)


def _opaque_causes(opaque: Document | None, path: str) -> Iterator[StatusCause]:
    if opaque is None:
        yield required(path)
        return
    driver = opaque.get("driver", "")
    yield from driver_causes(driver, f"{path}.driver") if driver else (required(f"{path}.driver"),)
    if opaque.get("parameters") is None:
        yield required(f"{path}.parameters")


def first_with_admin_access(document: Document) -> str:
    """Return the path of the first request for devices that others use; empty without one."""
    spec = spec_of(document)
    devices = inner(spec, "devices") or inner(spec, "spec", "devices") or {}
    for index, request in enumerate(items(devices, "requests")):
        if (inner(request, "exactly") or {}).get("adminAccess"):
            return f"spec.devices.requests[{index}].adminAccess"
    return ""
