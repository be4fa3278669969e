"""The admission plugins one after the other, as one `Admission`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctrlruntime.apiserver.interfaces import Admission, AdmissionAttributes, Document, Operation


class AdmissionChain:
    """Asks its plugins in their order: each sees what those before it made of the object. The first failure ends a request."""

    def __init__(self, plugins: Sequence[Admission]) -> None:
        self._plugins = tuple(plugins)

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        return any(plugin.is_wanted(group, plural, subresource, operation) for plugin in self._plugins)

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        changed: Document | None = None
        for plugin in self._plugins:
            found = await plugin.mutate(attributes)
            if found is not None:
                changed, attributes = found, replace(attributes, object=found)
        return changed

    async def validate(self, attributes: AdmissionAttributes) -> None:
        for plugin in self._plugins:
            await plugin.validate(attributes)


__all__ = ["AdmissionChain"]
