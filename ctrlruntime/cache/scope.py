"""What one reflector of a kind covers, and how the objects of it are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctrlruntime.selector import LabelSelector

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Changes an object's JSON tree before it is stored (for example drops a big field) and returns it; must be idempotent.

It must leave name, namespace, uid and resourceVersion as they are.
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What one reflector covers: a namespace ("" = all but those `besides`) and selectors; and how its objects are kept."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: str = ""
    besides: tuple[str, ...] = ()
    """Namespaces that have a scope of their own; `fields` leaves their objects out."""

    transform: Transform | None = None
    sync_period: float | None = None
    """Seconds after which each object is shown to the subscribers again; None: never."""

    @property
    def selects_fields(self) -> bool:
        """Whether a field selector other than that of `besides` leaves objects out."""
        besides = {f"metadata.namespace!={name}" for name in self.besides}
        return any(term not in besides for term in self.fields.split(",") if term)

    def holds(self, namespace: str) -> bool:
        """Whether objects of the namespace belong to this scope."""
        return namespace == self.namespace if self.namespace else namespace not in self.besides
