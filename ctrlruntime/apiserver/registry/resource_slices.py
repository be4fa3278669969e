"""Slices of a pool of devices: their defaults, and what is wrong with them (pkg/apis/resource)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from ctrlruntime import quantities
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.registry.device_parts import (
    attribute_name_causes,
    binding_causes,
    listed_causes,
    name_of,
    pool_name_causes,
    required_driver_causes,
    set_causes,
    taint_causes,
)
from ctrlruntime.apiserver.registry.internal_types import internal
from ctrlruntime.apiserver.registry.pod_placement import node_selector_causes
from ctrlruntime.apiserver.registry.trees import inner, items, put_absent
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, required, too_long, too_many
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, at, label_causes, spec_of, subdomain_causes
from ctrlruntime.selector import utf8_length

SLICES: Final = ("resource.k8s.io", "resourceslices")
_MOST_DEVICES: Final = 128
_MOST_ADVANCED_DEVICES: Final = 64
"""Of a slice with a device that has taints or consumes counters."""
_MOST_COUNTER_SETS: Final = 8
_MOST_CONSUMPTIONS: Final = 2
_MOST_COUNTERS: Final = 32
_MOST_TAINTS: Final = 16
_MOST_PROPERTIES: Final = 32
_MOST_ATTRIBUTES: Final = 48
_MOST_VALUES: Final = 10
_LONGEST_VALUE: Final = 64
_LONGEST_LABEL: Final = 63
_LONGEST_PROPERTY: Final = 63 + 1 + 32
_SET_TO_TRUE: Final = "must be either unset or set to true"
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = "[0-9a-zA-Z-]+"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)
_NODES_OF_SLICE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_NODES_OF_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_NO_NODES_OF_DEVICE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
    "the ResourceSlice spec"
)
_TWO_POLICIES: Final = (
    'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
)


def default_slice(document: Document) -> None:
    """Set when a taint was added: to now, as SetDefaults_DeviceTaint does it."""
    for device in items(spec_of(document), "devices"):
        for taint in items(device, "taints"):
            if taint.get("timeAdded") is None:
                put_absent(taint, "timeAdded", timestamp(time.time()))


def slice_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """A slice of a pool: of one driver, for some nodes, with devices or the counters that devices share."""
    spec, before = spec_of(document), spec_of(old)
    pool = inner(spec, "pool") or {}
    yield from required_driver_causes(spec.get("driver") or "", "spec.driver")
    yield from _pool_causes(pool)
    for name in ("pool.name", "driver", "nodeName") if old is not None else ():
        if at(spec, name) != at(before, name):
            yield invalid_value(f"spec.{name}", at(spec, name), IMMUTABLE)
    yield from _node_causes(spec)
    if has_two_lists(document):
        yield invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from _device_list_causes(spec, before)
    counters = spec.get("sharedCounters") or []
    yield from set_causes(counters, "spec.sharedCounters", _MOST_COUNTER_SETS, _counter_set_causes("name"), name_of)


def has_two_lists(document: Document) -> bool:
    """Tell whether a slice has devices and counters, if only empty lists of them."""
    spec = spec_of(document)
    return spec.get("sharedCounters") is not None and spec.get("devices") is not None


def _pool_causes(pool: Document) -> Iterator[StatusCause]:
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    yield from pool_name_causes(name_of(pool), "spec.pool.name")
    if count <= 0:
        yield invalid_value("spec.pool.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield invalid_value("spec.pool.generation", generation, "must be greater than or equal to zero")


# Nodes


def _node_causes(spec: Document) -> Iterator[StatusCause]:
    yield from _node_name_causes(spec, "spec", "must be either unset or set to a non-empty string")
    selector = spec.get("nodeSelector")
    yield from node_selector_causes(selector, "spec.nodeSelector")
    if selector is not None and len(selector.get("nodeSelectorTerms") or ()) != 1:
        shown = internal("[]core.NodeSelectorTerm", selector.get("nodeSelectorTerms"))
        yield invalid_value("spec.nodeSelector.nodeSelectorTerms", shown, "must have exactly one node selector term")
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name) is False:
            yield invalid_value(f"spec.{name}", False, _SET_TO_TRUE)
    given = _given(spec, "nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    if not given:
        yield required("spec", _NODES_OF_SLICE)
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield invalid_value("spec", shown, f"{_NODES_OF_SLICE}, but multiple fields are set")


def _node_name_causes(tree: Document, path: str, empty: str) -> Iterator[StatusCause]:
    name = tree.get("nodeName")
    if name == "":
        yield invalid_value(f"{path}.nodeName", name, empty)
    elif name is not None:
        yield from subdomain_causes(name, f"{path}.nodeName")


def _given(tree: Document, *names: str) -> list[str]:
    return [f"`{name}`" for name in names if tree.get(name) not in (None, "", False)]


def _device_node_causes(device: Document, path: str, *, are_own: bool) -> Iterator[StatusCause]:
    names = ("nodeName", "nodeSelector", "allNodes")
    if not are_own:
        if any(device.get(name) is not None for name in names):
            yield invalid_value(path, None, _NO_NODES_OF_DEVICE)
        return
    yield from _node_name_causes(device, path, "must not be empty")
    yield from node_selector_causes(device.get("nodeSelector"), f"{path}.nodeSelector")
    if device.get("allNodes") is False:
        yield invalid_value(f"{path}.allNodes", False, _SET_TO_TRUE)
    given = _given(device, *names)
    if not given:
        yield required(path, _NODES_OF_DEVICE)
    elif len(given) > 1:
        yield invalid_value(path, f"{{{', '.join(given)}}}", _NODES_OF_DEVICE)


# Devices


def _device_list_causes(spec: Document, before: Document) -> Iterator[StatusCause]:
    devices: list[Document | None] = spec.get("devices") or []
    is_advanced = any(each and (each.get("taints") or each.get("consumesCounters")) for each in devices)
    most = _MOST_ADVANCED_DEVICES if is_advanced else _MOST_DEVICES
    old: dict[str, Document] = {}
    for device in items(before, "devices"):
        old.setdefault(name_of(device), device)

    def rule(device: Document | None, path: str) -> Iterator[StatusCause]:
        are_own = spec.get("perDeviceNodeSelection") is True
        return _device_causes(device or {}, old.get(name_of(device)), path, has_own_nodes=are_own)

    return set_causes(devices, "spec.devices", most, rule, name_of)


def _device_causes(device: Document, old: Document | None, path: str, *, has_own_nodes: bool) -> Iterator[StatusCause]:
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    yield from label_causes(name_of(device), f"{path}.name")
    count = len(attributes) + len(capacities)
    if count > _MOST_PROPERTIES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_PROPERTIES}"
        yield invalid_value(path, count, text)
    if len(attributes) > _MOST_ATTRIBUTES:
        text = f"the total number of attribute values must not exceed {_MOST_ATTRIBUTES}"
        yield invalid_value(path, len(attributes), text)
    capacity_rule = _shared_capacity_causes if device.get("allowMultipleAllocations") else _capacity_causes
    for name, found, rule in (("attributes", attributes, _attribute_causes), ("capacity", capacities, capacity_rule)):
        yield from _map_causes(found, f"{path}.{name}", _LONGEST_PROPERTY, attribute_name_causes, rule)
    taints = device.get("taints") or []
    if old is None or taints != (old.get("taints") or []):
        yield from listed_causes(taints, f"{path}.taints", _MOST_TAINTS, taint_causes)
    yield from set_causes(
        device.get("consumesCounters") or [],
        f"{path}.consumesCounters",
        _MOST_CONSUMPTIONS,
        _counter_set_causes("counterSet"),
        lambda each: (each or {}).get("counterSet") or "",
    )
    yield from _device_node_causes(device, path, are_own=has_own_nodes)
    yield from binding_causes(device, path)


def _map_causes(
    found: Mapping[str, Document | None],
    path: str,
    longest: int,
    key_rule: Callable[[str, str], Iterator[StatusCause]],
    rule: Callable[[Document, str], Iterator[StatusCause]],
) -> Iterator[StatusCause]:
    """Yield what is wrong with the keys and items of a map (validateMap); upstream has no order."""
    for key in sorted(found):
        yield from key_rule(key, path)
        yield from rule(found[key] or {}, f"{path}[{_shortened(key, longest)}]")


def _shortened(key: str, longest: int) -> str:
    if utf8_length(key) <= longest:
        return key
    remaining = longest - len("...")
    return f"{key[: (remaining + 1) // 2]}...{key[len(key) - remaining // 2 :]}"


def _attribute_causes(attribute: Document, path: str) -> Iterator[StatusCause]:
    text, version = attribute.get("string"), attribute.get("version")
    if text is not None and utf8_length(text) > _LONGEST_VALUE:
        yield too_long(f"{path}.string", _LONGEST_VALUE)
    if version is not None:
        if not _VERSION.fullmatch(version):
            yield invalid_value(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
        if utf8_length(version) > _LONGEST_VALUE:
            yield too_long(f"{path}.version", _LONGEST_VALUE)
    given = [name for name in ("bool", "int", "string", "version") if attribute.get(name) is not None]
    if len(given) != 1:
        shown = internal("resource.DeviceAttribute", attribute) if given else ""
        yield invalid_value(path, shown, "exactly one value must be specified")


def _counter_set_causes(name: str) -> Callable[[Document | None, str], Iterator[StatusCause]]:
    """Return the rule of counters that devices share, or of those that one consumes."""

    def rule(found: Document | None, path: str) -> Iterator[StatusCause]:
        given: Document = found or {}
        named, counters = given.get(name) or "", given.get("counters") or {}
        yield from label_causes(named, f"{path}.{name}") if named else (required(f"{path}.{name}"),)
        if not counters:
            yield required(f"{path}.counters")
        elif len(counters) > _MOST_COUNTERS:
            yield too_many(f"{path}.counters", len(counters), _MOST_COUNTERS)
        else:
            yield from _map_causes(counters, f"{path}.counters", _LONGEST_LABEL, label_causes, _no_causes)

    return rule


def _no_causes(_: Document, __: str) -> Iterator[StatusCause]:
    return iter(())


# Capacities


def _capacity_causes(capacity: Document, path: str) -> Iterator[StatusCause]:
    if capacity.get("requestPolicy") is not None:
        yield forbidden_field(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _shared_capacity_causes(capacity: Document, path: str) -> Iterator[StatusCause]:
    """How much of a capacity a request may take (validateRequestPolicy)."""
    policy, where = capacity.get("requestPolicy") or {}, f"{path}.requestPolicy"
    values, interval = policy.get("validValues") or [], policy.get("validRange")
    largest, default = capacity.get("value") or "0", policy.get("default")
    if values and interval is not None:
        yield forbidden_field(where, _TWO_POLICIES)
    elif values or interval is not None:
        name = "validValues" if values else "validRange"
        if default is None:
            yield required(f"{where}.default", f"required when {name} is defined")
        elif interval is None:
            yield from _valid_values_causes(values, default, largest, f"{where}.{name}")
        else:
            yield from _range_causes(interval, default, largest, f"{where}.{name}")


def _is_less(first: Any, second: Any) -> bool:
    return quantities.parse(first) < quantities.parse(second)


def _valid_values_causes(values: list[Any], default: Any, largest: Any, path: str) -> Iterator[StatusCause]:
    for index, (value, following) in enumerate(pairwise(values), 1):
        if _is_less(following, value):
            text = "values must be sorted in ascending order"
            yield invalid_value(f"{path}[{index}]", quantities.canonical(following), text)

    def rule(value: Any, path: str) -> Iterator[StatusCause]:
        if _is_less(largest, value):
            text = f"option is larger than capacity value: {quantities.canonical(largest)}"
            yield invalid_value(path, quantities.canonical(value), text)

    yield from set_causes(values, path, _MOST_VALUES, rule, lambda value: str(quantities.units(value)))
    is_valid = any(quantities.parse(value) == quantities.parse(default) for value in values)
    if len(values) > _MOST_VALUES or not is_valid:  # upstream looks for it among the values that it checks
        text = "default value is not valid according to the requestPolicy"
        yield invalid_value(path, quantities.canonical(default), text)


def _range_causes(interval: Document, default: Any, capacity: Any, path: str) -> Iterator[StatusCause]:
    least, most, step = interval.get("min"), interval.get("max"), interval.get("step")
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    written = quantities.canonical
    if _is_less(capacity, least):
        yield invalid_value(f"{path}.min", written(least), f"min is larger than capacity value: {written(capacity)}")
    if _is_less(default, least):
        yield invalid_value(f"{path}.min", written(default), f"default is less than min: {written(least)}")
    if most is not None:
        if _is_less(most, least):
            yield invalid_value(f"{path}.max", written(least), f"min is larger than max: {written(most)}")
        if _is_less(capacity, most):
            yield invalid_value(f"{path}.max", written(most), f"max is larger than capacity value: {written(capacity)}")
        if _is_less(most, default):
            yield invalid_value(f"{path}.max", written(default), f"default is more than max: {written(most)}")
    if step is None:
        return
    added = quantities.add(least, step)
    if _is_less(capacity, added):
        text = f"one step {added} is larger than capacity value: {written(capacity)}"
        yield invalid_value(f"{path}.step", written(step), text)
    for value in (default, *([] if most is None else [most])):
        size = quantities.units(step)
        if size and (quantities.units(value) - quantities.units(least)) % size:
            text = f"value is not a multiple of a given step ({written(step)}) from ({written(least)})"
            yield invalid_value(f"{path}.step", written(value), text)


__all__ = ["SLICES", "default_slice", "has_two_lists", "slice_causes"]
