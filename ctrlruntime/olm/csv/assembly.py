"""The assembly of a ClusterServiceVersion: what goes into it, what stays beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object
from ctrlruntime.generate.options import Document, Warn, warn

__all__ = ["Assembled", "Sources", "assemble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What a ClusterServiceVersion is made from."""

    package: str
    """The name of the package in catalogs: a DNS label."""

    version: str
    """A semantic version, without a leading v."""

    base: Document
    """The base a person wrote; what it says is kept where nothing follows from the rest."""

    objects: Sequence[Document]
    """All objects of the project as kustomize renders them, without the base: with their final names and namespaces."""

    kinds: Sequence[type[Object]] = ()
    """The project's kinds: names for people, descriptors."""

    owns: Mapping[GroupVersionKind, Sequence[GroupVersionKind]] = field(
        default_factory=dict[GroupVersionKind, Sequence[GroupVersionKind]]
    )
    """For each kind that a controller reconciles, the kinds it owns."""

    extra_service_accounts: Sequence[str] = ()
    """ServiceAccounts beside those of Deployments whose permissions OLM shall grant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The parts of a bundle's `manifests/`."""

    csv: Document
    others: Sequence[Document]
    """The objects that stay files, definitions first, without namespaces."""


def assemble(sources: Sources, *, warn: Warn = warn) -> Assembled:
    """Return the ClusterServiceVersion and what stands beside it; the same sources give the same.

    `warn` takes the text of each warning. Raises: GenerateError, of one line, for what cannot become a bundle.
    """
    raise NotImplementedError
