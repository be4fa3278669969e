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
ADMISSION_PLUGINS: Final = frozenset(
    {"NamespaceLifecycle", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ServiceAccount"}
)


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
    """TCP port; 0 takes a free one (with a data file: the one of the last run when that is free)."""
    data: str | os.PathLike[str] | None = None
    """A file that keeps everything over restarts; None keeps it in memory. See `storage.persistence`."""
    serving_pair: KeyPair | None = None
    """The server's certificate and key; None makes them, signed by the server's own authority."""
    admin_token: str = ""
    """Bearer token of a member of system:masters; empty makes a random one."""
    authorization: Literal["rbac", "always-allow"] = "rbac"
    tokens: Mapping[str, TokenUser] = field(default_factory=dict[str, TokenUser])
    """More bearer tokens and their users."""
    client_ca: bytes = b""
    """PEM of further authorities whose client certificates are believed: common name the user, organisations the groups."""
    service_account_issuer: str = DEFAULT_ISSUER
    """The `iss` of service account tokens, and the audience they have when none is asked for."""
    service_account_signing_key: bytes | None = None
    """PEM of the private key (RSA or P-256) that signs service account tokens; None makes one."""
    service_account_issuers: Sequence[str] = ()
    """Further issuers whose service account tokens are believed; the server is their audience, too."""
    service_account_keys: Sequence[bytes] = ()
    """PEM of further keys whose service account tokens are believed: public or private keys, or certificates."""
    service_network: str = DEFAULT_NETWORK
    """The IPv4 network (CIDR) from which Services get their cluster IPs."""
    disabled_admission: Collection[str] = ()
    """Admission plugins that are switched off, by kube-apiserver's names: those of ADMISSION_PLUGINS have an effect."""
    enabled_admission: Collection[str] = ()
    """Admission plugins that are switched on: ServiceAccount, which refuses Pods whose ServiceAccount is not there, has an effect."""
    webhook_services: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where webhooks that name a Service are called: `namespace/name:port` to `host:port`. See `APIServer.route_service`."""
    unserved: Collection[str] = ()
    """Built-in group versions (`batch/v1`) and resources of them (`batch/v1/cronjobs`) that are not served."""
    controllers: Collection[str] | None = None
    """Names of the simulated controllers that run; None runs all, an empty collection none."""
    workloads: bool = True
    """False leaves out the workload controllers and the node."""
    nodes: bool = True
    """False leaves out node, scheduler and kubelet: Pods stay Pending."""
    pod_ready_delay: float = 0.0
    """Seconds from binding a Pod to its being Ready."""
    event_ttl: float = 3600.0
    """Seconds that an Event lives after it was written last."""
    history: int = 10_000
    """Writes remembered for each resource, for watches that resume and lists that continue."""
    bookmark_interval: float = 60.0
    """Seconds between bookmarks on a watch."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port} is not a TCP port; use 0 for a free one, or 1 to 65535")
        if self.authorization not in {"rbac", "always-allow"}:
            raise ConfigError(f"authorization {self.authorization!r} is unknown; use 'rbac' or 'always-allow'")
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            raise ConfigError(f"address {self.address!r} is not an IP address; use 127.0.0.1") from None
        try:
            network = ipaddress.IPv4Network(self.service_network)
        except ValueError as error:
            raise ConfigError(f"service_network {self.service_network!r} is not an IPv4 network: {error}") from None
        if not 8 <= network.prefixlen <= 30:
            raise ConfigError(f"service_network {self.service_network} must have a prefix from /8 to /30")
        for service, address in self.webhook_services.items():
            if not (_SERVICE.fullmatch(service) and _ADDRESS.fullmatch(address)):
                raise ConfigError(
                    f"webhook_services: {service!r} to {address!r} is not understood; write 'namespace/name:port' to 'host:port'"
                )
        if self.history < 1:
            raise ConfigError(f"history must be at least 1, not {self.history}")
        if not self.event_ttl > 0:
            raise ConfigError(f"event_ttl must be a number of seconds above 0, and is {self.event_ttl}")
        if not 0 <= self.pod_ready_delay < math.inf:
            raise ConfigError(f"pod_ready_delay must be a number of seconds from 0 on, and is {self.pod_ready_delay}")
