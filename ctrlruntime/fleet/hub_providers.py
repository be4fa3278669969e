"""Providers that read objects of the hub: Secrets, clusters of Cluster API, ClusterProfiles and Namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

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

__all__ = ["ClusterAPI", "ClusterProfiles", "CredentialPlugin", "KubeconfigSecrets", "Namespaces"]

_CLUSTER_API: Final = "cluster.x-k8s.io"
_CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
"""The label of the Secrets of a cluster of Cluster API."""

_INVENTORY: Final = "multicluster.x-k8s.io"
_PROFILE_CLUSTER: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
    "disable-compression",
    "extensions",
)
"""The fields of a cluster in a ClusterProfile. Not `certificate-authority`: it reads a file of this machine."""

_MORE_ARGUMENTS: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-args"
_MORE_ENVIRONMENT: Final = "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs"

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
    """Clusters in Secrets of the hub, which have kubeconfigs.

    The current context of a kubeconfig is the cluster. The name of the cluster is that of the Secret. A Secret that cannot be used is logged,
    and its cluster stays as it was.

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

        kinds: dict[type[Any], ByObject] = {core.Secret: _of(self._namespace, self._labels)}
        await _follow(inventory.hub, kinds, changed, lambda: _synced(inventory, present))


class Namespaces:
    """Each Namespace of the hub as a cluster.

    Its cache and its client have only the objects of this Namespace. For tests, and for operators of tenants. Clients of such a cluster can
    still read and write cluster-scoped kinds.

    Args:
        labels: a selector of the Namespaces.
        name: the first part of the names of the clusters.

    """

    def __init__(self, *, labels: Labels | None = None, name: str = "namespaces") -> None:
        self.name = name
        self._labels = labels

    async def run(self, inventory: Inventory, /) -> None:
        config = inventory.hub.config
        present: set[str] = set()

        def changed(_kind: object, _namespace: str, name: str, seen: Snapshot[core.Namespace] | None) -> None:
            if seen is None:
                present.discard(name)
                inventory.remove(name)
            else:
                present.add(name)
                inventory.set(name, ClusterSource(config=config, namespace=name, labels=seen.meta.labels or {}))

        kinds: dict[type[Any], ByObject] = {core.Namespace: ByObject(labels=self._labels)}
        await _follow(inventory.hub, kinds, changed, lambda: _synced(inventory, present))


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

        def synced() -> None:
            nonlocal is_synced
            is_synced = True
            _synced(inventory, present)

        kinds: dict[type[Any], ByObject] = {
            cluster_kind: _of(self._namespace, self._labels),
            core.Secret: _of(self._namespace, _CLUSTER_NAME),
        }
        await _follow(inventory.hub, kinds, changed, synced)


class CredentialPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program of this machine that returns the credentials of a cluster.

    It is run as an `exec` of a kubeconfig is. Raises: ConfigError for a command with a relative path.
    """

    command: str
    """The name of a program on PATH, or an absolute path."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    """Environment variables, in addition to those of the operator."""

    api_version: str = "client.authentication.k8s.io/v1"
    provide_cluster_info: bool = True
    """Pass the cluster to the program, in the variable KUBERNETES_EXEC_INFO."""

    allow_additional: bool = False
    """Also pass the arguments and environment variables of the ClusterProfile.

    Then who can write ClusterProfiles decides what the program does. Variables of `env` come first.
    """

    def __post_init__(self) -> None:
        if "/" in self.command and not self.command.startswith("/"):
            raise ConfigError(
                f"the plugin {self.command} has a relative path. Give an absolute one, or the name of a program on PATH"
            )


class ClusterProfiles:
    """The clusters of the ClusterProfiles in the hub.

    They are an inventory that cluster managers write. A ClusterProfile says in `status.accessProviders` how its cluster is reached; the
    credentials come from a plugin of this machine (KEP-5339).
    The first plugin whose name the ClusterProfile has is used. One that cannot be used is logged, and its cluster stays as it was.

    The name of the cluster is that of the ClusterProfile, with its namespace before it unless `namespace` is set. Its labels are those of the
    ClusterProfile.

    Args:
        plugins: the credential plugins, by the names of access providers.
        namespace: the namespace of the ClusterProfiles. "": all.
        labels: a selector of the ClusterProfiles.
        name: the first part of the names of the clusters.

    """

    def __init__(
        self,
        plugins: Mapping[str, CredentialPlugin],
        *,
        namespace: str = "",
        labels: Labels | None = None,
        name: str = "profiles",
    ) -> None:
        self.name = name
        self._plugins = dict(plugins)
        self._namespace = namespace
        self._labels = labels

    async def run(self, inventory: Inventory, /) -> None:
        found = await inventory.hub.mapper.preferred(_INVENTORY, "ClusterProfile")
        kind = Unstructured.of(f"{found.group}/{found.version}", "ClusterProfile")
        present: set[str] = set()

        def changed(_kind: object, namespace: str, name: str, seen: Snapshot[Any] | None) -> None:
            full = name if self._namespace else f"{namespace}/{name}"
            if seen is None:
                present.discard(full)
                inventory.remove(full)
                return
            present.add(full)
            where = f"ClusterProfile {namespace}/{name}"
            try:
                kubeconfig = self._kubeconfig(seen.object.content, where)
                if kubeconfig is None:
                    return  # its cluster manager has not said yet how it is reached
                source = ClusterSource.from_kubeconfig(
                    kubeconfig, where=where, labels=seen.meta.labels, allow_exec=True
                )
            except (ConfigError, DecodeError) as error:
                _not_usable(where, error)
            else:
                inventory.set(full, source)

        await _follow(
            inventory.hub, {kind: _of(self._namespace, self._labels)}, changed, lambda: _synced(inventory, present)
        )

    def _kubeconfig(self, profile: Mapping[str, Any], where: str) -> bytes | None:
        status = profile.get("status") or {}
        # `credentialProviders` is the former name of the field.
        listed = [*(status.get("credentialProviders") or ()), *(status.get("accessProviders") or ())]
        offered = {each.get("name"): each.get("cluster") or {} for each in listed}
        if not offered:
            return None
        name = next((name for name in self._plugins if name in offered), None)
        if name is None:
            raise ConfigError(
                f"{where} has the access providers {', '.join(map(str, offered))}; the operator has plugins of "
                f"{', '.join(self._plugins) or 'none of them'}"
            )
        cluster = {field: offered[name][field] for field in _PROFILE_CLUSTER if field in offered[name]}
        command = _command(self._plugins[name], cluster.get("extensions") or (), where)
        return msgspec.json.encode(
            {
                "current-context": name,
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "clusters": [{"name": name, "cluster": cluster}],
                "users": [{"name": name, "user": {"exec": command}}],
            },
            order="deterministic",
        )


def _command(plugin: CredentialPlugin, extensions: Sequence[Mapping[str, Any]], where: str) -> Mapping[str, Any]:
    """Return the `exec` of a kubeconfig."""
    args, env = list(plugin.args), dict(plugin.env)
    if plugin.allow_additional:
        found = {each.get("name"): each.get("extension") for each in extensions}
        more, variables = found.get(_MORE_ARGUMENTS) or [], found.get(_MORE_ENVIRONMENT) or {}
        if not isinstance(more, list) or not isinstance(variables, Mapping):
            raise ConfigError(f"{where}: additional-args must be a list, and additional-envs a map")
        args += map(str, cast("list[object]", more))
        env = {str(key): str(value) for key, value in cast("Mapping[object, object]", variables).items()} | env
    return {
        "apiVersion": plugin.api_version,
        "command": plugin.command,
        "args": args,
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "provideClusterInfo": plugin.provide_cluster_info,
    }


def _of(namespace: str, labels: Labels | None) -> ByObject:
    """Return the options of a kind in one namespace, or in all."""
    return ByObject(namespaces={namespace: NamespaceOptions(labels=labels)}) if namespace else ByObject(labels=labels)


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
        _not_usable(where, error)
    else:
        inventory.set(name, source)


def _not_usable(where: str, error: Exception) -> None:
    _log.error("object not usable, its cluster stays as it was", object=where, error=str(error))
