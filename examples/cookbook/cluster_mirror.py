"""Cluster mirror: the operator copies each ConfigMap with the label `mirror: "true"` from a source cluster to its own cluster.

It keeps the mirror equal to its source, and deletes it when the source is deleted or loses the label.

- The operator only reads in the source cluster. A finalizer there would need the permission to write, and would block deletions.
- It watches the mirrors as well. At the start each mirror is compared with its source, so that a deletion in between is not missed.
- A request has the cluster of its object. The client of another cluster rejects it, so the key of the mirror is a `NamespacedName`.
- The cache of the source cluster has only ConfigMaps with the label. While that cluster does not respond, the mirrors stay as they are.
- A ConfigMap of the same name that is not a mirror is neither overwritten nor deleted.

Shows: `ctrl.Cluster`, `mgr.add`, `source.Kind` of another cluster, `ByObject`, `NamespacedName`.
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
    def __init__(self, home: ctrl.Client, source: ctrl.Client) -> None:
        self.home = home
        self.source = source

    async def reconcile(self, request: ctrl.Request) -> None:
        key = ctrl.NamespacedName(request.namespace, request.name)
        source = await self.source.get_or_none(core.ConfigMap, request)
        if source is None:
            await self.prune(key)
            return

        def mutate(mirror: core.ConfigMap) -> None:
            if mirror.metadata.uid and not is_mirror(mirror):
                raise ctrl.errors.AlreadyOwnedError(f"ConfigMap {key} exists, and is not a mirror")
            mirror.metadata.labels[MIRROR_OF] = SOURCE
            mirror.data = source.data
            mirror.binary_data = source.binary_data

        await ctrl.create_or_update(self.home, core.ConfigMap, key, mutate)

    async def prune(self, key: ctrl.NamespacedName) -> None:
        mirror = await self.home.get_or_none(core.ConfigMap, key)
        if mirror is not None and is_mirror(mirror) and mirror.metadata.deletion_timestamp is None:
            await self.home.delete(mirror, uid=mirror.metadata.uid)


def is_mirror(config: core.ConfigMap) -> bool:
    return config.metadata.labels.get(MIRROR_OF) == SOURCE


def source_of(mirror: core.ConfigMap) -> list[ctrl.Request]:
    return [ctrl.Request(mirror.metadata.namespace, mirror.metadata.name, SOURCE)]


def setup(mgr: ctrl.Manager, config: ctrl.Config | None = None) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too, and needs no source cluster."""
    labelled = {core.ConfigMap: ctrl.cache.ByObject(labels="mirror=true")}
    source = ctrl.Cluster(config or mgr.cluster.config, name=SOURCE, cache=ctrl.CacheOptions(by_object=labelled))
    mgr.add(source)
    changes = ctrl.source.Kind(source.cache, core.ConfigMap, ctrl.handler.EnqueueRequestForObject(), cluster=SOURCE)
    mirrors = LabelSelectorPredicate(f"{MIRROR_OF}={SOURCE}")
    (
        ctrl.new_controller_managed_by(mgr)
        .named("cluster-mirror")
        .watches_raw_source(changes)
        .watches(core.ConfigMap, ctrl.handler.enqueue_requests_from_map_func(source_of), predicates=[mirrors])
        .complete(MirrorReconciler(mgr.client, source.client))
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
