"""The classes of networking.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import AliasChoices, Field

from ctrlruntime.api.core.v1 import TypedLocalObjectReference
from ctrlruntime.api.meta.v1 import Condition, LabelSelector
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import IntOrString

__all__ = [
    "HTTPIngressPath",
    "HTTPIngressRuleValue",
    "IPAddress",
    "IPAddressSpec",
    "IPBlock",
    "Ingress",
    "IngressBackend",
    "IngressClass",
    "IngressClassParametersReference",
    "IngressClassSpec",
    "IngressLoadBalancerIngress",
    "IngressLoadBalancerStatus",
    "IngressPortStatus",
    "IngressRule",
    "IngressServiceBackend",
    "IngressSpec",
    "IngressStatus",
    "IngressTLS",
    "NetworkPolicy",
    "NetworkPolicyEgressRule",
    "NetworkPolicyIngressRule",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkPolicySpec",
    "ParentReference",
    "ServiceBackendPort",
    "ServiceCIDR",
    "ServiceCIDRSpec",
    "ServiceCIDRStatus",
]


class ServiceBackendPort(Model):
    name: str = ""
    number: int = 0


class IngressServiceBackend(Model, always_sent=("name",)):
    name: str = ""
    port: ServiceBackendPort = Field(default_factory=ServiceBackendPort)


class IngressBackend(Model):
    resource: TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


class HTTPIngressPath(Model, always_sent=("backend",)):
    backend: IngressBackend = Field(default_factory=IngressBackend)
    path: str = ""
    path_type: str | None = None


class HTTPIngressRuleValue(Model, always_sent=("paths",)):
    paths: list[HTTPIngressPath] = Field(default_factory=list)


class ParentReference(Model):
    group: str = ""
    name: str = ""
    namespace: str = ""
    resource: str = ""


class IPAddressSpec(Model):
    parent_ref: ParentReference | None = None


class IPAddress(Object, group="networking.k8s.io", version="v1", scope="Cluster", short_names=("ip",)):
    spec: IPAddressSpec = Field(default_factory=IPAddressSpec)


class IPBlock(Model, always_sent=("cidr",)):
    cidr: str = ""
    except_: list[str] = Field(
        default_factory=list, validation_alias=AliasChoices("except", "_except"), serialization_alias="except"
    )


class IngressRule(Model):
    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Model):
    hosts: list[str] = Field(default_factory=list)
    secret_name: str = ""


class IngressSpec(Model):
    default_backend: IngressBackend | None = None
    ingress_class_name: str | None = None
    rules: list[IngressRule] = Field(default_factory=list)
    tls: list[IngressTLS] = Field(default_factory=list)


class IngressPortStatus(Model, always_sent=("port", "protocol")):
    error: str | None = None
    port: int = 0
    protocol: str = ""


class IngressLoadBalancerIngress(Model):
    hostname: str = ""
    ip: str = ""
    ports: list[IngressPortStatus] = Field(default_factory=list)


class IngressLoadBalancerStatus(Model):
    ingress: list[IngressLoadBalancerIngress] = Field(default_factory=list)


class IngressStatus(Model):
    load_balancer: IngressLoadBalancerStatus = Field(default_factory=IngressLoadBalancerStatus)


class Ingress(Object, group="networking.k8s.io", version="v1", short_names=("ing",)):
    spec: IngressSpec = Field(default_factory=IngressSpec)
    status: IngressStatus = Field(default_factory=IngressStatus)


class IngressClassParametersReference(Model, always_sent=("kind", "name")):
    kind: str = ""
    api_group: str | None = None
    name: str = ""
    namespace: str | None = None
    scope: str | None = None


class IngressClassSpec(Model):
    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(Object, group="networking.k8s.io", version="v1", scope="Cluster"):
    spec: IngressClassSpec = Field(default_factory=IngressClassSpec)


class NetworkPolicyPeer(Model):
    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicyPort(Model):
    end_port: int | None = None
    port: IntOrString | None = None
    protocol: str | None = None


class NetworkPolicyEgressRule(Model):
    ports: list[NetworkPolicyPort] = Field(default_factory=list)
    to: list[NetworkPolicyPeer] = Field(default_factory=list)


class NetworkPolicyIngressRule(Model):
    from_: list[NetworkPolicyPeer] = Field(
        default_factory=list,
        validation_alias=AliasChoices("from", "_from"),
        serialization_alias="from",
    )
    ports: list[NetworkPolicyPort] = Field(default_factory=list)


class NetworkPolicySpec(Model):
    egress: list[NetworkPolicyEgressRule] = Field(default_factory=list)
    ingress: list[NetworkPolicyIngressRule] = Field(default_factory=list)
    pod_selector: LabelSelector = Field(default_factory=LabelSelector)
    policy_types: list[str] = Field(default_factory=list)


class NetworkPolicy(Object, group="networking.k8s.io", version="v1", short_names=("netpol",)):
    spec: NetworkPolicySpec = Field(default_factory=NetworkPolicySpec)


class ServiceCIDRSpec(Model):
    cidrs: list[str] = Field(default_factory=list)


class ServiceCIDRStatus(Model):
    conditions: list[Condition] = Field(default_factory=list)


class ServiceCIDR(Object, group="networking.k8s.io", version="v1", scope="Cluster"):
    spec: ServiceCIDRSpec = Field(default_factory=ServiceCIDRSpec)
    status: ServiceCIDRStatus = Field(default_factory=ServiceCIDRStatus)
