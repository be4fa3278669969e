"""The classes of resource.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
import builtins
from typing import Any

from pydantic import Field

from ctrlruntime.api.core.v1 import NodeSelector
from ctrlruntime.api.meta.v1 import Condition, ObjectMeta
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Quantity, Time

__all__ = [
    "AllocatedDeviceStatus",
    "AllocationResult",
    "CELDeviceSelector",
    "CapacityRequestPolicy",
    "CapacityRequestPolicyRange",
    "CapacityRequirements",
    "Counter",
    "CounterSet",
    "Device",
    "DeviceAllocationConfiguration",
    "DeviceAllocationResult",
    "DeviceAttribute",
    "DeviceCapacity",
    "DeviceClaim",
    "DeviceClaimConfiguration",
    "DeviceClass",
    "DeviceClassConfiguration",
    "DeviceClassSpec",
    "DeviceConstraint",
    "DeviceCounterConsumption",
    "DeviceRequest",
    "DeviceRequestAllocationResult",
    "DeviceSelector",
    "DeviceSubRequest",
    "DeviceTaint",
    "DeviceToleration",
    "ExactDeviceRequest",
    "NetworkDeviceData",
    "NodeAllocatableResourceMapping",
    "OpaqueDeviceConfiguration",
    "ResourceClaim",
    "ResourceClaimConsumerReference",
    "ResourceClaimSpec",
    "ResourceClaimStatus",
    "ResourceClaimTemplate",
    "ResourceClaimTemplateSpec",
    "ResourcePool",
    "ResourceSlice",
    "ResourceSliceSpec",
]


class NetworkDeviceData(Model):
    hardware_address: str = ""
    interface_name: str = ""
    ips: list[str] = Field(default_factory=list)


class AllocatedDeviceStatus(Model, always_sent=("device", "driver", "pool")):
    conditions: list[Condition] = Field(default_factory=list)
    data: dict[str, Any] | None = None
    device: str = ""
    driver: str = ""
    network_data: NetworkDeviceData | None = None
    pool: str = ""
    share_id: str | None = Field(default=None, validation_alias="shareID", serialization_alias="shareID")


class OpaqueDeviceConfiguration(Model, always_sent=("driver",)):
    driver: str = ""
    parameters: dict[str, Any] | None = None


class DeviceAllocationConfiguration(Model, always_sent=("source",)):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: list[str] = Field(default_factory=list)
    source: str = ""


class DeviceToleration(Model):
    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class DeviceRequestAllocationResult(Model, always_sent=("device", "driver", "pool", "request")):
    admin_access: bool | None = None
    binding_conditions: list[str] = Field(default_factory=list)
    binding_failure_conditions: list[str] = Field(default_factory=list)
    consumed_capacity: dict[str, Quantity] = Field(default_factory=dict)
    device: str = ""
    driver: str = ""
    pool: str = ""
    request: str = ""
    share_id: str | None = Field(default=None, validation_alias="shareID", serialization_alias="shareID")
    tolerations: list[DeviceToleration] = Field(default_factory=list)


class DeviceAllocationResult(Model):
    config: list[DeviceAllocationConfiguration] = Field(default_factory=list)
    results: list[DeviceRequestAllocationResult] = Field(default_factory=list)


class AllocationResult(Model):
    allocation_timestamp: Time | None = None
    devices: DeviceAllocationResult = Field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None


class CELDeviceSelector(Model, always_sent=("expression",)):
    expression: str = ""


class CapacityRequestPolicyRange(Model):
    max: Quantity | None = None
    min: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Model):
    default: Quantity | None = None
    valid_range: CapacityRequestPolicyRange | None = None
    valid_values: list[Quantity] = Field(default_factory=list)


class CapacityRequirements(Model):
    requests: dict[str, Quantity] = Field(default_factory=dict)


class Counter(Model, always_sent=("value",)):
    value: Quantity = Quantity(0)


class CounterSet(Model, always_sent=("name",)):
    counters: dict[str, Counter] = Field(default_factory=dict)
    name: str = ""


class DeviceAttribute(Model):
    bool: builtins.bool | None = None
    bools: list[builtins.bool] = Field(default_factory=list)
    int: builtins.int | None = None
    ints: list[builtins.int] = Field(default_factory=list)
    string: str | None = None
    strings: list[str] = Field(default_factory=list)
    version: str | None = None
    versions: list[str] = Field(default_factory=list)


class DeviceCapacity(Model, always_sent=("value",)):
    request_policy: CapacityRequestPolicy | None = None
    value: Quantity = Quantity(0)


class DeviceCounterConsumption(Model, always_sent=("counter_set",)):
    counter_set: str = ""
    counters: dict[str, Counter] = Field(default_factory=dict)


class DeviceTaint(Model, always_sent=("effect", "key")):
    effect: str = ""
    key: str = ""
    time_added: Time | None = None
    value: str = ""


class NodeAllocatableResourceMapping(Model):
    allocation_multiplier: Quantity | None = None
    capacity_key: str | None = None


class Device(Model, always_sent=("name",)):
    all_nodes: bool | None = None
    allow_multiple_allocations: bool | None = None
    attributes: dict[str, DeviceAttribute] = Field(default_factory=dict)
    binding_conditions: list[str] = Field(default_factory=list)
    binding_failure_conditions: list[str] = Field(default_factory=list)
    binds_to_node: bool | None = None
    capacity: dict[str, DeviceCapacity] = Field(default_factory=dict)
    consumes_counters: list[DeviceCounterConsumption] = Field(default_factory=list)
    name: str = ""
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = Field(default_factory=dict)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    taints: list[DeviceTaint] = Field(default_factory=list)


class DeviceClaimConfiguration(Model):
    opaque: OpaqueDeviceConfiguration | None = None
    requests: list[str] = Field(default_factory=list)


class DeviceConstraint(Model):
    distinct_attribute: str | None = None
    match_attribute: str | None = None
    requests: list[str] = Field(default_factory=list)


class DeviceSelector(Model):
    cel: CELDeviceSelector | None = None


class DeviceSubRequest(Model, always_sent=("device_class_name", "name")):
    allocation_mode: str = ""
    capacity: CapacityRequirements | None = None
    count: int = 0
    device_class_name: str = ""
    name: str = ""
    selectors: list[DeviceSelector] = Field(default_factory=list)
    tolerations: list[DeviceToleration] = Field(default_factory=list)


class ExactDeviceRequest(Model, always_sent=("device_class_name",)):
    admin_access: bool | None = None
    allocation_mode: str = ""
    capacity: CapacityRequirements | None = None
    count: int = 0
    device_class_name: str = ""
    selectors: list[DeviceSelector] = Field(default_factory=list)
    tolerations: list[DeviceToleration] = Field(default_factory=list)


class DeviceRequest(Model, always_sent=("name",)):
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = Field(default_factory=list)
    name: str = ""


class DeviceClaim(Model):
    config: list[DeviceClaimConfiguration] = Field(default_factory=list)
    constraints: list[DeviceConstraint] = Field(default_factory=list)
    requests: list[DeviceRequest] = Field(default_factory=list)


class DeviceClassConfiguration(Model):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Model):
    config: list[DeviceClassConfiguration] = Field(default_factory=list)
    extended_resource_name: str | None = None
    selectors: list[DeviceSelector] = Field(default_factory=list)


class DeviceClass(Object, group="resource.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: DeviceClassSpec = Field(default_factory=DeviceClassSpec)


class ResourceClaimSpec(Model):
    devices: DeviceClaim = Field(default_factory=DeviceClaim)


class ResourceClaimConsumerReference(Model, always_sent=("name", "resource", "uid")):
    api_group: str = ""
    name: str = ""
    resource: str = ""
    uid: str = ""


class ResourceClaimStatus(Model):
    allocation: AllocationResult | None = None
    devices: list[AllocatedDeviceStatus] = Field(default_factory=list)
    reserved_for: list[ResourceClaimConsumerReference] = Field(default_factory=list)


class ResourceClaim(Object, group="resource.k8s.io", version="v1", always_sent=("spec",)):
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = Field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Model, always_sent=("spec",)):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = Field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Object, group="resource.k8s.io", version="v1", always_sent=("spec",)):
    spec: ResourceClaimTemplateSpec = Field(default_factory=ResourceClaimTemplateSpec)


class ResourcePool(Model, always_sent=("generation", "name", "resource_slice_count")):
    generation: int = 0
    name: str = ""
    resource_slice_count: int = 0


class ResourceSliceSpec(Model, always_sent=("driver", "pool")):
    all_nodes: bool | None = None
    devices: list[Device] = Field(default_factory=list)
    driver: str = ""
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool | None = None
    pool: ResourcePool = Field(default_factory=ResourcePool)
    shared_counters: list[CounterSet] = Field(default_factory=list)


class ResourceSlice(Object, group="resource.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: ResourceSliceSpec = Field(default_factory=ResourceSliceSpec)
