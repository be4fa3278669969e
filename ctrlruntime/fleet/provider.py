"""Providers: where the clusters of a fleet come from.

A provider only names clusters and their access. `FleetClusters` connects, runs and ends them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, Self

import msgspec

from ctrlruntime.cluster import Cluster
from ctrlruntime.rest.config import Config, config_from_kubeconfig

__all__ = ["ClusterSource", "Inventory", "Provider"]


class ClusterSource(msgspec.Struct, frozen=True, kw_only=True):
    """The access to one cluster."""

    config: Config
    labels: Mapping[str, str] = {}
    """Labels of the cluster, for your code: `mgr.fleet.status(name).labels`."""

    namespace: str = ""
    """Not empty: the cache and the client of the cluster have only this namespace."""

    fingerprint: str = ""
    """A text that changes with the access, such as a hash. Empty: the access never changes."""

    @classmethod
    def from_kubeconfig(
        cls,
        content: bytes,
        *,
        where: str,
        context: str | None = None,
        labels: Mapping[str, str] | None = None,
        allow_exec: bool = False,
    ) -> Self:
        """Return the access from the content of a kubeconfig.

        Args:
            content: the kubeconfig.
            where: its place, for messages.
            context: None: the current one.
            labels: labels of the cluster.
            allow_exec: accept a kubeconfig that runs a program or names a file. Then who can write it can run programs here.

        Raises:
            ConfigError: the kubeconfig cannot be used.

        """
        config = config_from_kubeconfig(content, where=where, context=context, allow_exec=allow_exec)
        return cls(config=config, labels=labels or {}, fingerprint=hashlib.sha256(content).hexdigest())


class Inventory(Protocol):
    """The clusters of one provider. Use it on the event loop of the manager."""

    @property
    def hub(self) -> Cluster:
        """The cluster of the manager."""
        ...

    def set(self, name: str, source: ClusterSource, /) -> None:
        """Add a cluster, or change its access. The same fingerprint changes nothing but the labels."""
        ...

    def remove(self, name: str, /) -> None:
        """Remove a cluster. An unknown name is ignored."""
        ...

    def names(self) -> list[str]:
        """Return the names of the clusters that this provider has set."""
        ...

    def synced(self) -> None:
        """Note that all clusters that exist now were set."""
        ...


class Provider(Protocol):
    """Names the clusters of a fleet.

    `name` is the first part of the names of its clusters: `files/eu`.
    """

    @property
    def name(self) -> str: ...

    async def run(self, inventory: Inventory, /) -> None:
        """Keep the inventory up to date until cancelled. If it raises or returns, it is called again; its clusters stay meanwhile."""
        ...
