"""The admission plugins one after the other, as one `Admission`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, Write
from ctrlruntime.apiserver.interfaces import Admission, AdmissionAttributes, Operation, Served
from ctrlruntime.schema.trees import Document


class AdmissionChain:
    """Asks its plugins in their order: each sees what those before it made of the object. The first failure ends a request."""

    def __init__(self, plugins: Sequence[Admission]) -> None:
        self._plugins = tuple(plugins)
        self._concerned: dict[Write, tuple[Admission, ...]] = {}
        """Whom a write may concern; the others need not be asked whether they want it."""

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        write = (group, plural, subresource, operation)
        for plugin in self._concerned.get(write) or self._concerned_by(write):
            if plugin.is_wanted(group, plural, subresource, operation):
                return True
        return False

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        """Return the changed object. All plugins are asked again, once, when a webhook or a policy has changed it."""
        changed: Document | None = None
        plugins = self._wanting(attributes)
        rounds = attributes.reinvocation
        for is_second in (False, True):
            rounds.is_second = is_second
            for plugin in plugins:
                found = await plugin.mutate(attributes)
                if found is not None:
                    changed, attributes = found, replace(attributes, object=found)
            if not rounds.is_needed:
                break
        return changed

    async def validate(self, attributes: AdmissionAttributes) -> None:
        for plugin in self._wanting(attributes):
            await plugin.validate(attributes)

    def _wanting(self, attributes: AdmissionAttributes) -> list[Admission]:
        resource: Served = attributes.resource
        write = (resource.group, resource.plural, attributes.subresource, attributes.operation)
        plugins = self._concerned.get(write) or self._concerned_by(write)
        return [plugin for plugin in plugins if plugin.is_wanted(*write)]

    def _concerned_by(self, write: Write) -> tuple[Admission, ...]:
        found = tuple(one for one in self._plugins if not isinstance(one, Plugin) or one.is_concerned(*write))
        self._concerned[write] = found
        return found


__all__ = ["AdmissionChain"]
