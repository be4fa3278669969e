"""What the parts of the tree agree on: names of objects before kustomize prefixes them, ports, paths, labels; and which parts there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.generate.options import Document
from ctrlruntime.generate.text import dump
from ctrlruntime.generate.webhooks import Service
from ctrlruntime.project.manifests import Manifests
from ctrlruntime.project.settings import Settings

__all__ = [
    "ACCOUNT",
    "CERTIFICATES_FOLDER",
    "CONTAINER",
    "CONTROL_PLANE",
    "DEPLOYMENT",
    "DERIVED_MARK",
    "KUSTOMIZATION",
    "METRICS_CERTIFICATE",
    "METRICS_FOLDER",
    "METRICS_PORT",
    "METRICS_SECRET",
    "METRICS_SERVICE",
    "OWN_NAMESPACE",
    "REPLACEMENTS",
    "SERVICE",
    "SERVING_CERTIFICATE",
    "WEBHOOK_PORT",
    "WEBHOOK_SECRET",
    "WEBHOOK_SERVICE",
    "Parts",
    "component",
    "derived",
    "derived_text",
    "group_in_names",
    "kustomization",
    "named",
    "selector",
]

OWN_NAMESPACE: Final = "system"
"""Where the operator's objects are until kustomize moves them to the project's namespace."""

CONTROL_PLANE: Final = "controller-manager"
ACCOUNT: Final = "controller-manager"
DEPLOYMENT: Final = "controller-manager"
CONTAINER: Final = "manager"

WEBHOOK_SERVICE: Final = "webhook-service"
WEBHOOK_PORT: Final = 9443
WEBHOOK_SECRET: Final = "webhook-server-cert"  # noqa: S105 - the name of a Secret
CERTIFICATES_FOLDER: Final = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - in the container
SERVING_CERTIFICATE: Final = "serving-cert"

METRICS_SERVICE: Final = "controller-manager-metrics-service"
METRICS_PORT: Final = 8443
METRICS_SECRET: Final = "metrics-server-cert"  # noqa: S105 - the name of a Secret
METRICS_FOLDER: Final = "/tmp/k8s-metrics-server/metrics-certs"  # noqa: S108 - in the container
METRICS_CERTIFICATE: Final = "metrics-certs"

SERVICE: Final = Service(name=WEBHOOK_SERVICE, namespace=OWN_NAMESPACE)
"""The Service in front of the webhook server."""

KUSTOMIZATION: Final = "kustomization.yaml"
REPLACEMENTS: Final = "replacements"
"""The folder with the names inside other values."""
DERIVED_MARK: Final = (
    "# Written by `ctrl manifests`: change the classes or [tool.ctrlruntime] of pyproject.toml, not this file.\n"
)


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts of the tree there are, by the settings and by what the package registers."""

    settings: Settings
    made: Manifests

    @property
    def webhooks(self) -> bool:
        """The API server calls the operator: for admission, or to convert."""
        return bool(self.made.webhooks or self.converted)

    @property
    def certificates(self) -> bool:
        """cert-manager makes the certificates. Without webhooks nothing needs it."""
        return self.webhooks and self.settings.features.cert_manager

    @property
    def own_certificate(self) -> bool:
        """The operator makes the webhooks' certificate, and keeps it in a Secret."""
        return self.webhooks and not self.settings.features.cert_manager

    @property
    def metrics(self) -> bool:
        return self.settings.features.metrics

    @property
    def prometheus(self) -> bool:
        return self.metrics and self.settings.features.prometheus

    @property
    def network_policy(self) -> bool:
        return self.settings.features.network_policy and (self.metrics or self.webhooks)

    @property
    def sharding(self) -> bool:
        """Several replicas share the objects."""
        return self.settings.sharding

    @property
    def converted(self) -> Sequence[Document]:
        """The definitions whose versions a webhook converts."""
        return [each for each in self.made.definitions if (each["spec"].get("conversion") or {}).get("webhook")]


def component(settings: Settings) -> dict[str, str]:
    """Return the labels of every object of the operator."""
    return {"app.kubernetes.io/name": settings.project_name, "app.kubernetes.io/managed-by": "kustomize"}


def selector(settings: Settings) -> dict[str, str]:
    """Return the labels that pick the operator's Pods."""
    return {"app.kubernetes.io/name": settings.project_name, "control-plane": CONTROL_PLANE}


def named(settings: Settings, name: str, *, is_namespaced: bool = True, **labels: str) -> Document:
    """Return the metadata of an object. Underscores in names of further labels become dashes."""
    metadata: Document = {
        "name": name,
        "labels": component(settings) | {key.replace("_", "-"): value for key, value in labels.items()},
    }
    return metadata | ({"namespace": OWN_NAMESPACE} if is_namespaced else {})


def group_in_names(group: str, settings: Settings) -> str:
    """Return a group without the project's domain, for names. One of another domain stays whole: its first label may be taken."""
    return group.removesuffix(f".{settings.domain}") if settings.domain else group


def kustomization(**content: Any) -> Document:
    """Return a kustomization of what is not empty."""
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return head | {key: value for key, value in content.items() if value}


def derived(*documents: Mapping[str, Any]) -> str:
    """Return the text of a derived file."""
    return derived_text(dump(each) for each in documents)


def derived_text(texts: Iterable[str]) -> str:
    return DERIVED_MARK + "".join(texts)
