"""Hints: short names of the x-descriptors of consoles, and the x-descriptors that follow from the type of a field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

from ctrlruntime.api import core, meta
from ctrlruntime.api.annotations import Annotation, take_apart
from ctrlruntime.generate.options import Place
from ctrlruntime.markers import Format
from ctrlruntime.spelling import did_you_mean

__all__ = ["hints_of", "hints_of_schema", "urns"]

_URN: Final = "urn:alm:descriptor:"
_UI: Final = f"{_URN}com.tectonic.ui:"
_KUBERNETES: Final = f"{_URN}io.kubernetes:"

_PLAIN: Final = (
    "advanced", "booleanSwitch", "checkbox", "endpointList", "hidden", "imagePullPolicy", "label", "namespaceSelector",
    "nodeAffinity", "number", "password", "podAffinity", "podAntiAffinity", "podCount", "podStatuses", "resourceRequirements",
    "text", "updateStrategy",
)  # fmt: skip
_WITH_ARGUMENT: Final = ("arrayFieldGroup", "fieldDependency", "fieldGroup", "select", "selector")
_ELSEWHERE: Final = {
    "conditions": f"{_URN}io.kubernetes.conditions",
    "phase": f"{_URN}io.kubernetes.phase",
    "phaseReason": f"{_URN}io.kubernetes.phase:reason",
    "prometheusEndpoint": f"{_URN}prometheusEndpoint",
    "w3Link": f"{_URN}org.w3:link",
}
_KINDS: Final = (
    "ConfigMap", "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job",
    "Namespace", "NetworkPolicy", "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PriorityClass", "ReplicaSet",
    "Role", "RoleBinding", "Secret", "Service", "ServiceAccount", "StatefulSet", "StorageClass",
)  # fmt: skip
_OF_TYPE: Final[dict[Any, str]] = {
    bool: "booleanSwitch",
    core.ResourceRequirements: "resourceRequirements",
    core.NodeAffinity: "nodeAffinity",
    core.PodAffinity: "podAffinity",
    core.PodAntiAffinity: "podAntiAffinity",
}


def urns(names: Iterable[str], place: Place) -> list[str]:
    """Return hints as URNs: `podCount`, `fieldGroup:pods`, `Secret`, or a whole URN. Raises: GenerateError for an unknown one."""
    return [_urn(name, place) for name in names]


def hints_of(annotation: Annotation, *, is_spec: bool, is_count: bool) -> list[str]:
    """Return the URNs that follow from a type. A console edits spec and only shows status, so status has few."""
    formats = [marker.name for marker in annotation.markers if isinstance(marker, Format)]
    if is_count:
        return [f"{_UI}podCount"]
    if "password" in formats:
        return [f"{_UI}password"]
    if _is_conditions(annotation):
        return [_ELSEWHERE["conditions"]]
    if not is_spec:
        return []
    if isinstance(annotation.bare, type) and annotation.bare in _OF_TYPE:
        return [f"{_UI}{_OF_TYPE[annotation.bare]}"]
    return [f"{_UI}select:{value}" for value in _choices(annotation.bare)]


def hints_of_schema(name: str, schema: Mapping[str, Any], *, is_spec: bool, is_count: bool) -> list[str]:
    """Return the URNs that follow from the schema of a field right below spec or status."""
    if is_count:
        return [f"{_UI}podCount"]
    if schema.get("format") == "password":
        return [f"{_UI}password"]
    if name == "conditions" and schema.get("type") == "array":
        return [_ELSEWHERE["conditions"]]
    if is_spec and schema.get("type") == "boolean":
        return [f"{_UI}booleanSwitch"]
    return [
        f"{_UI}select:{value}" for value in schema.get("enum") or () if is_spec and isinstance(value, str) and value
    ]


def _is_conditions(annotation: Annotation) -> bool:
    return get_origin(annotation.bare) is list and take_apart(get_args(annotation.bare)[0]).bare is meta.Condition


def _choices(bare: Any) -> list[str]:
    if get_origin(bare) is Literal:
        values = [value.value if isinstance(value, Enum) else value for value in get_args(bare)]
    elif isinstance(bare, type) and issubclass(bare, Enum):
        values = [member.value for member in bare]
    else:
        return []
    return [str(value) for value in values if not isinstance(value, bool) and value != ""]


def _urn(name: str, place: Place) -> str:
    if name.startswith("urn:"):
        return name
    word, colon, argument = name.partition(":")
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if name in _KINDS:
        return f"{_KUBERNETES}{name}"
    if name in _PLAIN or (word in _WITH_ARGUMENT and argument):
        return f"{_UI}{name}"
    if word in _WITH_ARGUMENT:
        raise place.error(f"the hint {word} requires a name. Write {word}:NAME")
    if colon and word in _PLAIN:
        raise place.error(f"the hint {word} has no argument. Remove {colon}{argument}")
    known = (*_PLAIN, *_WITH_ARGUMENT, *_ELSEWHERE, *_KINDS)
    advice = did_you_mean(word, known, f". Use one of {', '.join(known)}, or a whole urn:…")
    raise place.error(f"unknown hint {name!r}{advice}")
