"""Providers that read objects of the hub: Secrets with kubeconfigs, and clusters of Cluster API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ctrlruntime import log
from ctrlruntime.api import core
from ctrlruntime.api.object import Unstructured
from ctrlruntime.cache.cache import Cache
from ctrlruntime.cache.options import ByObject, CacheOptions, NamespaceOptions
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.client.interfaces import Labels
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError, DecodeError
from ctrlruntime.event import DeleteEvent, Snapshot, UpdateEvent
from ctrlruntime.fleet.provider import ClusterSource, Inventory

__all__ = ["ClusterAPI", "KubeconfigSecrets"]

_CLUSTER_API: Final = "cluster.x-k8s.io"
_CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""The label of the Secrets of a cluster of Cluster API."""

_log = log.get_logger("fleet")


async def _follow(
    hub: Cluster,
    kinds: Mapping[type[Any], ByObject],
    changed: Callable[[type[Any], str, str, Snapshot[Any] | None], None],
    synced: Callable[[], None],
) -> None:
    """Report each object of some kinds in the hub, and each change; None: it was deleted. `synced` is called after all that exist now."""
    cache = Cache(hub.transport, hub.mapper, hub.scheme, options=CacheOptions(by_object=kinds))

    async def take(kind: type[Any], subscription: Subscription[Any]) -> None:
        while (event := await subscription.get()) is not None:
            snapshot = event.new_snapshot if isinstance(event, UpdateEvent) else event.snapshot
            is_deleted = isinstance(event, DeleteEvent)
            changed(kind, event.meta.namespace, event.meta.name, None if is_deleted else snapshot)

    async with asyncio.TaskGroup() as group:
        group.create_task(cache.run())
        subscriptions = {kind: await cache.subscribe(kind, name="fleet") for kind in kinds}
        for kind, subscription in subscriptions.items():
            group.create_task(take(kind, subscription))
        for subscription in subscriptions.values():
            await subscription.wait_for_sync()
        synced()


class KubeconfigSecrets:
    """Clusters in Secrets of the hub: each has a kubeconfig, and its current context is one cluster.

    The name of the cluster is that of the Secret. A Secret that cannot be used is logged, and its cluster stays as it was.

    Args:
        namespace: the namespace of the Secrets.
        labels: a selector of the Secrets.
        keys: the keys of the kubeconfig; the first one that the Secret has counts.
        allow_exec: accept kubeconfigs that run a program or name a file. Then who can write these Secrets can run programs in the operator.
        name: the first part of the names of the clusters.

    """

    def __init__(
        self,
        namespace: str,
        *,
        labels: Labels | None = None,
        keys: Sequence[str] = ("kubeconfig", "value"),
        allow_exec: bool = False,
        name: str = "secrets",
    ) -> None:
        self.name = name
        self._namespace = namespace
        self._labels = labels
        self._keys = keys
        self._allow_exec = allow_exec

    async def run(self, inventory: Inventory, /) -> None:
        present: set[str] = set()

        def changed(_kind: object, _namespace: str, name: str, secret: Snapshot[core.Secret] | None) -> None:
            if secret is None:
                present.discard(name)
                inventory.remove(name)
            else:
                present.add(name)
                _set(inventory, name, secret, self._keys, allow_exec=self._allow_exec)

        secrets = ByObject(namespaces={self._namespace: NamespaceOptions(labels=self._labels)})
        await _follow(inventory.hub, {core.Secret: secrets}, changed, lambda: _synced(inventory, present))


class ClusterAPI:
    """The clusters that Cluster API manages in the hub, once their control plane is initialized.

    The kubeconfig is in the Secret `NAME-kubeconfig`. The name of the cluster is that of the Cluster, with its namespace before it unless
    `namespace` is set: `capi/team-a/eu`. Its labels are those of the Cluster.

    Args:
        namespace: the namespace of the Clusters and Secrets. "": all.
        labels: a selector of the Clusters.
        allow_exec: accept kubeconfigs that run a program or name a file. Then who can write these Secrets can run programs in the operator.
        name: the first part of the names of the clusters.

    """

    def __init__(
        self, namespace: str = "", *, labels: Labels | None = None, allow_exec: bool = False, name: str = "capi"
    ) -> None:
        self.name = name
        self._namespace = namespace
        self._labels = labels
        self._allow_exec = allow_exec

    async def run(self, inventory: Inventory, /) -> None:
        found = await inventory.hub.mapper.preferred(_CLUSTER_API, "Cluster")
        cluster_kind = Unstructured.of(f"{found.group}/{found.version}", "Cluster")
        clusters: dict[tuple[str, str], Snapshot[Any]] = {}
        secrets: dict[tuple[str, str], Snapshot[core.Secret]] = {}
        present: set[str] = set()
        is_synced = False

        def changed(kind: type[Any], namespace: str, name: str, seen: Snapshot[Any] | None) -> None:
            known: dict[tuple[str, str], Snapshot[Any]] = clusters
            if kind is core.Secret:
                known, (name, _, rest) = secrets, name.rpartition("-")
                if rest != "kubeconfig":
                    return  # it has the certificates of the cluster
            if seen is None:
                known.pop((namespace, name), None)
            else:
                known[namespace, name] = seen
            settle(namespace, name)

        def settle(namespace: str, name: str) -> None:
            cluster, secret = clusters.get((namespace, name)), secrets.get((namespace, name))
            full = name if self._namespace else f"{namespace}/{name}"
            if cluster is None or secret is None:
                if is_synced:  # before that, the other half may still come
                    present.discard(full)
                    inventory.remove(full)
            elif full in present or _is_initialized(cluster.object):
                present.add(full)
                _set(inventory, full, secret, ("value",), allow_exec=self._allow_exec, labels=cluster.meta.labels or {})

        def options(labels: Labels | None) -> ByObject:
            if not self._namespace:
                return ByObject(labels=labels)
            return ByObject(namespaces={self._namespace: NamespaceOptions(labels=labels)})

        def synced() -> None:
            nonlocal is_synced
            is_synced = True
            _synced(inventory, present)

        kinds: dict[type[Any], ByObject] = {
            cluster_kind: options(self._labels),
            core.Secret: options(_CLUSTER_NAME),
        }
        await _follow(inventory.hub, kinds, changed, synced)


def _is_initialized(cluster: Unstructured) -> bool:
    """Return whether a Cluster has an API server; `status.initialization` is that of v1beta2, the condition that of v1beta1."""
    status = cluster.content.get("status") or {}
    conditions = status.get("conditions") or []
    return bool((status.get("initialization") or {}).get("controlPlaneInitialized")) or any(
        (each.get("type"), each.get("status")) == ("ControlPlaneInitialized", "True") for each in conditions
    )


def _synced(inventory: Inventory, present: set[str]) -> None:
    for name in set(inventory.names()) - present:  # deleted while this provider did not run
        inventory.remove(name)
    inventory.synced()


def _set(
    inventory: Inventory,
    name: str,
    snapshot: Snapshot[core.Secret],
    keys: Sequence[str],
    *,
    allow_exec: bool,
    labels: Mapping[str, str] | None = None,
) -> None:
    """Set a cluster from the kubeconfig in a Secret. One that cannot be used is logged, and the cluster stays as it was."""
    where = f"Secret {snapshot.meta.namespace}/{snapshot.meta.name}"
    try:
        secret = snapshot.object
        content = next((secret.data[key] for key in keys if key in secret.data), None)
        if content is None:
            raise ConfigError(f"{where} has none of the keys {', '.join(keys)}")
        labels = secret.metadata.labels if labels is None else labels
        source = ClusterSource.from_kubeconfig(content, where=where, labels=labels, allow_exec=allow_exec)
    except (ConfigError, DecodeError) as error:
        _log.error("Secret not usable, its cluster stays as it was", secret=where, error=str(error))
    else:
        inventory.set(name, source)
