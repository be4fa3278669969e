"""Validation of Nodes with kube-apiserver's words (ValidateNode and ValidateNodeUpdate in pkg/apis/core/validation)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.go_json import syntax_error
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_resources import COUNTED_RESOURCES, is_extended
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, required
from ctrlruntime.quantities import canonical, is_whole, parse
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    NON_NEGATIVE,
    choice_causes,
    network_causes,
    network_of,
    network_warnings,
    qualified_name_causes,
    spec_of,
)
from ctrlruntime.selector import label_value_problems

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINTS: Final = "scheduler.alpha.kubernetes.io/taints"
_AVOIDS: Final = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_TEXT: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), "
    "and contain only alphanumeric characters and slashes"
)


def node_warnings(document: Document, _: Document | None) -> Iterator[str]:
    spec = spec_of(document)
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, text in enumerate(spec.get("podCIDRs") or ()):
        yield from network_warnings(text, f"spec.podCIDRs[{index}]")


def node_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    spec, status = spec_of(document), document.get("status") or {}
    annotations: Mapping[str, str] = document["metadata"].get("annotations") or {}
    yield from _annotation_causes(annotations, "metadata.annotations")
    yield from _taint_causes(spec.get("taints") or (), "metadata.taints")
    yield from _amount_causes(status)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0:
        yield invalid_value("metadata.nodeSwapStatus.capacity", swap, "must be greater than zero")
    yield from _feature_causes(status.get("declaredFeatures") or ())
    yield from _network_causes(spec.get("podCIDRs") or [])
    if old is not None:
        yield from node_update_causes(document, old)


def node_update_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """What an update may not do; a write of the status is only judged by this."""
    spec, before, status = spec_of(document), spec_of(old), document.get("status") or {}
    yield from _annotation_causes(document["metadata"].get("annotations") or {}, "metadata.annotations")
    yield from _amount_causes(status)
    yield from _feature_causes(status.get("declaredFeatures") or ())
    addresses: list[Document] = status.get("addresses") or []
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            yield duplicate(f"status.addresses[{index}]", internal("core.NodeAddress", address))
    networks = before.get("podCIDRs") or [text for text in (before.get("podCIDR"),) if text]
    if networks and networks != (spec.get("podCIDRs") or []):
        given = spec.get("podCIDRs") or []
        times = sum(map(str.__ne__, given, networks)) if len(given) == len(networks) else 1
        for _ in range(times):
            yield forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        yield forbidden_field("spec.providerID", 'node updates may not change providerID except from "" to valid')
    yield from _taint_causes(spec.get("taints") or (), "metadata.taints")
    if spec.get("externalID", "") != before.get("externalID", ""):
        yield forbidden_field("spec.externalID", "may not be updated")


def _annotation_causes(annotations: Mapping[str, str], path: str) -> Iterator[StatusCause]:
    """Annotations of old versions are still read."""
    text, avoids = annotations.get(_TAINTS), annotations.get(_AVOIDS)
    if text:
        taints, problem = _read(text, list)
        if problem:
            yield invalid_value(path, _TAINTS, problem)
        else:
            yield from _taint_causes(taints, f"{path}.{_TAINTS}")
    if avoids:
        found, problem = _read(avoids, dict)
        if problem:
            yield invalid_value(f"{path}.AvoidPods", _AVOIDS, problem)
            return
        for index, entry in enumerate(found.get("preferAvoidPods") or ()):
            where = f"{path}.{_AVOIDS}[{index}].PodSignature"
            controller = (entry.get("podSignature") or {}).get("podController")
            if controller is None:
                yield required(where)
            elif not controller.get("controller"):
                yield invalid_value(f"{where}.PodController.Controller", False, "must point to a controller")


def _read(text: str, kind: type) -> tuple[Any, str]:
    problem = syntax_error(text.encode())
    found = None if problem else json.loads(text)
    return (found if isinstance(found, kind) else kind()), problem


def _taint_causes(taints: Iterable[Document], path: str) -> Iterator[StatusCause]:
    seen: set[tuple[Any, Any]] = set()
    for index, taint in enumerate(taints):
        where, effect = f"{path}[{index}]", taint.get("effect", "")
        yield from qualified_name_causes(taint.get("key", ""), f"{where}.key")
        problems = label_value_problems(str(taint.get("value", "")))
        if problems:
            yield invalid_value(f"{where}.value", taint["value"], ";".join(problems))
        if not effect:
            yield required(f"{where}.effect")
        else:
            yield from choice_causes(effect, f"{where}.effect", _EFFECTS)
        key = (taint.get("key", ""), effect)
        if key in seen:
            cause = duplicate(where, internal("core.Taint", taint))
            text = f"{cause.message}: taints must be unique by key and effect pair"
            yield StatusCause(cause.reason, text, where)
        seen.add(key)


def _amount_causes(status: Document) -> Iterator[StatusCause]:
    for side in ("capacity", "allocatable"):
        for name, text in (status.get(side) or {}).items():
            path = f"status.{side}.{name}"
            if parse(text) < 0:
                yield invalid_value(path, canonical(text), NON_NEGATIVE)
            if (name in COUNTED_RESOURCES or is_extended(name)) and not is_whole(text):
                yield invalid_value(path, canonical(text), "must be an integer")


def _feature_causes(features: Sequence[str]) -> Iterator[StatusCause]:
    for index, feature in enumerate(features):
        path = f"status.declaredFeatures[{index}]"
        if index:
            if feature == features[index - 1]:
                yield duplicate(path, feature)
            elif feature < features[index - 1]:
                yield invalid_value(path, feature, "list must be sorted alphabetically")
        why = "must be no more than 253 characters" if len(feature) > 253 else _FEATURE_TEXT
        if len(feature) > 253 or not _FEATURE.fullmatch(feature):
            yield invalid_value(path, feature, f'invalid feature name "{feature}": {why}')


def _network_causes(cidrs: list[str]) -> Iterator[StatusCause]:
    for index, text in enumerate(cidrs):
        yield from network_causes(text, f"spec.podCIDRs[{index}]")
    networks = [network_of(text) for text in cidrs]
    if len(networks) == 2 and None in networks:
        text = f"invalid CIDR[{networks.index(None)}]: <nil> (invalid CIDR address: {cidrs[networks.index(None)]})"
        text = f"Internal error: invalid PodCIDRs. failed to check with dual stack with error:{text}"
        yield StatusCause("InternalError", text, "spec.podCIDRs")
    if len(networks) > 1 and (
        len(networks) > 2 or len({network and network.version for network in networks} - {None}) < 2
    ):
        yield invalid_value("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family")


__all__ = ["node_causes", "node_update_causes", "node_warnings"]
