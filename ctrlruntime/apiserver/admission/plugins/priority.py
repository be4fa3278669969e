"""The plugin Priority, as far as it judges classes: one of them can be the default (plugin/pkg/admission/priority).

What a Pod gets from its class is set as the Pod is created, in `assignment`.
"""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver.admission.plugins.plugin import Plugin, forbidden
from ctrlruntime.apiserver.interfaces import AdmissionAttributes

_CLASSES: Final = ("scheduling.k8s.io", "priorityclasses")


class Priority(Plugin):
    """Refuses a second class that is the default."""

    writes = frozenset({(*_CLASSES, "", "CREATE"), (*_CLASSES, "", "UPDATE")})

    def check(self, attributes: AdmissionAttributes) -> None:
        made = attributes.object or {}
        if not made.get("globalDefault"):
            return
        others = [one for one in self._registry.list(*_CLASSES) if one.get("globalDefault")]
        # Of several, upstream takes the one with the lowest value.
        present = min(others, key=lambda one: int(one.get("value", 0)), default=None)
        if present is None:
            return
        name = present["metadata"]["name"]
        if attributes.operation == "CREATE" or name != made["metadata"]["name"]:
            raise forbidden(
                attributes, f"PriorityClass {name} is already marked as default. Only one default can exist"
            )


__all__ = ["Priority"]
