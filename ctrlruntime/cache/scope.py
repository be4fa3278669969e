"""The scope of one reflector, and how its objects are stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.selector import LabelSelector

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes an object's JSON document before it is stored (for example drops a large field) and returns it.

It must return the same result for the same input, and keep name, namespace, uid and resourceVersion.
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of one reflector: a namespace ("" = all except `besides`), selectors, and storage options."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: str = ""
    besides: tuple[str, ...] = ()
    """Namespaces with their own scope; `fields` excludes their objects."""

    transform: Transform | None = None
    sync_period: float | None = None
    """Seconds between two deliveries of each object to the subscribers; None: never."""

    @property
    def selects_fields(self) -> bool:
        """Whether a field selector other than that of `besides` excludes objects."""
        besides = {f"metadata.namespace!={name}" for name in self.besides}
        return any(term not in besides for term in self.fields.split(",") if term)

    def holds(self, namespace: str) -> bool:
        """Return whether objects of the namespace belong to this scope."""
        return namespace == self.namespace if self.namespace else namespace not in self.besides
