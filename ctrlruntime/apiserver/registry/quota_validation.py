"""Validation of ResourceQuotas and LimitRanges, with kube-apiserver's words (pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.apiserver.registry.core_defaults import LIMITS
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_amounts import HUGE_PAGES, may_exceed
from ctrlruntime.apiserver.registry.pod_resources import (
    COUNTED_RESOURCES,
    STANDARD_RESOURCES,
    any_name_causes,
    is_extended,
    resource_name_causes,
)
from ctrlruntime.apiserver.registry.trees import items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, required
from ctrlruntime.quantities import canonical, comparable, is_whole, parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, NON_NEGATIVE, qualified_name_causes, spec_of

_QUOTA_RESOURCES: Final = STANDARD_RESOURCES - {"storage"}
_COMPUTE: Final = frozenset(f"{side}{name}" for side in ("", "requests.", "limits.") for name in ("cpu", "memory"))
_OF_PODS: Final = _COMPUTE | {"pods"}
_SCOPES: Final = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""The scopes, and the resources to which they may be applied."""
_OPPOSITES: Final = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_CHOOSING: Final = frozenset({"PriorityClass", "VolumeAttributesClass"})
"""Scopes with values."""
_ONLY_EXISTS: Final = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
_KINDS: Final = frozenset({"Pod", "Container", "PersistentVolumeClaim"})


# ResourceQuotas


def quota_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from _amount_causes(spec.get("hard") or {}, "spec.hard")
    yield from _scope_causes(spec)
    if spec.get("scopeSelector") is not None:
        yield from _selector_causes(spec)
    if old is not None and set(spec.get("scopes") or ()) != set(spec_of(old).get("scopes") or ()):
        yield invalid_value("spec.scopes", spec.get("scopes"), IMMUTABLE)


def quota_status_causes(document: Document, _old: Document | None) -> Iterator[StatusCause]:
    status: Document = document.get("status") or {}
    for side in ("hard", "used"):
        yield from _amount_causes(status.get(side) or {}, f"status.{side}")


def _amount_causes(amounts: Document, path: str) -> Iterator[StatusCause]:
    for name, text in amounts.items():
        where = f"{path}[{name}]"
        yield from any_name_causes(name, where)
        if "/" not in name and not _is_standard(name):
            yield invalid_value(where, name, "must be a standard resource for quota")
        if parse(text) < 0:
            yield invalid_value(where, text, NON_NEGATIVE)
        if (name in COUNTED_RESOURCES or is_extended(name)) and not is_whole(text):
            yield invalid_value(where, canonical(text), "must be an integer")


def _is_standard(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.removeprefix("requests.").startswith(HUGE_PAGES)


def _does_not_fit(scope: str, hard: Document) -> Iterator[str]:
    """Yield the resources to which a scope may not be applied."""
    return (name for name in sorted(hard) if scope in _SCOPES and _is_standard(name) and name not in _SCOPES[scope])


def _scope_causes(spec: Document) -> Iterator[StatusCause]:
    scopes: list[str] = spec.get("scopes") or []
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_value("spec.scopes", scopes, "unsupported scope")
        for _ in _does_not_fit(scope, spec.get("hard") or {}):
            yield invalid_value("spec.scopes", scopes, "unsupported scope applied to resource")
    yield from (
        invalid_value("spec.scopes", scopes, "conflicting scopes") for pair in _OPPOSITES if pair <= set(scopes)
    )


def _selector_causes(spec: Document) -> Iterator[StatusCause]:
    path = "spec.scopeSelector.matchExpressions"
    expressions = list(items(spec["scopeSelector"], "matchExpressions"))
    shown = internal("core.ScopeSelector", spec["scopeSelector"])
    for one in expressions:
        scope, operator, values = one.get("scopeName", ""), one.get("operator", ""), one.get("values") or []
        if scope not in _SCOPES:
            yield invalid_value(f"{path}.scopeName", scope, "unsupported scope")
        for _ in _does_not_fit(scope, spec.get("hard") or {}):
            yield invalid_value(path, shown, "unsupported scope applied to resource")
        if scope in _SCOPES.keys() - _CHOOSING and operator != "Exists":
            yield invalid_value(f"{path}.operator", operator, _ONLY_EXISTS)
        if operator in {"In", "NotIn"}:
            if not values:
                text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{path}.values", text)
        elif operator not in {"Exists", "DoesNotExist"}:
            yield invalid_value(f"{path}.operator", operator, "not a valid selector operator")
        elif values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid_value(f"{path}.values", values, text)
    names = {one.get("scopeName") for one in expressions}
    yield from (invalid_value(path, spec.get("scopes"), "conflicting scopes") for pair in _OPPOSITES if pair <= names)


# LimitRanges


def limit_range_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    seen: set[str] = set()
    for index, item in enumerate(spec_of(document).get("limits") or ()):
        where, kind = f"spec.limits[{index}]", item.get("type", "")
        named = list(qualified_name_causes(kind, f"{where}.type"))
        yield from named
        if not named and kind not in _KINDS and "/" not in kind:
            yield invalid_value(f"{where}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from _limit_causes(item, where, kind)


def _limit_causes(item: Document, path: str, kind: str) -> Iterator[StatusCause]:
    amounts: dict[str, Document] = {side: item.get(side) or {} for side in LIMITS}
    for side in ("default", "defaultRequest"):
        if kind == "Pod" and amounts[side]:
            yield forbidden_field(f"{path}.{side}", "may not be specified when `type` is 'Pod'")
            amounts[side] = {}
    for side in LIMITS:
        for name in amounts[side]:
            where = f"{path}.{side}[{name}]"
            if kind in {"Pod", "Container"}:
                yield from resource_name_causes(name, where, "containers")
            else:
                yield from any_name_causes(name, where)
    if kind == "PersistentVolumeClaim" and "storage" not in amounts["min"].keys() | amounts["max"].keys():
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", text)
    for name in dict.fromkeys(name for side in amounts.values() for name in side):
        yield from _ordered_causes({side: of_side.get(name) for side, of_side in amounts.items()}, name, path)


_ORDER: Final = (
    ("min", "max", "min", "min value {0} is greater than max value {1}", "{0}"),
    ("min", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}", "{1}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {0} is greater than max value {1}", "{0}"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
        "{0}",
    ),
    ("min", "default", "default", "min value {0} is greater than default value {1}", "{0}"),
    ("default", "max", "default", "default value {0} is greater than max value {1}", "{1}"),
)
"""Which amount may not be above which, the field that is wrong then, what is said of it, and which amount is shown."""


def _ordered_causes(amounts: dict[str, str | None], name: str, path: str) -> Iterator[StatusCause]:
    for low, high, field, text, shown in _ORDER:
        less, more = amounts[low], amounts[high]
        if less is not None and more is not None and parse(less) > parse(more):
            yield invalid_value(f"{path}.{field}[{name}]", shown.format(less, more), text.format(less, more))
    ratio, least, most = amounts["maxLimitRequestRatio"], amounts["min"], amounts["max"]
    where = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and parse(ratio) < 1:
        yield invalid_value(where, canonical(ratio), f"ratio {canonical(ratio)} is less than 1")
    if ratio is not None and least is not None and most is not None and parse(least):
        (wanted, smallest, largest), parts = comparable(ratio, least, most)
        if wanted / parts > largest / smallest:
            text = f"ratio {canonical(ratio)} is greater than max/min = {largest / smallest:f}"
            yield invalid_value(where, canonical(ratio), text)
    default, request = amounts["default"], amounts["defaultRequest"]
    if not may_exceed(name) and default is not None and request is not None and parse(default) != parse(request):
        text = f"default value {default} must equal to defaultRequest value {request} in {name}"
        yield invalid_value(f"{path}.defaultRequest[{name}]", request, text)


__all__ = ["limit_range_causes", "quota_causes", "quota_status_causes"]
