"""The status of a claim of devices: what was allocated, to whom, and what drivers say (validateResourceClaimStatusUpdate)."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Any, Final, TypeAlias

from ctrlruntime.apiserver.registry.condition_validation import common_conditions_causes
from ctrlruntime.apiserver.registry.device_parts import (
    binding_causes,
    duplicate_causes,
    listed_causes,
    parameters_causes,
    pool_name_causes,
    required_driver_causes,
    set_causes,
    share_causes,
)
from ctrlruntime.apiserver.registry.device_rules import (
    claim_configuration_causes,
    names_of_requests,
    reference_causes,
)
from ctrlruntime.apiserver.registry.internal_types import internal, is_equal
from ctrlruntime.apiserver.registry.pod_placement import node_selector_causes
from ctrlruntime.apiserver.registry.trees import inner
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required, too_long, too_many
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import IMMUTABLE, interface_address_causes, label_causes, spec_of
from ctrlruntime.selector import utf8_length

_Device: TypeAlias = tuple[str, str, str, str]
"""Driver, pool, device and share."""
_ALLOCATION: Final = "*resource.AllocationResult"
_SOURCES: Final = ("FromClaim", "FromClass")
_MOST_CONSUMERS: Final = 256
_MOST_RESULTS: Final = 32
_MOST_CONFIGS: Final = 64
_MOST_CONDITIONS: Final = 8
_MOST_ADDRESSES: Final = 16
_LONGEST_INTERFACE: Final = 256
_LONGEST_HARDWARE_ADDRESS: Final = 128


def forget_freed_devices(document: Document, old: Document) -> None:
    """Take away what drivers said of devices that this write no longer allocates (dropDeallocatedStatusDevices)."""
    status = document.get("status") or {}
    if not status.get("devices"):
        return
    freed = _allocated(old.get("status") or {}) - _allocated(status)
    status["devices"] = [each for each in status["devices"] if _device(each) not in freed]
    if not status["devices"]:
        del status["devices"]


def claim_status_causes(document: Document, old: Document | None) -> Iterator[StatusCause]:
    """What is wrong with the status of a claim; what is allocated stays until all of it is freed."""
    status, before = document.get("status") or {}, (old or {}).get("status") or {}
    consumers, devices = status.get("reservedFor") or [], status.get("devices") or []
    allocation, allocated = status.get("allocation"), _allocated(status)
    yield from set_causes(consumers, "status.reservedFor", _MOST_CONSUMERS, _consumer_causes, _uid)
    for index, device in enumerate(devices):
        yield from _device_causes(device or {}, f"status.devices[{index}]", allocated)
    yield from duplicate_causes([_device(each) for each in devices], "status.devices", _shown)
    if consumers and allocation is None:
        yield forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set")
    elif document["metadata"].get("deletionTimestamp") and any(
        each not in (before.get("reservedFor") or ()) for each in consumers
    ):
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden_field("status.reservedFor", text)
    if allocation is None:
        return
    if before.get("allocation") is None:
        yield from _allocation_causes(allocation, "status.allocation", names_of_requests(spec_of(document)))
        return
    now = internal(_ALLOCATION, allocation)
    if not is_equal(now, internal(_ALLOCATION, before["allocation"])):
        yield invalid_value("status.allocation", now, IMMUTABLE)


def _uid(consumer: Document | None) -> Hashable:
    return str((consumer or {}).get("uid") or "")


def _consumer_causes(consumer: Document | None, path: str) -> Iterator[StatusCause]:
    for name in ("resource", "name", "uid"):
        if not (consumer or {}).get(name):
            yield required(f"{path}.{name}")


# Devices


def _device(device: Document | None) -> _Device:
    given = device or {}
    return (
        str(given.get("driver") or ""),
        str(given.get("pool") or ""),
        str(given.get("device") or ""),
        str(given.get("shareID") or ""),
    )


def _shown(device: _Device) -> Document:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), device, strict=True))


def _allocated(status: Document) -> set[_Device]:
    results = (inner(status, "allocation", "devices") or {}).get("results") or ()
    return {_device(result) for result in results}


def _device_causes(device: Document, path: str, allocated: Collection[_Device]) -> Iterator[StatusCause]:
    yield from required_driver_causes(device.get("driver") or "", f"{path}.driver")
    yield from pool_name_causes(device.get("pool") or "", f"{path}.pool")
    yield from label_causes(device.get("device") or "", f"{path}.device")
    yield from share_causes(device.get("shareID"), f"{path}.shareID")
    if _device(device) not in allocated:
        yield invalid_value(path, _shown(_device(device)), "must be an allocated device in the claim")
    conditions = device.get("conditions") or []
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS)
    yield from common_conditions_causes(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        yield from parameters_causes(device["data"], f"{path}.data")
    yield from _network_causes(device.get("networkData") or {}, f"{path}.networkData")


def _network_causes(data: Document, path: str) -> Iterator[StatusCause]:
    for name, longest in (("interfaceName", _LONGEST_INTERFACE), ("hardwareAddress", _LONGEST_HARDWARE_ADDRESS)):
        if utf8_length(data.get(name) or "") > longest:
            yield too_long(f"{path}.{name}", longest)
    yield from set_causes(data.get("ips") or [], f"{path}.ips", _MOST_ADDRESSES, interface_address_causes, str)


# Allocation


def _allocation_causes(allocation: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    devices = inner(allocation, "devices") or {}

    def result_causes(result: Document | None, path: str) -> Iterator[StatusCause]:
        return _result_causes(result or {}, path, names)

    def config_causes(config: Document | None, path: str) -> Iterator[StatusCause]:
        return _config_causes(config or {}, path, names)

    yield from listed_causes(devices.get("results") or [], f"{path}.devices.results", _MOST_RESULTS, result_causes)
    yield from listed_causes(devices.get("config") or [], f"{path}.devices.config", _MOST_CONFIGS, config_causes)
    yield from node_selector_causes(allocation.get("nodeSelector"), f"{path}.nodeSelector")


def _result_causes(result: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    yield from reference_causes(result.get("request") or "", f"{path}.request", names)
    yield from required_driver_causes(result.get("driver") or "", f"{path}.driver")
    yield from pool_name_causes(result.get("pool") or "", f"{path}.pool")
    yield from label_causes(result.get("device") or "", f"{path}.device")
    yield from binding_causes(result, path)
    yield from share_causes(result.get("shareID"), f"{path}.shareID")


def _config_causes(config: Document, path: str, names: Collection[str]) -> Iterator[StatusCause]:
    source: Any = config.get("source") or ""
    if not source:
        yield required(f"{path}.source")
    elif source not in _SOURCES:
        yield not_supported(f"{path}.source", source, _SOURCES)
    yield from claim_configuration_causes(config, path, names)


__all__ = ["claim_status_causes", "forget_freed_devices"]
