"""Which objects are ours: the ApplySet convention of Kubernetes, as kubectl keeps it.

A set has a parent, here a ConfigMap of the project's name in the operator's namespace; its members carry a label. From the enhancement
proposal KEP-3659 ("ApplySet: kubectl apply --prune redesign and graduation strategy", sig-cli) and kubectl's `pkg/cmd/apply/applyset.go`:

| where | key | value |
|---|---|---|
| parent, label | ``applyset.kubernetes.io/id`` | ``applyset-HASH-v1`` |
| parent, annotation | ``applyset.kubernetes.io/tooling`` | ``NAME/VERSION`` of the tool that may change the set |
| parent, annotation | ``applyset.kubernetes.io/contains-group-kinds`` | ``KIND.GROUP`` of the members, sorted, by comma |
| parent, annotation | ``applyset.kubernetes.io/additional-namespaces`` | namespaces of members besides the parent's |
| member, label | ``applyset.kubernetes.io/part-of`` | the parent's id |

HASH is the SHA-256 of ``NAME.NAMESPACE.KIND.GROUP`` of the parent in URL-safe base64 without padding. The annotations are made wider before
members are written and narrowed after what is left over was pruned, so that a tool that stops in between leaves nothing unknown.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime.api.core.v1 import ConfigMap
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.api.object import PartialObjectMetadata, Unstructured
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError, Conflict, NoMatchError
from ctrlruntime.project.deployment.objects import Named

__all__ = ["ADDITIONAL_NAMESPACES", "GROUP_KINDS", "ID", "OWNER", "PART_OF", "TOOLING", "ApplySet", "Member", "Scope"]

ID: Final = "applyset.kubernetes.io/id"
PART_OF: Final = "applyset.kubernetes.io/part-of"
TOOLING: Final = "applyset.kubernetes.io/tooling"
GROUP_KINDS: Final = "applyset.kubernetes.io/contains-group-kinds"
ADDITIONAL_NAMESPACES: Final = "applyset.kubernetes.io/additional-namespaces"

OWNER: Final = "ctrl"
"""The field manager of what `ctrl deploy` applies, and the tool's name in the parent."""

_PARENT_OWNER: Final = "ctrl-applyset"
_ConfigMap = Unstructured.of("v1", "ConfigMap")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where members may be: their groups and kinds, and their namespaces."""

    kinds: frozenset[tuple[str, str]]
    namespaces: frozenset[str]

    @classmethod
    def of(cls, members: Iterable[Named]) -> Scope:
        members = list(members)
        return cls(
            frozenset((each.kind.group, each.kind.kind) for each in members),
            frozenset(each.namespace for each in members if each.namespace),
        )

    def __or__(self, other: Scope) -> Scope:
        return Scope(self.kinds | other.kinds, self.namespaces | other.namespaces)


@dataclass(frozen=True, slots=True)
class Member:
    """An object in the cluster that carries the set's label."""

    named: Named
    uid: str
    is_going: bool
    finalizers: tuple[str, ...]


class ApplySet:
    """The set of one project in one namespace."""

    def __init__(self, client: Client, name: str, namespace: str, *, version: str = "") -> None:
        self._client = client
        self.parent = Named(GroupVersionKind("", "v1", "ConfigMap"), namespace, name)
        self._version = version or "unknown"

    @property
    def id(self) -> str:
        digest = hashlib.sha256(f"{self.parent.name}.{self.parent.namespace}.ConfigMap.".encode()).digest()
        return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"

    async def read(self) -> Scope | None:
        """Return what the parent says, or None when nothing was deployed.

        Raises: ConfigError for a ConfigMap of that name that is not a parent, or another tool's.
        """
        found = await self._client.api_reader.get_or_none(
            ConfigMap, NamespacedName(self.parent.namespace, self.parent.name)
        )
        if found is None:
            return None
        annotations = found.metadata.annotations
        if found.metadata.labels.get(ID) != self.id:
            raise ConfigError(
                f"cannot record the deployment: {self.parent} exists and is not such a record. Rename it, or use another project-name"
            )
        tool = annotations.get(TOOLING, "").partition("/")[0]
        if tool != OWNER:
            raise ConfigError(
                f"cannot deploy: {self.parent} belongs to {tool or 'another tool'}. Remove its deployment with that tool"
            )
        return Scope(
            frozenset(_group_kind(text) for text in _listed(annotations.get(GROUP_KINDS, ""))),
            frozenset(_listed(annotations.get(ADDITIONAL_NAMESPACES, ""))) | {self.parent.namespace},
        )

    async def write(self, scope: Scope) -> None:
        """Record where members may be; create the parent if it is missing."""
        kinds = sorted(f"{kind}.{group}" if group else kind for group, kind in scope.kinds)
        parent = _ConfigMap.from_dict(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {
                    "name": self.parent.name,
                    "namespace": self.parent.namespace,
                    "labels": {ID: self.id},
                    "annotations": {
                        TOOLING: f"{OWNER}/{self._version}",
                        GROUP_KINDS: ",".join(kinds),
                        ADDITIONAL_NAMESPACES: ",".join(sorted(scope.namespaces - {self.parent.namespace})),
                    },
                },
            }
        )
        try:
            await self._client.apply(parent, field_owner=_PARENT_OWNER, force=True)
        except Conflict as error:
            raise ConfigError(f"{self.parent}: {error}") from error

    async def members(self, scope: Scope) -> list[Member]:
        """Return the members there are. A kind the cluster no longer serves has none."""
        lists = [self._of_kind(group, kind, scope.namespaces) for group, kind in sorted(scope.kinds)]
        return [member for found in await asyncio.gather(*lists) for member in found]

    async def _of_kind(self, group: str, kind: str, namespaces: frozenset[str]) -> list[Member]:
        try:
            resource = await self._client.mapper.preferred(group, kind)
        except NoMatchError:
            return []
        cls = PartialObjectMetadata.of(Unstructured.of(resource.gvk.api_version, kind))
        found: list[Member] = []
        for namespace in sorted(namespaces) if resource.namespaced else [None]:
            try:
                listed = await self._client.api_reader.list(cls, namespace=namespace, labels={PART_OF: self.id})
            except NoMatchError:  # its definition went in this moment
                return []
            for each in listed:
                meta = each.metadata
                named = Named(resource.gvk, meta.namespace, meta.name)
                found.append(Member(named, meta.uid, meta.deletion_timestamp is not None, tuple(meta.finalizers)))
        return found

    def mark(self, tree: dict[str, Any]) -> None:
        """Put the label of a member on an object's tree."""
        metadata = tree["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), PART_OF: self.id}


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _group_kind(text: str) -> tuple[str, str]:
    kind, _, group = text.partition(".")
    return group, kind
