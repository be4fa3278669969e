"""Validation of where Pods may run: affinity, tolerations and spread, with kube-apiserver's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctrlruntime.apiserver.registry.trees import inner, items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    choice_causes,
    label_causes,
    qualified_name_causes,
    selector_causes,
    subdomain_causes,
)
from ctrlruntime.selector import label_value_problems

_NEEDED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = "must be in the range 1-100"
_GATED: Final = ("Lt", "Gt")
"""Operators of tolerations behind a feature gate that is off. Messages list them only to who asks for one."""


def affinity_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    affinity, where = inner(spec, "affinity") or {}, f"{path}.affinity"
    yield from _node_affinity_causes(inner(affinity, "nodeAffinity") or {}, f"{where}.nodeAffinity")
    for kind in ("podAffinity", "podAntiAffinity"):
        part = inner(affinity, kind) or {}
        for index, term in enumerate(items(part, _NEEDED)):
            yield from _pod_term_causes(term, f"{where}.{kind}.{_NEEDED}[{index}]")
        for index, weighted in enumerate(items(part, _PREFERRED)):
            place = f"{where}.{kind}.{_PREFERRED}[{index}]"
            yield from _weight_causes(weighted, place)
            yield from _pod_term_causes(inner(weighted, "podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def spread_causes(spec: Document, path: str) -> Iterator[StatusCause]:
    constraints = list(items(spec, "topologySpreadConstraints"))
    for index, constraint in enumerate(constraints):
        place = f"{path}.topologySpreadConstraints[{index}]"
        yield from _spread_causes(constraint, place, constraints[index + 1 :])


def _weight_causes(weighted: Document, path: str) -> Iterator[StatusCause]:
    if not 0 < weighted.get("weight", 0) <= 100:
        yield invalid_value(f"{path}.weight", weighted.get("weight", 0), _WEIGHT)


def _node_affinity_causes(affinity: Document, path: str) -> Iterator[StatusCause]:
    yield from node_selector_causes(inner(affinity, _NEEDED), f"{path}.{_NEEDED}")
    for index, weighted in enumerate(items(affinity, _PREFERRED)):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_causes(weighted, where)
        preference = inner(weighted, "preference") or {}
        yield from _node_term_causes(preference, f"{where}.preference", checks_values=False)


def node_selector_causes(selector: Document | None, path: str) -> Iterator[StatusCause]:
    """Which nodes a Pod needs, or a PersistentVolume."""
    if selector is not None and not selector.get("nodeSelectorTerms"):
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(items(selector or {}, "nodeSelectorTerms")):
        yield from _node_term_causes(term, f"{path}.nodeSelectorTerms[{index}]", checks_values=True)


def _node_term_causes(term: Document, path: str, *, checks_values: bool) -> Iterator[StatusCause]:
    for index, requirement in enumerate(items(term, "matchExpressions")):
        where = f"{path}.matchExpressions[{index}]"
        yield from _requirement_causes(requirement, where)
        yield from qualified_name_causes(requirement.get("key", ""), f"{where}.key")
        for number, value in enumerate(requirement.get("values") or () if checks_values else ()):
            for problem in label_value_problems(value):
                yield invalid_value(f"{where}.values[{number}]", value, problem)
    for index, requirement in enumerate(items(term, "matchFields")):
        where, key, values = f"{path}.matchFields[{index}]", requirement.get("key", ""), requirement.get("values") or ()
        if requirement.get("operator") not in {"In", "NotIn"}:
            yield invalid_value(f"{where}.operator", requirement.get("operator", ""), "not a valid selector operator")
        elif len(values) != 1:
            text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{where}.values", text)
        if key != "metadata.name":
            yield invalid_value(f"{where}.key", key, "not a valid field selector key")
        else:
            for number, value in enumerate(values):
                yield from subdomain_causes(value, f"{where}.values[{number}]")


def _requirement_causes(requirement: Document, path: str) -> Iterator[StatusCause]:
    values = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden_field(f"{path}.values", text)
        case "Gt" | "Lt":
            if len(values) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case operator:
            yield invalid_value(f"{path}.operator", operator or "", "not a valid selector operator")


def _pod_term_causes(term: Document, path: str) -> Iterator[StatusCause]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_causes(term.get(name), f"{path}.{name}")
    for namespace in term.get("namespaces") or ():
        yield from label_causes(namespace, f"{path}.namespace")
    yield from _label_key_causes(term, path)
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from qualified_name_causes(term.get("topologyKey", ""), f"{path}.topologyKey")


def _spread_causes(constraint: Document, path: str, others: Sequence[Document]) -> Iterator[StatusCause]:
    if constraint.get("maxSkew", 0) <= 0:
        yield invalid_value(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
    key, when = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from choice_causes(when, f"{path}.whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway"))
    if any((other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == (key, when) for other in others):
        yield duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}")
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            yield invalid_value(f"{path}.minDomains", domains, "must be greater than zero")
        if when != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            yield invalid_value(f"{path}.minDomains", domains, text)
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(name) is not None:
            yield from choice_causes(constraint[name], f"{path}.{name}", ("Honor", "Ignore"))
    yield from _label_key_causes(constraint, path)
    yield from selector_causes(constraint.get("labelSelector"), f"{path}.labelSelector")


def _label_key_causes(term: Document, path: str) -> Iterator[StatusCause]:
    """Labels whose values a Pod adds to the selector (ValidateMatchLabelKeysAndMismatchLabelKeys)."""
    selector, keys = inner(term, "labelSelector"), term.get("matchLabelKeys") or []
    others = term.get("mismatchLabelKeys") or []
    for field, listed in (("matchLabelKeys", keys), ("mismatchLabelKeys", others)):
        if listed and selector is None:
            yield forbidden_field(f"{path}.{field}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(listed):
            yield from qualified_name_causes(key, f"{path}.{field}[{index}]")
    seen = set((selector or {}).get("matchLabels") or ())
    for requirement in items(selector or {}, "matchExpressions"):
        key = requirement.get("key", "")
        if key in keys and key in seen:  # once for the value that was added, and once more
            yield invalid_value(f"{path}[{keys.index(key)}]", key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)
    for index, key in enumerate(keys):
        if key in others:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid_value(f"{path}.matchLabelKeys[{index}]", key, text)


def toleration_causes(toleration: Document, path: str) -> Iterator[StatusCause]:
    operator, effect, value = (toleration.get(name, "") for name in ("operator", "effect", "value"))
    if toleration.get("key"):
        yield from qualified_name_causes(toleration["key"], f"{path}.key")
    elif operator != "Exists":
        text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid_value(f"{path}.operator", operator, text)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator == "Exists":
        if value:
            yield invalid_value(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in {"", "Equal"}:
        yield from (invalid_value(f"{path}.operator", value, problem) for problem in label_value_problems(value))
    else:
        listed = ("Equal", "Exists", *_GATED) if operator in _GATED else ("Equal", "Exists")
        yield not_supported(f"{path}.operator", operator, listed)
    if effect:
        yield from choice_causes(effect, f"{path}.effect", ("NoSchedule", "PreferNoSchedule", "NoExecute"))
