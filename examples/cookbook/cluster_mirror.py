"""Cluster mirror: the operator copies each ConfigMap with the label `mirror: "true"` from other clusters to its own cluster.

It keeps the mirror equal to its source, and deletes it when the source is deleted or loses the label.

- `on="fleet"` watches all clusters that are added to the manager. `request.cluster` says which one a request comes from.
- The operator only reads in the source clusters. A finalizer there would need the permission to write, and would block deletions.
- It watches the mirrors as well. At the start each mirror is compared with its source, so that a deletion in between is not missed.
- The client of another cluster rejects a request, so the key of the mirror is a `NamespacedName`.
- The cache of a source cluster has only ConfigMaps with the label. While that cluster does not respond, its mirrors stay as they are.
- A ConfigMap of the same name that is not a mirror of this cluster is neither overwritten nor deleted.

Shows: `ctrl.Cluster`, `mgr.add`, `on="fleet"`, `mgr.fleet.client`, `ByObject`, `NamespacedName`.
"""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.predicate import LabelSelectorPredicate
from examples.cookbook import running

SOURCE = "source"
MIRROR_OF = "cookbook.example.com/mirror-of"


@ctrl.rbac(groups="", resources="configmaps", verbs="create;update;delete")
class MirrorReconciler:
    def __init__(self, mgr: ctrl.Manager) -> None:
        self.mgr = mgr

    async def reconcile(self, request: ctrl.Request) -> None:
        key = ctrl.NamespacedName(request.namespace, request.name)
        source = await self.mgr.fleet.client(request).get_or_none(core.ConfigMap, request)
        if source is None:
            await self.prune(key, request.cluster)
            return

        def mutate(mirror: core.ConfigMap) -> None:
            if mirror.metadata.uid and not is_mirror(mirror, request.cluster):
                raise ctrl.errors.AlreadyOwnedError(f"ConfigMap {key} exists, and is not a mirror of {request.cluster}")
            mirror.metadata.labels[MIRROR_OF] = request.cluster
            mirror.data = source.data
            mirror.binary_data = source.binary_data

        await ctrl.create_or_update(self.mgr.client, core.ConfigMap, key, mutate)

    async def prune(self, key: ctrl.NamespacedName, cluster: str) -> None:
        mirror = await self.mgr.client.get_or_none(core.ConfigMap, key)
        if mirror is not None and is_mirror(mirror, cluster) and mirror.metadata.deletion_timestamp is None:
            await self.mgr.client.delete(mirror, uid=mirror.metadata.uid)


def is_mirror(config: core.ConfigMap, cluster: str) -> bool:
    return config.metadata.labels.get(MIRROR_OF) == cluster


def source_of(mirror: core.ConfigMap) -> list[ctrl.Request]:
    cluster = mirror.metadata.labels.get(MIRROR_OF, "")
    return [ctrl.Request(mirror.metadata.namespace, mirror.metadata.name, cluster)] if cluster else []


def setup(mgr: ctrl.Manager, config: ctrl.Config | None = None) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too, and needs no source cluster."""
    labelled = {core.ConfigMap: ctrl.cache.ByObject(labels="mirror=true")}
    mgr.add(ctrl.Cluster(config or mgr.config, name=SOURCE, cache=ctrl.CacheOptions(by_object=labelled)))
    mirrors = LabelSelectorPredicate(MIRROR_OF)
    (
        ctrl.new_controller_managed_by(mgr)
        .named("cluster-mirror")
        .for_(core.ConfigMap, on="fleet")
        .watches(core.ConfigMap, ctrl.handler.enqueue_requests_from_map_func(source_of), predicates=[mirrors])
        .complete(MirrorReconciler(mgr))
    )


SAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default, labels: {mirror: "true"}}
data: {color: red}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="configmaps", other=SOURCE)


if __name__ == "__main__":
    main()
