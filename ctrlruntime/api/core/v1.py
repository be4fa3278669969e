"""The classes of core/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import AliasChoices, Field

from ctrlruntime.api.meta.v1 import Condition, LabelSelector, ObjectMeta
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import IntOrString, MicroTime, Quantity, Time

__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "Affinity",
    "AppArmorProfile",
    "AttachedVolume",
    "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource",
    "AzureFileVolumeSource",
    "Binding",
    "CSIPersistentVolumeSource",
    "CSIVolumeSource",
    "Capabilities",
    "CephFSPersistentVolumeSource",
    "CephFSVolumeSource",
    "CinderPersistentVolumeSource",
    "CinderVolumeSource",
    "ClientIPConfig",
    "ClusterTrustBundleProjection",
    "ComponentCondition",
    "ComponentStatus",
    "ConfigMap",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapNodeConfigSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerImage",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "DaemonEndpoint",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "Event",
    "EventSeries",
    "EventSource",
    "ExecAction",
    "FCVolumeSource",
    "FileKeySelector",
    "FlexPersistentVolumeSource",
    "FlexVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GRPCAction",
    "GitRepoVolumeSource",
    "GlusterfsPersistentVolumeSource",
    "GlusterfsVolumeSource",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "HostPathVolumeSource",
    "ISCSIPersistentVolumeSource",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "LinuxContainerUser",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "LocalObjectReference",
    "LocalVolumeSource",
    "ModifyVolumeStatus",
    "NFSVolumeSource",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
    "ObjectFieldSelector",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimCondition",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "PhotonPersistentDiskVolumeSource",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCertificateProjection",
    "PodCondition",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSecurityContext",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodTemplateSpec",
    "PortStatus",
    "PortworxVolumeSource",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "QuobyteVolumeSource",
    "RBDPersistentVolumeSource",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerCondition",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "ScaleIOPersistentVolumeSource",
    "ScaleIOVolumeSource",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "SeccompProfile",
    "Secret",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretReference",
    "SecretVolumeSource",
    "SecurityContext",
    "Service",
    "ServiceAccount",
    "ServiceAccountTokenProjection",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
    "SleepAction",
    "StorageOSPersistentVolumeSource",
    "StorageOSVolumeSource",
    "Sysctl",
    "TCPSocketAction",
    "Taint",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeNodeAffinity",
    "VolumeProjection",
    "VolumeResourceRequirements",
    "VolumeStatus",
    "VsphereVirtualDiskVolumeSource",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]


class AWSElasticBlockStoreVolumeSource(Model, always_sent=("volume_id",)):
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str = Field(default="", validation_alias="volumeID", serialization_alias="volumeID")


class NodeSelectorRequirement(Model, always_sent=("key", "operator")):
    key: str = ""
    operator: str = ""
    values: list[str] = Field(default_factory=list)


class NodeSelectorTerm(Model):
    match_expressions: list[NodeSelectorRequirement] = Field(default_factory=list)
    match_fields: list[NodeSelectorRequirement] = Field(default_factory=list)


class NodeSelector(Model, always_sent=("node_selector_terms",)):
    node_selector_terms: list[NodeSelectorTerm] = Field(default_factory=list)


class PreferredSchedulingTerm(Model, always_sent=("preference", "weight")):
    preference: NodeSelectorTerm = Field(default_factory=NodeSelectorTerm)
    weight: int = 0


class NodeAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = Field(default_factory=list)
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Model, always_sent=("topology_key",)):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = Field(default_factory=list)
    mismatch_label_keys: list[str] = Field(default_factory=list)
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] = Field(default_factory=list)
    topology_key: str = ""


class WeightedPodAffinityTerm(Model, always_sent=("pod_affinity_term", "weight")):
    pod_affinity_term: PodAffinityTerm = Field(default_factory=PodAffinityTerm)
    weight: int = 0


class PodAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = Field(default_factory=list)
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = Field(default_factory=list)


class PodAntiAffinity(Model):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = Field(default_factory=list)
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = Field(default_factory=list)


class Affinity(Model):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class AppArmorProfile(Model, always_sent=("type",)):
    localhost_profile: str | None = None
    type: str = ""


class AttachedVolume(Model, always_sent=("device_path", "name")):
    device_path: str = ""
    name: str = ""


class AzureDiskVolumeSource(Model, always_sent=("disk_name", "disk_uri")):
    kind: str | None = None
    caching_mode: str | None = None
    disk_name: str = ""
    disk_uri: str = Field(default="", validation_alias="diskURI", serialization_alias="diskURI")
    fs_type: str | None = None
    read_only: bool | None = None


class AzureFilePersistentVolumeSource(Model, always_sent=("secret_name", "share_name")):
    read_only: bool = False
    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""


class AzureFileVolumeSource(Model, always_sent=("secret_name", "share_name")):
    read_only: bool = False
    secret_name: str = ""
    share_name: str = ""


class ObjectReference(Model):
    api_version: str = ""
    kind: str = ""
    field_path: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class Binding(Object, group="", version="v1", always_sent=("target",)):
    target: ObjectReference = Field(default_factory=ObjectReference)


class SecretReference(Model):
    name: str = ""
    namespace: str = ""


class CSIPersistentVolumeSource(Model, always_sent=("driver", "volume_handle")):
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    driver: str = ""
    fs_type: str = ""
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: bool = False
    volume_attributes: dict[str, str] = Field(default_factory=dict)
    volume_handle: str = ""


class LocalObjectReference(Model):
    name: str = ""


class CSIVolumeSource(Model, always_sent=("driver",)):
    driver: str = ""
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] = Field(default_factory=dict)


class Capabilities(Model):
    add: list[str] = Field(default_factory=list)
    drop: list[str] = Field(default_factory=list)


class CephFSPersistentVolumeSource(Model, always_sent=("monitors",)):
    monitors: list[str] = Field(default_factory=list)
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    user: str = ""


class CephFSVolumeSource(Model, always_sent=("monitors",)):
    monitors: list[str] = Field(default_factory=list)
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class CinderPersistentVolumeSource(Model, always_sent=("volume_id",)):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    volume_id: str = Field(default="", validation_alias="volumeID", serialization_alias="volumeID")


class CinderVolumeSource(Model, always_sent=("volume_id",)):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_id: str = Field(default="", validation_alias="volumeID", serialization_alias="volumeID")


class ClientIPConfig(Model):
    timeout_seconds: int | None = None


class ClusterTrustBundleProjection(Model, always_sent=("path",)):
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str = ""
    signer_name: str | None = None


class ComponentCondition(Model, always_sent=("status", "type")):
    error: str = ""
    message: str = ""
    status: str = ""
    type: str = ""


class ComponentStatus(Object, group="", version="v1", scope="Cluster", short_names=("cs",)):
    conditions: list[ComponentCondition] = Field(default_factory=list)


class ConfigMap(Object, group="", version="v1", short_names=("cm",)):
    binary_data: dict[str, bytes] = Field(default_factory=dict)
    data: dict[str, str] = Field(default_factory=dict)
    immutable: bool | None = None


class ConfigMapEnvSource(Model):
    name: str = ""
    optional: bool | None = None


class ConfigMapKeySelector(Model, always_sent=("key",)):
    key: str = ""
    name: str = ""
    optional: bool | None = None


class ConfigMapNodeConfigSource(Model, always_sent=("kubelet_config_key", "name", "namespace")):
    kubelet_config_key: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class KeyToPath(Model, always_sent=("key", "path")):
    key: str = ""
    mode: int | None = None
    path: str = ""


class ConfigMapProjection(Model):
    items: list[KeyToPath] = Field(default_factory=list)
    name: str = ""
    optional: bool | None = None


class ConfigMapVolumeSource(Model):
    default_mode: int | None = None
    items: list[KeyToPath] = Field(default_factory=list)
    name: str = ""
    optional: bool | None = None


class ContainerPort(Model, always_sent=("container_port",)):
    container_port: int = 0
    host_ip: str = Field(default="", validation_alias="hostIP", serialization_alias="hostIP")
    host_port: int = 0
    name: str = ""
    protocol: str = ""


class ContainerResizePolicy(Model, always_sent=("resource_name", "restart_policy")):
    resource_name: str = ""
    restart_policy: str = ""


class ContainerRestartRuleOnExitCodes(Model):
    operator: str = ""
    values: list[int] = Field(default_factory=list)


class ContainerRestartRule(Model):
    action: str = ""
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SecretEnvSource(Model):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(Model):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str = ""
    secret_ref: SecretEnvSource | None = None


class FileKeySelector(Model, always_sent=("key", "path", "volume_name")):
    key: str = ""
    optional: bool | None = None
    path: str = ""
    volume_name: str = ""


class ObjectFieldSelector(Model, always_sent=("field_path",)):
    api_version: str = ""
    field_path: str = ""


class ResourceFieldSelector(Model, always_sent=("resource",)):
    container_name: str = ""
    divisor: Quantity = Quantity(0)
    resource: str = ""


class SecretKeySelector(Model, always_sent=("key",)):
    key: str = ""
    name: str = ""
    optional: bool | None = None


class EnvVarSource(Model):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Model, always_sent=("name",)):
    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class ExecAction(Model):
    command: list[str] = Field(default_factory=list)


class HTTPHeader(Model, always_sent=("name", "value")):
    name: str = ""
    value: str = ""


class HTTPGetAction(Model, always_sent=("port",)):
    host: str = ""
    http_headers: list[HTTPHeader] = Field(default_factory=list)
    path: str = ""
    port: IntOrString = 0
    scheme: str = ""


class SleepAction(Model, always_sent=("seconds",)):
    seconds: int = 0


class TCPSocketAction(Model, always_sent=("port",)):
    host: str = ""
    port: IntOrString = 0


class LifecycleHandler(Model):
    exec: ExecAction | None = Field(
        default=None, validation_alias=AliasChoices("exec", "_exec"), serialization_alias="exec"
    )
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Model):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(Model, always_sent=("port",)):
    port: int = 0
    service: str | None = None


class Probe(Model):
    exec: ExecAction | None = Field(
        default=None, validation_alias=AliasChoices("exec", "_exec"), serialization_alias="exec"
    )
    failure_threshold: int = 0
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int = 0


class ResourceClaim(Model, always_sent=("name",)):
    name: str = ""
    request: str = ""


class ResourceRequirements(Model):
    claims: list[ResourceClaim] = Field(default_factory=list)
    limits: dict[str, Quantity] = Field(default_factory=dict)
    requests: dict[str, Quantity] = Field(default_factory=dict)


class SELinuxOptions(Model):
    level: str = ""
    role: str = ""
    type: str = ""
    user: str = ""


class SeccompProfile(Model, always_sent=("type",)):
    localhost_profile: str | None = None
    type: str = ""


class WindowsSecurityContextOptions(Model):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Model):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(Model, always_sent=("device_path", "name")):
    device_path: str = ""
    name: str = ""


class VolumeMount(Model, always_sent=("mount_path", "name")):
    mount_path: str = ""
    mount_propagation: str | None = None
    name: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    sub_path: str = ""
    sub_path_expr: str = ""


class Container(Model, always_sent=("name",)):
    args: list[str] = Field(default_factory=list)
    command: list[str] = Field(default_factory=list)
    env: list[EnvVar] = Field(default_factory=list)
    env_from: list[EnvFromSource] = Field(default_factory=list)
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: list[ContainerPort] = Field(default_factory=list)
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = Field(default_factory=list)
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = Field(default_factory=list)
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool = False
    volume_devices: list[VolumeDevice] = Field(default_factory=list)
    volume_mounts: list[VolumeMount] = Field(default_factory=list)
    working_dir: str = ""


class ContainerExtendedResourceRequest(Model, always_sent=("container_name", "request_name", "resource_name")):
    container_name: str = ""
    request_name: str = ""
    resource_name: str = ""


class ContainerImage(Model):
    names: list[str] = Field(default_factory=list)
    size_bytes: int = 0


class ContainerStateRunning(Model):
    started_at: Time | None = None


class ContainerStateTerminated(Model, always_sent=("exit_code",)):
    container_id: str = Field(default="", validation_alias="containerID", serialization_alias="containerID")
    exit_code: int = 0
    finished_at: Time | None = None
    message: str = ""
    reason: str = ""
    signal: int = 0
    started_at: Time | None = None


class ContainerStateWaiting(Model):
    message: str = ""
    reason: str = ""


class ContainerState(Model):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(Model, always_sent=("gid", "uid")):
    gid: int = 0
    supplemental_groups: list[int] = Field(default_factory=list)
    uid: int = 0


class ContainerUser(Model):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Model, always_sent=("resource_id",)):
    health: str = ""
    message: str | None = None
    resource_id: str = Field(default="", validation_alias="resourceID", serialization_alias="resourceID")


class ResourceStatus(Model, always_sent=("name",)):
    name: str = ""
    resources: list[ResourceHealth] = Field(default_factory=list)


class ImageVolumeStatus(Model):
    image_ref: str = ""


class VolumeStatus(Model):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Model, always_sent=("mount_path", "name")):
    mount_path: str = ""
    name: str = ""
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(Model, always_sent=("image", "image_id", "name", "ready", "restart_count")):
    allocated_resources: dict[str, Quantity] = Field(default_factory=dict)
    allocated_resources_status: list[ResourceStatus] = Field(default_factory=list)
    container_id: str = Field(default="", validation_alias="containerID", serialization_alias="containerID")
    image: str = ""
    image_id: str = Field(default="", validation_alias="imageID", serialization_alias="imageID")
    last_state: ContainerState = Field(default_factory=ContainerState)
    name: str = ""
    ready: bool = False
    resources: ResourceRequirements | None = None
    restart_count: int = 0
    started: bool | None = None
    state: ContainerState = Field(default_factory=ContainerState)
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: list[VolumeMountStatus] = Field(default_factory=list)


class DaemonEndpoint(Model, always_sent=("port",)):
    port: int = Field(default=0, validation_alias="Port", serialization_alias="Port")


class DownwardAPIVolumeFile(Model, always_sent=("path",)):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str = ""
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIProjection(Model):
    items: list[DownwardAPIVolumeFile] = Field(default_factory=list)


class DownwardAPIVolumeSource(Model):
    default_mode: int | None = None
    items: list[DownwardAPIVolumeFile] = Field(default_factory=list)


class EmptyDirVolumeSource(Model):
    medium: str = ""
    size_limit: Quantity | None = None


class EndpointAddress(Model, always_sent=("ip",)):
    hostname: str = ""
    ip: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Model, always_sent=("port",)):
    app_protocol: str | None = None
    name: str = ""
    port: int = 0
    protocol: str = ""


class EndpointSubset(Model):
    addresses: list[EndpointAddress] = Field(default_factory=list)
    not_ready_addresses: list[EndpointAddress] = Field(default_factory=list)
    ports: list[EndpointPort] = Field(default_factory=list)


class Endpoints(Object, group="", version="v1", short_names=("ep",)):
    subsets: list[EndpointSubset] = Field(default_factory=list)


class EphemeralContainer(Model, always_sent=("name",)):
    args: list[str] = Field(default_factory=list)
    command: list[str] = Field(default_factory=list)
    env: list[EnvVar] = Field(default_factory=list)
    env_from: list[EnvFromSource] = Field(default_factory=list)
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str = ""
    ports: list[ContainerPort] = Field(default_factory=list)
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = Field(default_factory=list)
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = Field(default_factory=list)
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    target_container_name: str = ""
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool = False
    volume_devices: list[VolumeDevice] = Field(default_factory=list)
    volume_mounts: list[VolumeMount] = Field(default_factory=list)
    working_dir: str = ""


class TypedLocalObjectReference(Model, always_sent=("kind", "name")):
    kind: str = ""
    api_group: str | None = None
    name: str = ""


class TypedObjectReference(Model, always_sent=("kind", "name")):
    kind: str = ""
    api_group: str | None = None
    name: str = ""
    namespace: str | None = None


class VolumeResourceRequirements(Model):
    limits: dict[str, Quantity] = Field(default_factory=dict)
    requests: dict[str, Quantity] = Field(default_factory=dict)


class PersistentVolumeClaimSpec(Model):
    access_modes: list[str] = Field(default_factory=list)
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = Field(default_factory=VolumeResourceRequirements)
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimTemplate(Model, always_sent=("spec",)):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PersistentVolumeClaimSpec = Field(default_factory=PersistentVolumeClaimSpec)


class EphemeralVolumeSource(Model):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class EventSeries(Model):
    count: int = 0
    last_observed_time: MicroTime | None = None


class EventSource(Model):
    component: str = ""
    host: str = ""


class Event(
    Object,
    group="",
    version="v1",
    short_names=("ev",),
    always_sent=("involved_object", "metadata", "reporting_component", "reporting_instance"),
):
    action: str = ""
    count: int = 0
    event_time: MicroTime | None = None
    first_timestamp: Time | None = None
    involved_object: ObjectReference = Field(default_factory=ObjectReference)
    last_timestamp: Time | None = None
    message: str = ""
    reason: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    source: EventSource = Field(default_factory=EventSource)
    type: str = ""


class FCVolumeSource(Model):
    fs_type: str = ""
    lun: int | None = None
    read_only: bool = False
    target_wwns: list[str] = Field(
        default_factory=list, validation_alias="targetWWNs", serialization_alias="targetWWNs"
    )
    wwids: list[str] = Field(default_factory=list)


class FlexPersistentVolumeSource(Model, always_sent=("driver",)):
    driver: str = ""
    fs_type: str = ""
    options: dict[str, str] = Field(default_factory=dict)
    read_only: bool = False
    secret_ref: SecretReference | None = None


class FlexVolumeSource(Model, always_sent=("driver",)):
    driver: str = ""
    fs_type: str = ""
    options: dict[str, str] = Field(default_factory=dict)
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Model):
    dataset_name: str = ""
    dataset_uuid: str = Field(default="", validation_alias="datasetUUID", serialization_alias="datasetUUID")


class GCEPersistentDiskVolumeSource(Model, always_sent=("pd_name",)):
    fs_type: str = ""
    partition: int = 0
    pd_name: str = ""
    read_only: bool = False


class GitRepoVolumeSource(Model, always_sent=("repository",)):
    directory: str = ""
    repository: str = ""
    revision: str = ""


class GlusterfsPersistentVolumeSource(Model, always_sent=("endpoints", "path")):
    endpoints: str = ""
    endpoints_namespace: str | None = None
    path: str = ""
    read_only: bool = False


class GlusterfsVolumeSource(Model, always_sent=("endpoints", "path")):
    endpoints: str = ""
    path: str = ""
    read_only: bool = False


class HostAlias(Model, always_sent=("ip",)):
    hostnames: list[str] = Field(default_factory=list)
    ip: str = ""


class HostIP(Model, always_sent=("ip",)):
    ip: str = ""


class HostPathVolumeSource(Model, always_sent=("path",)):
    path: str = ""
    type: str | None = None


class ISCSIPersistentVolumeSource(Model, always_sent=("iqn", "lun", "target_portal")):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str | None = None
    iqn: str = ""
    iscsi_interface: str = ""
    lun: int = 0
    portals: list[str] = Field(default_factory=list)
    read_only: bool = False
    secret_ref: SecretReference | None = None
    target_portal: str = ""


class ISCSIVolumeSource(Model, always_sent=("iqn", "lun", "target_portal")):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str | None = None
    iqn: str = ""
    iscsi_interface: str = ""
    lun: int = 0
    portals: list[str] = Field(default_factory=list)
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    target_portal: str = ""


class ImageVolumeSource(Model):
    pull_policy: str = ""
    reference: str = ""


class LimitRangeItem(Model, always_sent=("type",)):
    default: dict[str, Quantity] = Field(default_factory=dict)
    default_request: dict[str, Quantity] = Field(default_factory=dict)
    max: dict[str, Quantity] = Field(default_factory=dict)
    max_limit_request_ratio: dict[str, Quantity] = Field(default_factory=dict)
    min: dict[str, Quantity] = Field(default_factory=dict)
    type: str = ""


class LimitRangeSpec(Model, always_sent=("limits",)):
    limits: list[LimitRangeItem] = Field(default_factory=list)


class LimitRange(Object, group="", version="v1", short_names=("limits",)):
    spec: LimitRangeSpec = Field(default_factory=LimitRangeSpec)


class PortStatus(Model, always_sent=("port", "protocol")):
    error: str | None = None
    port: int = 0
    protocol: str = ""


class LoadBalancerIngress(Model):
    hostname: str = ""
    ip: str = ""
    ip_mode: str | None = None
    ports: list[PortStatus] = Field(default_factory=list)


class LoadBalancerStatus(Model):
    ingress: list[LoadBalancerIngress] = Field(default_factory=list)


class LocalVolumeSource(Model, always_sent=("path",)):
    fs_type: str | None = None
    path: str = ""


class ModifyVolumeStatus(Model, always_sent=("status",)):
    status: str = ""
    target_volume_attributes_class_name: str = ""


class NFSVolumeSource(Model, always_sent=("path", "server")):
    path: str = ""
    read_only: bool = False
    server: str = ""


class NamespaceSpec(Model):
    finalizers: list[str] = Field(default_factory=list)


class NamespaceCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class NamespaceStatus(Model):
    conditions: list[NamespaceCondition] = Field(default_factory=list)
    phase: str = ""


class Namespace(Object, group="", version="v1", scope="Cluster", short_names=("ns",)):
    spec: NamespaceSpec = Field(default_factory=NamespaceSpec)
    status: NamespaceStatus = Field(default_factory=NamespaceStatus)


class NodeConfigSource(Model):
    config_map: ConfigMapNodeConfigSource | None = None


class Taint(Model, always_sent=("effect", "key")):
    effect: str = ""
    key: str = ""
    time_added: Time | None = None
    value: str = ""


class NodeSpec(Model):
    config_source: NodeConfigSource | None = None
    external_id: str = Field(default="", validation_alias="externalID", serialization_alias="externalID")
    pod_cidr: str = Field(default="", validation_alias="podCIDR", serialization_alias="podCIDR")
    pod_cidrs: list[str] = Field(default_factory=list, validation_alias="podCIDRs", serialization_alias="podCIDRs")
    provider_id: str = Field(default="", validation_alias="providerID", serialization_alias="providerID")
    taints: list[Taint] = Field(default_factory=list)
    unschedulable: bool = False


class NodeAddress(Model, always_sent=("address", "type")):
    address: str = ""
    type: str = ""


class NodeCondition(Model, always_sent=("status", "type")):
    last_heartbeat_time: Time | None = None
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class NodeConfigStatus(Model):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    last_known_good: NodeConfigSource | None = None


class NodeDaemonEndpoints(Model):
    kubelet_endpoint: DaemonEndpoint = Field(default_factory=DaemonEndpoint)


class NodeFeatures(Model):
    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(Model):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Model, always_sent=("name",)):
    features: NodeRuntimeHandlerFeatures | None = None
    name: str = ""


class NodeSwapStatus(Model):
    capacity: int | None = None


class NodeSystemInfo(
    Model,
    always_sent=("architecture", "boot_id", "container_runtime_version", "kernel_version", "kube_proxy_version", "kubelet_version", "machine_id", "operating_system", "os_image", "system_uuid"),
):
    architecture: str = ""
    boot_id: str = Field(default="", validation_alias="bootID", serialization_alias="bootID")
    container_runtime_version: str = ""
    kernel_version: str = ""
    kube_proxy_version: str = ""
    kubelet_version: str = ""
    machine_id: str = Field(default="", validation_alias="machineID", serialization_alias="machineID")
    operating_system: str = ""
    os_image: str = ""
    swap: NodeSwapStatus | None = None
    system_uuid: str = Field(default="", validation_alias="systemUUID", serialization_alias="systemUUID")


class NodeStatus(Model):
    addresses: list[NodeAddress] = Field(default_factory=list)
    allocatable: dict[str, Quantity] = Field(default_factory=dict)
    capacity: dict[str, Quantity] = Field(default_factory=dict)
    conditions: list[NodeCondition] = Field(default_factory=list)
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints = Field(default_factory=NodeDaemonEndpoints)
    declared_features: list[str] = Field(default_factory=list)
    features: NodeFeatures | None = None
    images: list[ContainerImage] = Field(default_factory=list)
    node_info: NodeSystemInfo = Field(default_factory=NodeSystemInfo)
    phase: str = ""
    runtime_handlers: list[NodeRuntimeHandler] = Field(default_factory=list)
    volumes_attached: list[AttachedVolume] = Field(default_factory=list)
    volumes_in_use: list[str] = Field(default_factory=list)


class Node(Object, group="", version="v1", scope="Cluster", short_names=("no",)):
    spec: NodeSpec = Field(default_factory=NodeSpec)
    status: NodeStatus = Field(default_factory=NodeStatus)


class NodeAllocatableResourceClaimStatus(Model, always_sent=("resource_claim_name", "resources")):
    containers: list[str] = Field(default_factory=list)
    resource_claim_name: str = ""
    resources: dict[str, Quantity] = Field(default_factory=dict)


class PhotonPersistentDiskVolumeSource(Model, always_sent=("pd_id",)):
    fs_type: str = ""
    pd_id: str = Field(default="", validation_alias="pdID", serialization_alias="pdID")


class PortworxVolumeSource(Model, always_sent=("volume_id",)):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str = Field(default="", validation_alias="volumeID", serialization_alias="volumeID")


class QuobyteVolumeSource(Model, always_sent=("registry", "volume")):
    group: str = ""
    read_only: bool = False
    registry: str = ""
    tenant: str = ""
    user: str = ""
    volume: str = ""


class RBDPersistentVolumeSource(Model, always_sent=("image", "monitors")):
    fs_type: str = ""
    image: str = ""
    keyring: str = ""
    monitors: list[str] = Field(default_factory=list)
    pool: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    user: str = ""


class ScaleIOPersistentVolumeSource(Model, always_sent=("gateway", "system")):
    fs_type: str = ""
    gateway: str = ""
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = ""
    volume_name: str = ""


class StorageOSPersistentVolumeSource(Model):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class VolumeNodeAffinity(Model):
    required: NodeSelector | None = None


class VsphereVirtualDiskVolumeSource(Model, always_sent=("volume_path",)):
    fs_type: str = ""
    storage_policy_id: str = Field(
        default="", validation_alias="storagePolicyID", serialization_alias="storagePolicyID"
    )
    storage_policy_name: str = ""
    volume_path: str = ""


class PersistentVolumeSpec(Model):
    access_modes: list[str] = Field(default_factory=list)
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: dict[str, Quantity] = Field(default_factory=dict)
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: list[str] = Field(default_factory=list)
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = Field(
        default=None, validation_alias="scaleIO", serialization_alias="scaleIO"
    )
    storage_class_name: str = ""
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Model):
    last_phase_transition_time: Time | None = None
    message: str = ""
    phase: str = ""
    reason: str = ""


class PersistentVolume(Object, group="", version="v1", scope="Cluster", short_names=("pv",)):
    spec: PersistentVolumeSpec = Field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = Field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimCondition(Model, always_sent=("status", "type")):
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class PersistentVolumeClaimStatus(Model):
    access_modes: list[str] = Field(default_factory=list)
    allocated_resource_statuses: dict[str, str] = Field(default_factory=dict)
    allocated_resources: dict[str, Quantity] = Field(default_factory=dict)
    capacity: dict[str, Quantity] = Field(default_factory=dict)
    conditions: list[PersistentVolumeClaimCondition] = Field(default_factory=list)
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str = ""


class PersistentVolumeClaim(Object, group="", version="v1", short_names=("pvc",)):
    spec: PersistentVolumeClaimSpec = Field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = Field(default_factory=PersistentVolumeClaimStatus)


class PersistentVolumeClaimVolumeSource(Model, always_sent=("claim_name",)):
    claim_name: str = ""
    read_only: bool = False


class PodDNSConfigOption(Model):
    name: str = ""
    value: str | None = None


class PodDNSConfig(Model):
    nameservers: list[str] = Field(default_factory=list)
    options: list[PodDNSConfigOption] = Field(default_factory=list)
    searches: list[str] = Field(default_factory=list)


class PodOS(Model, always_sent=("name",)):
    name: str = ""


class PodReadinessGate(Model, always_sent=("condition_type",)):
    condition_type: str = ""


class PodResourceClaim(Model, always_sent=("name",)):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Model, always_sent=("name",)):
    name: str = ""


class PodSchedulingGroup(Model):
    pod_group_name: str | None = None


class Sysctl(Model, always_sent=("name", "value")):
    name: str = ""
    value: str = ""


class PodSecurityContext(Model):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: list[int] = Field(default_factory=list)
    supplemental_groups_policy: str | None = None
    sysctls: list[Sysctl] = Field(default_factory=list)
    windows_options: WindowsSecurityContextOptions | None = None


class Toleration(Model):
    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class TopologySpreadConstraint(Model, always_sent=("max_skew", "topology_key", "when_unsatisfiable")):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = Field(default_factory=list)
    max_skew: int = 0
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    topology_key: str = ""
    when_unsatisfiable: str = ""


class PodCertificateProjection(Model):
    certificate_chain_path: str = ""
    credential_bundle_path: str = ""
    key_path: str = ""
    key_type: str = ""
    max_expiration_seconds: int | None = None
    signer_name: str = ""
    user_annotations: dict[str, str] = Field(default_factory=dict)


class SecretProjection(Model):
    items: list[KeyToPath] = Field(default_factory=list)
    name: str = ""
    optional: bool | None = None


class ServiceAccountTokenProjection(Model, always_sent=("path",)):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str = ""


class VolumeProjection(Model):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = Field(
        default=None, validation_alias="downwardAPI", serialization_alias="downwardAPI"
    )
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Model):
    default_mode: int | None = None
    sources: list[VolumeProjection] = Field(default_factory=list)


class RBDVolumeSource(Model, always_sent=("image", "monitors")):
    fs_type: str = ""
    image: str = ""
    keyring: str = ""
    monitors: list[str] = Field(default_factory=list)
    pool: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class ScaleIOVolumeSource(Model, always_sent=("gateway", "system")):
    fs_type: str = ""
    gateway: str = ""
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str = ""
    volume_name: str = ""


class SecretVolumeSource(Model):
    default_mode: int | None = None
    items: list[KeyToPath] = Field(default_factory=list)
    optional: bool | None = None
    secret_name: str = ""


class StorageOSVolumeSource(Model):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class Volume(Model, always_sent=("name",)):
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = Field(
        default=None, validation_alias="downwardAPI", serialization_alias="downwardAPI"
    )
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: str = ""
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = Field(
        default=None, validation_alias="scaleIO", serialization_alias="scaleIO"
    )
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PodSpec(Model, always_sent=("containers",)):
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: list[Container] = Field(default_factory=list)
    dns_config: PodDNSConfig | None = None
    dns_policy: str = ""
    enable_service_links: bool | None = None
    ephemeral_containers: list[EphemeralContainer] = Field(default_factory=list)
    host_aliases: list[HostAlias] = Field(default_factory=list)
    host_ipc: bool = Field(default=False, validation_alias="hostIPC", serialization_alias="hostIPC")
    host_network: bool = False
    host_pid: bool = Field(default=False, validation_alias="hostPID", serialization_alias="hostPID")
    host_users: bool | None = None
    hostname: str = ""
    hostname_override: str | None = None
    image_pull_secrets: list[LocalObjectReference] = Field(default_factory=list)
    init_containers: list[Container] = Field(default_factory=list)
    node_name: str = ""
    node_selector: dict[str, str] = Field(default_factory=dict)
    os: PodOS | None = None
    overhead: dict[str, Quantity] = Field(default_factory=dict)
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str = ""
    readiness_gates: list[PodReadinessGate] = Field(default_factory=list)
    resource_claims: list[PodResourceClaim] = Field(default_factory=list)
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    scheduler_name: str = ""
    scheduling_gates: list[PodSchedulingGate] = Field(default_factory=list)
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str = ""
    service_account_name: str = ""
    set_hostname_as_fqdn: bool | None = Field(
        default=None, validation_alias="setHostnameAsFQDN", serialization_alias="setHostnameAsFQDN"
    )
    share_process_namespace: bool | None = None
    subdomain: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: list[Toleration] = Field(default_factory=list)
    topology_spread_constraints: list[TopologySpreadConstraint] = Field(default_factory=list)
    volumes: list[Volume] = Field(default_factory=list)


class PodCondition(Model, always_sent=("status", "type")):
    last_probe_time: Time | None = None
    last_transition_time: Time | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str = ""
    type: str = ""


class PodExtendedResourceClaimStatus(Model, always_sent=("request_mappings", "resource_claim_name")):
    request_mappings: list[ContainerExtendedResourceRequest] = Field(default_factory=list)
    resource_claim_name: str = ""


class PodIP(Model, always_sent=("ip",)):
    ip: str = ""


class PodResourceClaimStatus(Model, always_sent=("name",)):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Model):
    allocated_resources: dict[str, Quantity] = Field(default_factory=dict)
    conditions: list[PodCondition] = Field(default_factory=list)
    container_statuses: list[ContainerStatus] = Field(default_factory=list)
    ephemeral_container_statuses: list[ContainerStatus] = Field(default_factory=list)
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str = Field(default="", validation_alias="hostIP", serialization_alias="hostIP")
    host_ips: list[HostIP] = Field(default_factory=list, validation_alias="hostIPs", serialization_alias="hostIPs")
    init_container_statuses: list[ContainerStatus] = Field(default_factory=list)
    message: str = ""
    node_allocatable_resource_claim_statuses: list[NodeAllocatableResourceClaimStatus] = Field(default_factory=list)
    nominated_node_name: str = ""
    observed_generation: int = 0
    phase: str = ""
    pod_ip: str = Field(default="", validation_alias="podIP", serialization_alias="podIP")
    pod_ips: list[PodIP] = Field(default_factory=list, validation_alias="podIPs", serialization_alias="podIPs")
    qos_class: str = ""
    reason: str = ""
    resize: str = ""
    resource_claim_statuses: list[PodResourceClaimStatus] = Field(default_factory=list)
    resources: ResourceRequirements | None = None
    start_time: Time | None = None


class Pod(Object, group="", version="v1", short_names=("po",), categories=("all",)):
    spec: PodSpec = Field(default_factory=PodSpec)
    status: PodStatus = Field(default_factory=PodStatus)


class PodTemplateSpec(Model):
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: PodSpec = Field(default_factory=PodSpec)


class PodTemplate(Object, group="", version="v1"):
    template: PodTemplateSpec = Field(default_factory=PodTemplateSpec)


class ReplicationControllerSpec(Model):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: dict[str, str] = Field(default_factory=dict)
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class ReplicationControllerStatus(Model, always_sent=("replicas",)):
    available_replicas: int = 0
    conditions: list[ReplicationControllerCondition] = Field(default_factory=list)
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int = 0


class ReplicationController(Object, group="", version="v1", short_names=("rc",), categories=("all",)):
    spec: ReplicationControllerSpec = Field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = Field(default_factory=ReplicationControllerStatus)


class ScopedResourceSelectorRequirement(Model, always_sent=("operator", "scope_name")):
    operator: str = ""
    scope_name: str = ""
    values: list[str] = Field(default_factory=list)


class ScopeSelector(Model):
    match_expressions: list[ScopedResourceSelectorRequirement] = Field(default_factory=list)


class ResourceQuotaSpec(Model):
    hard: dict[str, Quantity] = Field(default_factory=dict)
    scope_selector: ScopeSelector | None = None
    scopes: list[str] = Field(default_factory=list)


class ResourceQuotaStatus(Model):
    hard: dict[str, Quantity] = Field(default_factory=dict)
    used: dict[str, Quantity] = Field(default_factory=dict)


class ResourceQuota(Object, group="", version="v1", short_names=("quota",)):
    spec: ResourceQuotaSpec = Field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = Field(default_factory=ResourceQuotaStatus)


class Secret(Object, group="", version="v1"):
    data: dict[str, bytes] = Field(default_factory=dict)
    immutable: bool | None = None
    string_data: dict[str, str] = Field(default_factory=dict)
    type: str = ""


class ServicePort(Model, always_sent=("port",)):
    app_protocol: str | None = None
    name: str = ""
    node_port: int = 0
    port: int = 0
    protocol: str = ""
    target_port: IntOrString = 0


class SessionAffinityConfig(Model):
    client_ip: ClientIPConfig | None = Field(default=None, validation_alias="clientIP", serialization_alias="clientIP")


class ServiceSpec(Model):
    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str = Field(default="", validation_alias="clusterIP", serialization_alias="clusterIP")
    cluster_ips: list[str] = Field(
        default_factory=list, validation_alias="clusterIPs", serialization_alias="clusterIPs"
    )
    external_ips: list[str] = Field(
        default_factory=list, validation_alias="externalIPs", serialization_alias="externalIPs"
    )
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    internal_traffic_policy: str | None = None
    ip_families: list[str] = Field(default_factory=list)
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str = Field(default="", validation_alias="loadBalancerIP", serialization_alias="loadBalancerIP")
    load_balancer_source_ranges: list[str] = Field(default_factory=list)
    ports: list[ServicePort] = Field(default_factory=list)
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = Field(default_factory=dict)
    session_affinity: str = ""
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: str = ""


class ServiceStatus(Model):
    conditions: list[Condition] = Field(default_factory=list)
    load_balancer: LoadBalancerStatus = Field(default_factory=LoadBalancerStatus)


class Service(Object, group="", version="v1", short_names=("svc",), categories=("all",)):
    spec: ServiceSpec = Field(default_factory=ServiceSpec)
    status: ServiceStatus = Field(default_factory=ServiceStatus)


class ServiceAccount(Object, group="", version="v1", short_names=("sa",)):
    automount_service_account_token: bool | None = None
    image_pull_secrets: list[LocalObjectReference] = Field(default_factory=list)
    secrets: list[ObjectReference] = Field(default_factory=list)


class TopologySelectorLabelRequirement(Model, always_sent=("key", "values")):
    key: str = ""
    values: list[str] = Field(default_factory=list)


class TopologySelectorTerm(Model):
    match_label_expressions: list[TopologySelectorLabelRequirement] = Field(default_factory=list)
