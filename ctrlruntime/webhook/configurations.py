"""Webhook configurations in a cluster: create them from registrations, and inject CA bundles.

Used by development mode and `secret`, with the server's own client.
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
    """Return the configuration of the admission webhooks of one kind, in order of their names; None without webhooks.

    `client_config` returns the address of a path for the API server. Raises: ConfigError for two webhooks of one name.
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
    """Create the configuration, or replace the webhooks of an existing one; its metadata stays."""

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
    """Delete the object. A missing object is not an error."""
    try:
        await client.delete(kind.from_dict({"metadata": {"name": name}, "apiVersion": _API, "kind": kind.__name__}))
    except NotFound:
        return


async def change(
    client: Client, kind: type[Unstructured], name: str, make: Callable[[Unstructured], bool]
) -> Unstructured | None:
    """Change an object with `make`, which returns whether it changed it.

    Return the object, or None if it does not exist.
    """
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
    """Return the name of the CRD of a kind."""
    return f"{versions[0].plural}.{versions[0].group}"


def inject_bundle(obj: Unstructured, bundle: bytes) -> bool:
    """Set a CA bundle (PEM) in every webhook of a configuration, or in the conversion of a CRD. Return whether it changed."""
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
