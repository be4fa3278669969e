"""Whether a webhook or a policy is for a request, and under which version it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.reviews import Names
from ctrlruntime.apiserver.admission.webhooks import Match, Rule
from ctrlruntime.apiserver.interfaces import NAMESPACES, AdmissionAttributes
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.schema.trees import Document


class Kinds(Protocol):
    """Which versions a kind is served in, and the objects: the registry."""

    @property
    def store(self) -> Store: ...

    def equivalents(self, resource: Resource) -> Sequence[Resource]:
        """Return every served version of the objects that `resource` serves, itself included."""
        ...

    def served_together(self, group: str, plural: str) -> Sequence[tuple[str, str]]:
        """Return the (group, plural) pairs under which the same objects are served."""
        ...

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None: ...


class Matcher:
    """Looks at rules and selectors; labels of namespaces come from the store."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def match(self, match: Match, attributes: AdmissionAttributes) -> Resource | None:
        """Return the version under which the request matches, or None. Raises: NotFound without the namespace."""
        found = self._by_rules(match.rules, attributes, is_exact=match.is_exact)
        if found is None or not self.selects(match, attributes):
            return None
        return found

    def selects(self, match: Match, attributes: AdmissionAttributes) -> bool:
        """Tell whether the selectors allow a request and no rule excludes it. Raises: NotFound without the namespace."""
        if match.namespaces and not self._namespace_matches(match, attributes):
            return False
        if match.objects and not _object_matches(match, attributes):
            return False
        return self._by_rules(match.excluded, attributes, is_exact=match.is_exact) is None

    def _by_rules(self, rules: Sequence[Rule], attributes: AdmissionAttributes, *, is_exact: bool) -> Resource | None:
        resource: Resource = attributes.resource
        if any(rule.matches(resource, attributes) for rule in rules):
            return resource
        for other in self._kinds.equivalents(resource) if rules and not is_exact else ():
            if other is not resource and any(rule.matches(other, attributes) for rule in rules):
                return other
        return None

    def _namespace_matches(self, match: Match, attributes: AdmissionAttributes) -> bool:
        resource: Resource = attributes.resource
        if resource.stored_as == NAMESPACES and not attributes.subresource and attributes.object is not None:
            return match.namespaces.matches(_labels(attributes.object))  # what it is to become counts
        if not attributes.namespace:
            return True
        record = self._kinds.store.table(*NAMESPACES).records.get(("", attributes.namespace))
        if record is None:
            raise failures.not_found("namespaces", "", attributes.namespace)
        return match.namespaces.matches(record.labels)


def _object_matches(match: Match, attributes: AdmissionAttributes) -> bool:
    """Tell whether the new object or the old one is selected; what has no metadata never is."""
    return any(
        document is not None and "metadata" in document and match.objects.matches(_labels(document))
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


__all__ = ["Kinds", "Matcher", "has_own_kind", "names_of"]
