"""What the rooms of the embedded server know of each other.

Objects inside the server are JSON trees (`Document`); bytes are made once, when an object is stored. The registry knows resources and is
the only writer of the storage. HTTP handlers and the simulated controllers enter by the same door, `API`, so a controller's write is
defaulted, validated, counted and watched exactly like a client's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Document: TypeAlias = dict[str, Any]
EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Change:
    """One write: `old` is the state before it (None for a create), `object` the state after it (for a delete: the last state)."""

    type: EventType
    object: Document
    old: Document | None
    revision: int


class API(Protocol):
    """The server from inside. Resources are named by group and plural (`"apps", "deployments"`; core is `""`).

    Reads answer from memory at once and return trees the caller must not change; writes raise the APIStatusError a client would get.
    """

    def get(self, group: str, resource: str, namespace: str, name: str) -> Document | None: ...

    def list(
        self, group: str, resource: str, namespace: str = "", *, labels: Mapping[str, str] | None = None
    ) -> list[Document]:
        """Return the objects of one namespace (or of all, when it is empty), sorted by namespace and name."""
        ...

    def resources(self) -> Sequence[tuple[str, str]]:
        """Return (group, plural) of every stored resource, custom ones included."""
        ...

    def watch(self, group: str, resource: str) -> AsyncIterator[Change]:
        """Yield the present objects as ADDED, then every change, in order, until the server stops."""
        ...

    def watch_all(self) -> AsyncIterator[tuple[str, str, Change]]:
        """Yield (group, plural, change) of every write to any resource, the present objects first."""
        ...

    async def create(self, group: str, resource: str, namespace: str, document: Document) -> Document: ...

    async def update(self, group: str, resource: str, document: Document, *, subresource: str = "") -> Document: ...

    async def merge_patch(
        self, group: str, resource: str, namespace: str, name: str, patch: Document, *, subresource: str = ""
    ) -> Document: ...

    async def delete(
        self,
        group: str,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
    ) -> Document: ...


class Controller(Protocol):
    """A simulated controller: runs until cancelled. `name` is what `--controllers` lists."""

    name: str

    async def run(self, api: API) -> None: ...
