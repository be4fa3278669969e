"""What the plugins of this folder have in common: which writes they see, and that none of them awaits."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Operation
from ctrlruntime.apiserver.registry.registry import Registry
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.errors import Forbidden
from ctrlruntime.schema.trees import Document

Write: TypeAlias = tuple[str, str, str, Operation]
"""Group, plural, subresource and operation."""


class Plugin:
    """A plugin that kube-apiserver has built in; implements `Admission`."""

    writes: ClassVar[frozenset[Write]]
    """What it looks at."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def has_work(self) -> bool:
        """Tell whether there is something in the store without which the plugin does nothing."""
        return True

    def is_concerned(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        """Tell whether it ever looks at such a write."""
        return (group, plural, subresource, operation) in self.writes

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        return self.has_work() and self.is_concerned(group, plural, subresource, operation)

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        """Act also when the object was changed since: kube-apiserver asks its own plugins again after a webhook's change."""
        self.admit(attributes)
        return None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        self.check(attributes)

    def admit(self, attributes: AdmissionAttributes) -> None:
        """Change the object in place: what a plugin sets need not be read again. Raises: APIStatusError."""

    def check(self, attributes: AdmissionAttributes) -> None:
        """Raises: APIStatusError of a denial."""


def forbidden(attributes: AdmissionAttributes, why: str) -> Forbidden:
    """Return the denial of a plugin (NewForbidden in apiserver's pkg/admission/errors.go)."""
    resource: Resource = attributes.resource
    metadata = (attributes.object or {}).get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return failures.forbidden(resource.plural, resource.group, name, why)


__all__ = ["Plugin", "Write", "forbidden"]
