"""Webhook configurations in a cluster: those made from registrations, and the CA bundles in those that are there.

Development mode registers and removes; `secret` injects. Everything here is what the server's own client does, no reconciler.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ctrlruntime.api.kind import KindInfo
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import AlreadyExists, ConfigError, Conflict, NotFound
from ctrlruntime.webhook.registration import Registration, WebhookRule

__all__ = [
    "CustomResourceDefinition",
    "Mutating",
    "Validating",
    "change",
    "definition_name",
    "inject_bundle",
    "put",
    "remove",
    "webhook_configuration",
]

_API = "admissionregistration.k8s.io/v1"
Mutating = Unstructured.of(_API, "MutatingWebhookConfiguration")
Validating = Unstructured.of(_API, "ValidatingWebhookConfiguration")
CustomResourceDefinition = Unstructured.of("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def webhook_configuration(
    kind: type[Unstructured],
    name: str,
    registrations: Iterable[Registration],
    client_config: Callable[[str], Mapping[str, Any]],
) -> Unstructured | None:
    """Return the configuration of the admission webhooks of one kind, in order of their names; None when there are none.

    `client_config` says for a path where the API server finds it. Raises: ConfigError for two webhooks of one name.
    """
    found: dict[str, tuple[WebhookRule, str]] = {}
    for each in registrations:
        if each.rule is None or each.rule.mutating is not (kind is Mutating):
            continue
        if each.rule.name in found:
            raise ConfigError(
                f"two webhooks are named {each.rule.name}: {found[each.rule.name][1]} and {each.path}; rename one of them"
            )
        found[each.rule.name] = (each.rule, each.path)
    if not found:
        return None
    wanted = kind.from_dict({"apiVersion": _API, "kind": kind.__name__, "metadata": {"name": name}})
    wanted["webhooks"] = [rule.to_webhook(client_config(path)) for _, (rule, path) in sorted(found.items())]
    return wanted


async def put(client: Client, wanted: Unstructured) -> None:
    """Create the configuration, or give the one of that name the same webhooks; its metadata stays as it is."""

    def take_over(present: Unstructured) -> bool:
        present["webhooks"] = wanted["webhooks"]
        return True

    while await change(client, type(wanted), wanted.metadata.name, take_over) is None:
        try:
            await client.create(wanted.deep_copy())
        except AlreadyExists:
            continue  # somebody was faster: look again
        return


async def remove(client: Client, kind: type[Unstructured], name: str) -> None:
    """Delete the object; one that is gone is not an error."""
    try:
        await client.delete(kind.from_dict({"metadata": {"name": name}, "apiVersion": _API, "kind": kind.__name__}))
    except NotFound:
        return


async def change(
    client: Client, kind: type[Unstructured], name: str, make: Callable[[Unstructured], bool]
) -> Unstructured | None:
    """Change an object: `make` changes it in place and returns whether it did. Returns the object, None when there is none."""
    while True:
        present = await client.api_reader.get_or_none(kind, NamespacedName("", name))
        if present is None:
            return None
        if not make(present):
            return present
        try:
            return await client.update(present)
        except (Conflict, NotFound):
            continue  # somebody was faster: look again


def definition_name(versions: Sequence[KindInfo]) -> str:
    """Return the name of the CustomResourceDefinition of a kind."""
    return f"{versions[0].plural}.{versions[0].group}"


def inject_bundle(obj: Unstructured, bundle: bytes) -> bool:
    """Put a CA bundle (PEM) into every webhook of a configuration, or into the conversion of a definition; return whether it changed."""
    text = base64.b64encode(bundle).decode()
    if isinstance(obj, CustomResourceDefinition):
        config = obj.get_path("spec", "conversion", "webhook", "clientConfig")
        configs = [config] if isinstance(config, dict) else []
    else:
        configs = [webhook.setdefault("clientConfig", {}) for webhook in obj.content.get("webhooks") or ()]
    stale = [config for config in configs if config.get("caBundle") != text]
    for config in stale:
        config["caBundle"] = text
    return bool(stale)
