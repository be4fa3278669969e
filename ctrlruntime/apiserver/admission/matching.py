"""Whether a webhook is to be called about a request, and under which version it sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.reviews import Names
from ctrlruntime.apiserver.admission.webhooks import Webhook
from ctrlruntime.apiserver.interfaces import NAMESPACES, AdmissionAttributes, Document
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Store


class Matcher:
    """Looks at rules and selectors; labels of namespaces come from the store."""

    def __init__(self, store: Store, equivalents: Callable[[Resource], Sequence[Resource]]) -> None:
        self._store = store
        self._equivalents = equivalents

    def match(self, webhook: Webhook, attributes: AdmissionAttributes) -> Resource | None:
        """Return the version in which the webhook sees the request, or None when it is not called. Raises: NotFound."""
        found = self._by_rules(webhook, attributes)
        if found is None:
            return None
        if webhook.namespaces and not self._namespace_matches(webhook, attributes):
            return None
        if webhook.objects and not _object_matches(webhook, attributes):
            return None
        return found

    def _by_rules(self, webhook: Webhook, attributes: AdmissionAttributes) -> Resource | None:
        resource: Resource = attributes.resource
        if self._matches(webhook, resource, attributes):
            return resource
        if webhook.is_exact:
            return None
        for other in self._equivalents(resource):
            if other is not resource and self._matches(webhook, other, attributes):
                return other
        return None

    @staticmethod
    def _matches(webhook: Webhook, resource: Resource, attributes: AdmissionAttributes) -> bool:
        return any(
            rule.matches(resource, attributes.subresource, attributes.operation, attributes.namespace)
            for rule in webhook.rules
        )

    def _namespace_matches(self, webhook: Webhook, attributes: AdmissionAttributes) -> bool:
        resource: Resource = attributes.resource
        if resource.stored_as == NAMESPACES and not attributes.subresource and attributes.object is not None:
            return webhook.namespaces.matches(_labels(attributes.object))  # what it is to become counts
        if not attributes.namespace:
            return True
        record = self._store.table(*NAMESPACES).records.get(("", attributes.namespace))
        if record is None:
            raise failures.not_found("namespaces", "", attributes.namespace)
        return webhook.namespaces.matches(record.labels)


def _object_matches(webhook: Webhook, attributes: AdmissionAttributes) -> bool:
    """Tell whether the new object or the old one is selected; what has no metadata never is."""
    return any(
        document is not None and "metadata" in document and webhook.objects.matches(_labels(document))
        for document in (attributes.object, attributes.old)
    )


def _labels(document: Document) -> Any:
    return (document.get("metadata") or {}).get("labels")


def names_of(resource: Resource, attributes: AdmissionAttributes) -> Names:
    """Return the names under which a request is shown as one of `resource`."""
    kind = (resource.group, resource.version, resource.kind)
    if has_own_kind(attributes):
        kind = attributes.kind
    return Names(kind, (resource.group, resource.version, resource.plural))


def has_own_kind(attributes: AdmissionAttributes) -> bool:
    """Tell whether the body is not the resource's own kind but its subresource's (Scale, Eviction …), which no version changes."""
    resource: Resource = attributes.resource
    return attributes.kind != (resource.group, resource.version, resource.kind)


__all__ = ["Matcher", "has_own_kind", "names_of"]
