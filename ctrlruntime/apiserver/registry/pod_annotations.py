"""Annotations of Pods that mean something: their rules, and those that say what a field says, with kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ctrlruntime.apiserver.registry.pod_security import PROFILES, profile_causes
from ctrlruntime.apiserver.registry.trees import all_containers, inner, items
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import relative_path_causes

MIRROR: Final = "kubernetes.io/config.mirror"
SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
"""What a container's name is added to."""
APP_ARMOR_TEXT: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_TYPES: Final = {"unconfined": "Unconfined", "runtime/default": "RuntimeDefault", "docker/default": "RuntimeDefault"}
_LOCAL: Final = "localhost/"


def annotation_causes(annotations: Mapping[str, str], spec: Document, path: str) -> Iterator[StatusCause]:
    """See ValidatePodSpecificAnnotations in pkg/apis/core/validation/validation.go."""
    if MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid_value(f"{path}[{MIRROR}]", annotations[MIRROR], text)
    cost = annotations.get(_COST)
    if cost is not None and not (re.fullmatch(r"0|-\d+|[1-9]\d*", cost) and -(2**31) <= int(cost) < 2**31):
        yield invalid_value(f"{path}[{_COST}]", cost, "must be a 32bit integer")
    names = {container.get("name") for _, container in all_containers(spec, "")}
    for key, profile in annotations.items():
        is_local = profile.startswith(_LOCAL)
        if key == SECCOMP_OF_POD or key.startswith(SECCOMP):
            if is_local:
                yield from relative_path_causes(profile.removeprefix(_LOCAL), f"{path}.{key}")
            elif profile not in _TYPES:
                yield invalid_value(f"{path}.{key}", profile, "must be a valid seccomp profile")
        elif key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if name not in names:
                yield invalid_value(f"{path}[{key}]", name, "container not found")
            if not is_local and profile not in {"", "unconfined", "runtime/default"}:
                yield invalid_value(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"')


def agreement_causes(annotations: Mapping[str, str], spec: Document, path: str) -> Iterator[StatusCause]:
    """A field and the annotation that it replaced say the same, where both are there."""
    if not annotations:
        return
    of_pod = inner(spec, "securityContext") or {}
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    profile = inner(of_pod, "seccompProfile")
    yield from _match_causes(profile, annotations.get(SECCOMP_OF_POD), f"{path}.securityContext.seccompProfile")
    for place, container in all_containers(spec, path):
        context, name, where = (
            inner(container, "securityContext") or {},
            container.get("name", ""),
            f"{place}.securityContext",
        )
        profile = inner(context, "seccompProfile")
        yield from _match_causes(profile, annotations.get(f"{SECCOMP}{name}"), f"{where}.seccompProfile")
        if not is_windows:
            profile = inner(context, "appArmorProfile") or inner(of_pod, "appArmorProfile")
            yield from _match_causes(profile, annotations.get(f"{APP_ARMOR}{name}"), f"{where}.appArmorProfile")


def _match_causes(profile: Document | None, annotation: str | None, path: str) -> Iterator[StatusCause]:
    if profile is None or annotation is None:
        return
    kind, what = profile.get("type"), "apparmor" if path.endswith("appArmorProfile") else "seccomp"
    if kind == "Localhost" and annotation.startswith(_LOCAL):
        if annotation.removeprefix(_LOCAL) != profile.get("localhostProfile"):
            yield forbidden_field(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")
    elif kind in PROFILES and (_TYPES.get(annotation) != kind or (what == "apparmor" and annotation[:6] == "docker")):
        yield forbidden_field(f"{path}.type", f"{what} type in annotation and field must match")


def change_causes(annotations: Mapping[str, str], before: Mapping[str, str]) -> Iterator[StatusCause]:
    """What an update of a Pod may not change (ValidatePodSpecificAnnotationUpdates)."""
    for key in before.keys() | annotations.keys():
        what = "mirror pod annotation" if key == MIRROR else "AppArmor annotations"
        if annotations.get(key) != before.get(key) and (key == MIRROR or key.startswith(APP_ARMOR)):
            verb = "remove or update" if key in before else "add"
            yield forbidden_field(f"metadata.annotations[{key}]", f"may not {verb} {what}")


def profile_of(annotation: str) -> Document | None:
    """Return the AppArmor field that says the same as an annotation; None without one."""
    if annotation.startswith(_LOCAL):
        profile: Document = {"type": "Localhost", "localhostProfile": annotation.removeprefix(_LOCAL)}
        return None if any(profile_causes({"appArmorProfile": profile}, "")) else profile
    return {"type": _TYPES[annotation]} if annotation in {"unconfined", "runtime/default"} else None


def adopt_app_armor(document: Document) -> Iterator[str]:
    """Make AppArmor annotations of a new Pod fields, and yield warnings (applyAppArmorVersionSkew in core/pod/strategy.go)."""
    annotations, spec = document["metadata"].get("annotations") or {}, document["spec"]
    if not annotations or (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = inner(spec, "securityContext", "appArmorProfile")
    for _, container in all_containers(spec, ""):
        key = f"{APP_ARMOR}{container.get('name', '')}"
        if key not in annotations or inner(container, "securityContext", "appArmorProfile") is not None:
            continue
        profile = profile_of(annotations[key])
        if profile is None or profile != of_pod:
            yield f"metadata.annotations[{key}]: {APP_ARMOR_TEXT}"
        if profile is not None and profile != of_pod:
            container["securityContext"] = {**(container.get("securityContext") or {}), "appArmorProfile": profile}


def merge_label_keys(document: Document) -> None:
    """Make keys whose values a new Pod's labels have part of selectors (mutatePodAffinity and mutateTopologySpreadConstraints)."""
    labels, spec = document["metadata"].get("labels") or {}, document["spec"]
    terms = list(items(spec, "topologySpreadConstraints"))
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = inner(spec, "affinity", kind) or {}
        terms += items(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
        preferred = items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        terms += (inner(term, "podAffinityTerm") or {} for term in preferred)
    for term in terms:
        selector = inner(term, "labelSelector")
        added = [
            {"key": key, "operator": operator, "values": [labels[key]]}
            for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term.get(field) or ()
            if key in labels
        ]
        if selector is not None and added:
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *added]
