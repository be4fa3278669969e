"""Objects on their way through a kustomization: each with the identities it had before, and the set that holds them in order."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ctrlruntime.data import open_data
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Document

__all__ = ["Id", "Kind", "Resource", "Resources", "is_cluster_scoped"]


class Kind(NamedTuple):
    """Group, version and kind; an empty part of one that selects is any."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def selects(self, other: Kind) -> bool:
        return all(not wanted or wanted == found for wanted, found in zip(self, other, strict=True))

    @staticmethod
    def of(api_version: str, kind: str) -> Kind:
        group, _, version = api_version.rpartition("/")
        return Kind(group, version, kind)


class Id(NamedTuple):
    """What tells an object from the others."""

    kind: Kind
    namespace: str
    name: str

    @property
    def effective_namespace(self) -> str:
        return "" if is_cluster_scoped(self.kind) else self.namespace or "default"

    def equals(self, other: Id) -> bool:
        return (self.kind, self.name, self.effective_namespace) == (other.kind, other.name, other.effective_namespace)

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        group = f".{self.kind.group}" if self.kind.group else ""
        return f"{self.kind.kind}{group} {where}{self.name}"


@dataclass(slots=True, eq=False)
class Resource:
    """One object. Its tree is changed in place."""

    tree: Document
    origin: str
    """The file it comes from, for messages."""
    previous: list[Id] = field(default_factory=list[Id])
    """Its identities before each renaming, the first one first."""
    prefixes: list[str] = field(default_factory=list[str])
    suffixes: list[str] = field(default_factory=list[str])
    needs_hash: bool = False
    behavior: str = "create"

    @property
    def metadata(self) -> Document:
        found: Document | None = self.tree.get("metadata")
        if found is None:
            found = self.tree["metadata"] = {}
        return found

    @property
    def kind(self) -> Kind:
        return Kind.of(str(self.tree.get("apiVersion") or ""), str(self.tree.get("kind") or ""))

    @property
    def name(self) -> str:
        return str(self.metadata.get("name") or "")

    @property
    def namespace(self) -> str:
        return str(self.metadata.get("namespace") or "")

    @property
    def id(self) -> Id:
        return Id(self.kind, self.namespace, self.name)

    @property
    def original(self) -> Id:
        return self.previous[0] if self.previous else self.id

    @property
    def ids(self) -> list[Id]:
        """All identities, that of now last."""
        return [*self.previous, self.id]

    def remember(self) -> None:
        """Keep the identity of now, before it is changed."""
        self.previous.append(self.id)


class Resources:
    """The objects of a kustomization, in order; no two have one identity."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self._all: list[Resource] = []
        for each in resources:
            self.append(each)

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._all))

    def append(self, resource: Resource) -> None:
        """Add an object. Raises: ConfigError when there is one of its identity."""
        there = self.where(resource.id.equals)
        if there:
            raise ConfigError(f"{resource.id} is in {there[0].origin} and in {resource.origin}. Include it only once")
        self._all.append(resource)

    def absorb(self, resource: Resource) -> None:
        """Add a generated object, or let it merge into or replace the one it names. Raises: ConfigError."""
        matches = [each for each in self._all if any(one.equals(resource.id) for one in each.ids)]
        if resource.behavior == "create":
            if matches:
                raise ConfigError(
                    f"{resource.origin}: {resource.id} already exists. Add `behavior: merge` or `behavior: replace`"
                )
            self._all.append(resource)
            return
        if len(matches) != 1:
            found = "no object" if not matches else f"{len(matches)} objects"
            raise ConfigError(
                f"{resource.origin}: behavior {resource.behavior} of {resource.id} requires one object of that name, but matches {found}"
            )
        self._all[self._all.index(matches[0])] = _merged(matches[0], resource)

    def remove(self, resource: Resource) -> None:
        self._all.remove(resource)

    def where(self, accepts: Callable[[Id], bool]) -> list[Resource]:
        """Return the objects whose identity of now is accepted."""
        return [each for each in self._all if accepts(each.id)]

    def where_ever(self, accepts: Callable[[Id], bool]) -> list[Resource]:
        """Return the objects one of whose identities, now or before, is accepted."""
        return [each for each in self._all if any(accepts(one) for one in each.ids)]

    def check_unique(self, resource: Resource, by: str) -> None:
        """Raises: ConfigError when a change has given the object the identity of another."""
        if len(self.where(resource.id.equals)) > 1:
            raise ConfigError(f"{by} gives two objects the identity {resource.id}. Rename one of them")


def _merged(old: Resource, new: Resource) -> Resource:
    metadata: Document = {**new.metadata, "name": old.name}
    if old.namespace:
        metadata["namespace"] = old.namespace
    for part in ("labels", "annotations"):
        both = {**(old.metadata.get(part) or {}), **(new.metadata.get(part) or {})}
        if both:
            metadata[part] = both
    tree: Document = {**new.tree, "metadata": metadata}
    if new.behavior == "merge":
        for part in ("data", "binaryData"):
            both = {**(old.tree.get(part) or {}), **(new.tree.get(part) or {})}
            if both:
                tree[part] = both
    return Resource(
        tree,
        new.origin,
        previous=list(old.previous),
        prefixes=list(old.prefixes),
        suffixes=list(old.suffixes),
        needs_hash=old.needs_hash and new.needs_hash,
    )


def is_cluster_scoped(kind: Kind) -> bool:
    """Tell whether objects of a built-in kind live outside of namespaces; custom kinds are taken as namespaced, as kustomize does.

    Older versions of a kind are like its version of today.
    """
    return kind._replace(version="") in _cluster_kinds()


@cache
def _cluster_kinds() -> frozenset[Kind]:
    recorded = json.loads(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))
    served = frozenset(
        Kind(each["responseKind"].get("group", ""), kind=each["responseKind"]["kind"])
        for each in _served(recorded["aggregated"])
        if each["scope"] == "Cluster" and each.get("responseKind")
    )
    return served | {Kind("policy", kind="PodSecurityPolicy")}


def _served(documents: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for document in documents.values():
        for group in document["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                for each in version.get("resources") or ():
                    said = each.get("responseKind") or {}
                    full = {"group": said.get("group") or name, "version": said.get("version") or version["version"]}
                    yield {**each, "responseKind": {**full, "kind": said.get("kind", "")}}
