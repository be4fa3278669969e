"""The options of the embedded server."""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ctrlruntime.certificates import KeyPair
from ctrlruntime.errors import ConfigError

_SERVICE: Final = re.compile(r"[^/:]+/[^/:]+:\d+")
_ADDRESS: Final = re.compile(r"(\[[^]]+\]|[^/:]+):\d+")
DEFAULT_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
DEFAULT_NETWORK: Final = "10.0.0.0/24"
ADMISSION_PLUGINS: Final = (
    "AlwaysAdmit",
    "NamespaceAutoProvision",
    "NamespaceLifecycle",
    "NamespaceExists",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "ServiceAccount",
    "NodeRestriction",
    "TaintNodesByCondition",
    "AlwaysPullImages",
    "ImagePolicyWebhook",
    "PodSecurity",
    "PodNodeSelector",
    "Priority",
    "DefaultTolerationSeconds",
    "PodTolerationRestriction",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "DefaultStorageClass",
    "StorageObjectInUseProtection",
    "PodGroupProtection",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "RuntimeClass",
    "CertificateApproval",
    "CertificateSigning",
    "ClusterTrustBundleAttest",
    "CertificateSubjectRestriction",
    "DefaultIngressClass",
    "DenyServiceExternalIPs",
    "PodTopologyLabels",
    "PodGroupWorkloadExists",
    "NodeDeclaredFeatureValidator",
    "JobValidation",
    "PodResizeValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
    "AlwaysDeny",
)
"""The plugins of kube-apiserver, in the order in which they act (AllOrderedPlugins in pkg/kubeapiserver/options/plugins.go)."""
SHARDED: Final = "ShardedListAndWatch"
FEATURE_GATES: Final = frozenset({SHARDED})
"""The feature gates that have an effect, all off unless they are set."""
ACTING_PLUGINS: Final = frozenset(
    {
        "NamespaceLifecycle",
        "LimitRanger",
        "TaintNodesByCondition",
        "PodSecurity",
        "Priority",
        "DefaultTolerationSeconds",
        "DefaultStorageClass",
        "StorageObjectInUseProtection",
        "PersistentVolumeClaimResize",
        "RuntimeClass",
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "DefaultIngressClass",
        "PodTopologyLabels",
        "NodeDeclaredFeatureValidator",
        "PodResizeValidator",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
        "ResourceQuota",
    }
)
"""Those that this server has and that act unless they are disabled. ServiceAccount acts where it is enabled."""


@dataclass(frozen=True, slots=True)
class TokenUser:
    """The user of a static bearer token; the server adds the group system:authenticated."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an embedded API server runs; the defaults make a small cluster with RBAC, workloads and one node."""

    address: str = "127.0.0.1"
    """IP address to listen on."""
    port: int = 0
    """TCP port; 0 uses a free port (with a data file, that of the last run if it is free)."""
    data: str | os.PathLike[str] | None = None
    """A file that keeps all data over restarts; None keeps it in memory. See `storage.persistence`."""
    serving_pair: KeyPair | None = None
    """The server's certificate and key; None creates them, signed by the server's own CA."""
    admin_token: str = ""
    """Bearer token of a member of system:masters; empty creates a random one."""
    authorization: Literal["rbac", "always-allow"] = "rbac"
    tokens: Mapping[str, TokenUser] = field(default_factory=dict[str, TokenUser])
    """More bearer tokens and their users."""
    client_ca: bytes = b""
    """PEM of further CAs of client certificates: the common name is the user, the organisations are the groups."""
    service_account_issuer: str = DEFAULT_ISSUER
    """The `iss` of service account tokens, and their default audience."""
    service_account_signing_key: bytes | None = None
    """PEM of the private key (RSA or P-256) that signs service account tokens; None creates one."""
    service_account_issuers: Sequence[str] = ()
    """Further accepted issuers of service account tokens; they are also audiences of the server."""
    service_account_keys: Sequence[bytes] = ()
    """PEM of further keys that verify service account tokens: public or private keys, or certificates."""
    service_network: str = DEFAULT_NETWORK
    """The IPv4 network (CIDR) from which Services get their cluster IPs."""
    disabled_admission: Collection[str] = ()
    """Admission plugins that are disabled, by kube-apiserver's names: those of ACTING_PLUGINS have an effect."""
    enabled_admission: Collection[str] = ()
    """Admission plugins that are enabled: ServiceAccount, which rejects Pods whose ServiceAccount does not exist, is off without this."""
    webhook_services: Mapping[str, str] = field(default_factory=dict[str, str])
    """Addresses for webhooks with a Service: `namespace/name:port` to `host:port`. See `APIServer.route_service`."""
    unserved: Collection[str] = ()
    """Built-in group versions (`batch/v1`) and resources of them (`batch/v1/cronjobs`) that are not served."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Feature gates of kube-apiserver. ShardedListAndWatch has an effect; it is off without this."""
    controllers: Collection[str] | None = None
    """Names of the simulated controllers that run; None runs all, an empty collection none."""
    workloads: bool = True
    """False runs without the workload controllers and the node."""
    nodes: bool = True
    """False runs without node, scheduler and kubelet: Pods stay Pending."""
    metrics: bool = False
    """True serves `metrics.k8s.io/v1beta1` of the simulated Pods, as metrics-server does: `kubectl top` and autoscalers work."""
    pod_ready_delay: float = 0.0
    """Seconds from the binding of a Pod until it is Ready."""
    event_ttl: float = 3600.0
    """Seconds until an Event is deleted, after its last write."""
    history: int = 10_000
    """Number of writes kept for each resource, for watches that resume and lists that continue."""
    bookmark_interval: float = 60.0
    """Seconds between bookmarks on a watch."""

    @property
    def features(self) -> frozenset[str]:
        """The feature gates that are on."""
        return frozenset(name for name, is_on in self.feature_gates.items() if is_on)

    @property
    def acting_admission(self) -> frozenset[str]:
        """The admission plugins that act."""
        disabled, enabled = frozenset(self.disabled_admission), frozenset(self.enabled_admission)
        return (ACTING_PLUGINS - disabled) | (enabled & {*ACTING_PLUGINS, "ServiceAccount"})

    @property
    def runs_pods(self) -> bool:
        """Tell whether the simulated kubelet runs."""
        return self.workloads and self.nodes and (self.controllers is None or "kubelet" in self.controllers)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port must be 0 (a free port) or 1 to 65535, not {self.port}")
        for name in self.feature_gates:
            if name not in FEATURE_GATES:
                raise ConfigError(f"unknown feature gate {name!r}. Use one of: {', '.join(sorted(FEATURE_GATES))}")
        if self.authorization not in {"rbac", "always-allow"}:
            raise ConfigError(f"unknown authorization {self.authorization!r}. Use 'rbac' or 'always-allow'")
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise ConfigError(f"address {self.address!r} is not an IP address. Use one, such as 127.0.0.1") from None
        try:
            network = ipaddress.IPv4Network(self.service_network)
        except ValueError as error:
            raise ConfigError(f"service_network {self.service_network!r} is not an IPv4 network: {error}") from None
        if not 8 <= network.prefixlen <= 30:
            raise ConfigError(f"service_network {self.service_network} must have a prefix from /8 to /30")
        for service, address in self.webhook_services.items():
            if not (_SERVICE.fullmatch(service) and _ADDRESS.fullmatch(address)):
                raise ConfigError(
                    f"webhook_services: expected 'namespace/name:port' to 'host:port', got {service!r} to {address!r}"
                )
        for name in (*self.disabled_admission, *self.enabled_admission):
            if name not in ADMISSION_PLUGINS:
                known = ", ".join(sorted(ADMISSION_PLUGINS))
                raise ConfigError(f"admission plugin {name} does not exist. Use one of {known}")
        for name in sorted({*self.disabled_admission} & {*self.enabled_admission}):
            raise ConfigError(f"admission plugin {name} is both enabled and disabled. Remove one of the two")
        if self.metrics and not self.runs_pods:
            raise ConfigError(
                "metrics are those of simulated Pods, and no Pod runs. Let the node and its kubelet run, or leave metrics out"
            )
        if self.history < 1:
            raise ConfigError(f"history must be at least 1, not {self.history}")
        if not self.event_ttl > 0:
            raise ConfigError(f"event_ttl must be a number of seconds above 0, not {self.event_ttl}")
        if not 0 <= self.pod_ready_delay < math.inf:
            raise ConfigError(f"pod_ready_delay must be a number of seconds of 0 or more, not {self.pod_ready_delay}")
