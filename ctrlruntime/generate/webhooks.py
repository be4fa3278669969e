"""Webhook configurations as manifests: what controller-gen makes of its webhook markers.

It takes each webhook's rule and where the API server finds it, and hands up a MutatingWebhookConfiguration and a
ValidatingWebhookConfiguration, each where there is something to put into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document

__all__ = ["MUTATING_NAME", "VALIDATING_NAME", "Service", "WebhookRule", "webhook_configurations"]

MUTATING_NAME: Final = "mutating-webhook-configuration"
VALIDATING_NAME: Final = "validating-webhook-configuration"


class WebhookRule(Protocol):
    """Which requests a webhook is asked about; `ctrlruntime.webhook.WebhookRule` is one."""

    @property
    def name(self) -> str: ...

    @property
    def mutating(self) -> bool: ...

    def to_webhook(self, client_config: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the entry of a configuration. Raises: ConfigError for what no API server takes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The Service in front of the webhook server. Name and namespace are those of kubebuilder's tree, which deploying replaces."""

    name: str = "webhook-service"
    namespace: str = "system"
    port: int | None = None
    """None: 443."""

    def client_config(self, path: str) -> Document:
        """Return where the API server finds the webhook at `path`."""
        service: Document = {"name": self.name, "namespace": self.namespace, "path": path}
        return {"service": service if self.port is None else {**service, "port": self.port}}


def webhook_configurations(
    webhooks: Iterable[tuple[WebhookRule, Mapping[str, Any]]],
    *,
    mutating_name: str = MUTATING_NAME,
    validating_name: str = VALIDATING_NAME,
) -> list[Document]:
    """Return the mutating configuration, then the validating one, of webhooks given with their `clientConfig`; sorted by name.

    Raises: GenerateError for a name that two webhooks of a configuration have, ConfigError for what no API server takes.
    """
    every = sorted(webhooks, key=lambda webhook: webhook[0].name)
    documents: list[Document] = []
    for is_mutating, kind, name in ((True, "Mutating", mutating_name), (False, "Validating", validating_name)):
        entries = [dict(rule.to_webhook(client)) for rule, client in every if rule.mutating is is_mutating]
        if entries:
            _refuse_doubles(entries)
            documents.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{kind}WebhookConfiguration",
                    "metadata": {"name": name},
                    "webhooks": entries,
                }
            )
    return documents


def _refuse_doubles(entries: list[Document]) -> None:
    seen: dict[str, Document] = {}
    for entry in entries:
        other = seen.setdefault(entry["name"], entry)
        if other is not entry:
            raise GenerateError(
                f"the webhook {entry['name']} is registered twice, {_where(other)} and {_where(entry)}. Rename one of them"
            )


def _where(entry: Document) -> str:
    client = entry["clientConfig"]
    return f"at {client['service']['path'] if 'service' in client else client.get('url')}"
