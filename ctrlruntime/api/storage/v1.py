"""The classes of storage.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.core.v1 import PersistentVolumeSpec, TopologySelectorTerm
from ctrlruntime.api.meta.v1 import LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Quantity, Time

__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSIStorageCapacity",
    "StorageClass",
    "TokenRequest",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeAttributesClass",
    "VolumeError",
    "VolumeNodeResources",
]


class TokenRequest(Model, always_sent=("audience",)):
    audience: str = ""
    expiration_seconds: int | None = None


class CSIDriverSpec(Model):
    attach_required: bool | None = None
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None
    pod_info_on_mount: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    service_account_token_in_secrets: bool | None = None
    storage_capacity: bool | None = None
    token_requests: list[TokenRequest] = Field(default_factory=list)
    volume_lifecycle_modes: list[str] = Field(default_factory=list)


class CSIDriver(Object, group="storage.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: CSIDriverSpec = Field(default_factory=CSIDriverSpec)


class VolumeNodeResources(Model):
    count: int | None = None


class CSINodeDriver(Model, always_sent=("name", "node_id")):
    allocatable: VolumeNodeResources | None = None
    name: str = ""
    node_id: str = Field(default="", validation_alias="nodeID", serialization_alias="nodeID")
    topology_keys: list[str] = Field(default_factory=list)


class CSINodeSpec(Model, always_sent=("drivers",)):
    drivers: list[CSINodeDriver] = Field(default_factory=list)


class CSINode(Object, group="storage.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: CSINodeSpec = Field(default_factory=CSINodeSpec)


class CSIStorageCapacity(Object, group="storage.k8s.io", version="v1", always_sent=("storage_class_name",)):
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""


class StorageClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    scope="Cluster",
    short_names=("sc",),
    always_sent=("provisioner",),
):
    allow_volume_expansion: bool | None = None
    allowed_topologies: list[TopologySelectorTerm] = Field(default_factory=list)
    mount_options: list[str] = Field(default_factory=list)
    parameters: dict[str, str] = Field(default_factory=dict)
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class VolumeAttachmentSource(Model):
    inline_volume_spec: PersistentVolumeSpec | None = None
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Model, always_sent=("attacher", "node_name", "source")):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = Field(default_factory=VolumeAttachmentSource)


class VolumeError(Model):
    error_code: int | None = None
    message: str = ""
    time: Time | None = None


class VolumeAttachmentStatus(Model, always_sent=("attached",)):
    attach_error: VolumeError | None = None
    attached: bool = False
    attachment_metadata: dict[str, str] = Field(default_factory=dict)
    detach_error: VolumeError | None = None


class VolumeAttachment(Object, group="storage.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: VolumeAttachmentSpec = Field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = Field(default_factory=VolumeAttachmentStatus)


class VolumeAttributesClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    scope="Cluster",
    short_names=("vac",),
    always_sent=("driver_name",),
):
    driver_name: str = ""
    parameters: dict[str, str] = Field(default_factory=dict)
