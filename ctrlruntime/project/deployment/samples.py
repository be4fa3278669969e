"""A project's samples, put on a server that was started for the occasion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctrlruntime.api.object import Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import CtrlError
from ctrlruntime.project.deployment.applyset import OWNER
from ctrlruntime.project.deployment.objects import Named

__all__ = ["apply_samples", "has_webhooks"]


async def has_webhooks(client: Client) -> bool:
    """Tell whether the operator has registered webhooks, which ought to see the samples."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        if await client.api_reader.list(Unstructured.of("admissionregistration.k8s.io/v1", kind), limit=1):
            return True
    return False


async def apply_samples(client: Client, documents: Sequence[Mapping[str, Any]]) -> dict[Named, str]:
    """Apply the documents, in `default` where they name no namespace, and return why those failed that did."""
    failed: dict[Named, str] = {}
    for document in documents:
        named = Named.of(document)
        sample = Unstructured.from_dict(dict(document))
        try:
            if await client.mapper.is_namespaced(named.kind) and not sample.metadata.namespace:
                sample.metadata.namespace = "default"
            await client.apply(sample, field_owner=OWNER, force=True)
        except CtrlError as error:
            failed[named] = str(error)
    return failed
