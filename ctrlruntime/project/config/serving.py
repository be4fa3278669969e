"""Objects in front of the operator: Services, certificates, network policies, and the ServiceMonitor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump
from ctrlruntime.project.config.layout import (
    KUSTOMIZATION,
    METRICS_CERTIFICATE,
    METRICS_PORT,
    METRICS_SECRET,
    METRICS_SERVICE,
    SERVING_CERTIFICATE,
    WEBHOOK_PORT,
    WEBHOOK_SECRET,
    WEBHOOK_SERVICE,
    Parts,
    derived,
    derived_text,
    kustomization,
    named,
    selector,
)
from ctrlruntime.project.settings import Settings

__all__ = [
    "ISSUER",
    "MONITOR",
    "certificate_files",
    "metrics_service",
    "monitor_files",
    "network_files",
    "webhook_service",
]

ISSUER: Final = "selfsigned-issuer"
MONITOR: Final = "controller-manager-metrics-monitor"

_POLICY: Final = "networking.k8s.io/v1"
_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path


def metrics_service(settings: Settings) -> Document:
    ports = [{"name": "https", "port": METRICS_PORT, "protocol": "TCP", "targetPort": METRICS_PORT}]
    return _service(settings, METRICS_SERVICE, ports)


def webhook_service(settings: Settings) -> Document:
    return _service(settings, WEBHOOK_SERVICE, [{"port": 443, "protocol": "TCP", "targetPort": WEBHOOK_PORT}])


def _service(settings: Settings, name: str, ports: list[Document]) -> Document:
    spec = {"ports": ports, "selector": selector(settings)}
    metadata = named(settings, name, control_plane="controller-manager")
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


# Certificates


def certificate_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of `certmanager`. The names of Services in the certificates are put in by kustomize."""
    settings = parts.settings
    issuer = {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": named(settings, ISSUER),
        "spec": {"selfSigned": {}},
    }
    files = {
        "issuer.yaml": derived(issuer),
        "certificate-webhook.yaml": derived(_certificate(settings, SERVING_CERTIFICATE, WEBHOOK_SECRET)),
    }
    if parts.metrics:
        files["certificate-metrics.yaml"] = derived(_certificate(settings, METRICS_CERTIFICATE, METRICS_SECRET))
    yield from files.items()
    reference = {"kind": "Certificate", "group": "cert-manager.io", "path": "spec/issuerRef/name"}
    names = {"nameReference": [{"kind": "Issuer", "group": "cert-manager.io", "fieldSpecs": [reference]}]}
    yield "kustomizeconfig.yaml", derived(names)
    listed = kustomization(resources=sorted(files), configurations=["kustomizeconfig.yaml"])
    yield KUSTOMIZATION, derived(listed)


def _certificate(settings: Settings, name: str, secret: str) -> Document:
    host = "SERVICE_NAME.SERVICE_NAMESPACE.svc"
    return {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": named(settings, name),
        "spec": {
            "dnsNames": [host, f"{host}.cluster.local"],
            "issuerRef": {"kind": "Issuer", "name": ISSUER},
            "secretName": secret,
        },
    }


# Who may connect

_WHO_READS: Final = """\
# Who may reach the metrics: Pods of namespaces with the label metrics=enabled. Give it to the namespace of your Prometheus:
#   kubectl label namespace monitoring metrics=enabled
# The kubelet's probes need no rule: network plugins let a node reach its own Pods.
"""
_WHO_CALLS: Final = """\
# Any client may call the webhooks. The API server calls them, and it is not a Pod: it runs on the network of a node, or outside of the
# cluster. No selector describes it, and its address differs from cluster to cluster. If you know the address of your API server, set it in
# an overlay.
"""


def network_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of `network-policy`. Ports are those of the Pod: a policy looks behind the Service."""
    files: dict[str, str] = {}
    if parts.metrics:
        readers = [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]
        policy = _policy(parts.settings, "allow-metrics-traffic", {**_to(METRICS_PORT), "from": readers})
        files["allow-metrics-traffic.yaml"] = derived_text([_WHO_READS, dump(policy)])
    if parts.webhooks:
        policy = _policy(parts.settings, "allow-webhook-traffic", _to(WEBHOOK_PORT))
        files["allow-webhook-traffic.yaml"] = derived_text([_WHO_CALLS, dump(policy)])
    yield from files.items()
    yield KUSTOMIZATION, derived(kustomization(resources=sorted(files)))


def _to(port: int) -> Document:
    return {"ports": [{"port": port, "protocol": "TCP"}]}


def _policy(settings: Settings, name: str, ingress: Document) -> Document:
    pods = {"matchLabels": selector(settings)}
    spec = {"podSelector": pods, "policyTypes": ["Ingress"], "ingress": [ingress]}
    return {"apiVersion": _POLICY, "kind": "NetworkPolicy", "metadata": named(settings, name), "spec": spec}


# Who scrapes


def monitor_files(parts: Parts) -> Iterator[tuple[str, str]]:
    """Yield the files of `prometheus`: a ServiceMonitor that trusts cert-manager's certificate, or any certificate without it."""
    tls: Document = {"insecureSkipVerify": True}
    if parts.certificates:
        authority = {"secret": {"name": METRICS_SECRET, "key": "ca.crt"}}
        tls = {"ca": authority, "insecureSkipVerify": False, "serverName": "SERVICE_NAME.SERVICE_NAMESPACE.svc"}
    endpoint = {"bearerTokenFile": _TOKEN, "path": "/metrics", "port": "https", "scheme": "https", "tlsConfig": tls}
    monitor = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": named(parts.settings, MONITOR, control_plane="controller-manager"),
        "spec": {"endpoints": [endpoint], "selector": {"matchLabels": selector(parts.settings)}},
    }
    yield "monitor.yaml", derived(monitor)
    yield KUSTOMIZATION, derived(kustomization(resources=["monitor.yaml"]))
