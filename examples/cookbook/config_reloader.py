"""Config reloader: the operator rolls out a Deployment when a ConfigMap that its Pods use changes.

Kubernetes starts no new Pods for a new ConfigMap. The operator writes a hash of the ConfigMaps into an annotation of the Pod template, and the
Deployment controller replaces the Pods. A Deployment opts in with the annotation `cookbook.example.com/reload: "true"`.

- The index has the ConfigMaps of each Deployment that opted in. One lookup finds the Deployments of a ConfigMap, without a scan.
- The hash depends only on the data. A new label of a ConfigMap, or a restart of the operator, rolls out nothing.
- A missing ConfigMap changes nothing, unless it is optional. New Pods could not start without it, and its create event reconciles again.
- The patch has only the annotation. It does not conflict with the status writes of a rollout, or with an autoscaler.
- Secrets would need the permission to read all Secrets, so this recipe leaves them out.

Shows: `watches` with a map function, `index_field` with a function, predicates with `|`, `merge_patch`.
"""

from __future__ import annotations

import hashlib
import json
from typing import TypeAlias

import ctrlruntime as ctrl
from ctrlruntime.api import apps, core
from ctrlruntime.predicate import AnnotationChangedPredicate, GenerationChangedPredicate
from examples.cookbook import running

RELOAD = "cookbook.example.com/reload"
HASH = "cookbook.example.com/config-hash"
CONFIG_MAPS = "configMaps"
Reference: TypeAlias = (
    core.ConfigMapVolumeSource | core.ConfigMapProjection | core.ConfigMapEnvSource | core.ConfigMapKeySelector
)


@ctrl.rbac(groups="apps", resources="deployments", verbs="patch")
@ctrl.rbac(groups="apps", resources="deployments/status", verbs="get")
class ReloadReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.log = ctrl.get_logger("reload")

    async def reconcile(self, request: ctrl.Request) -> None:
        deployment = await self.client.get_or_none(apps.Deployment, request)
        if deployment is None or deployment.metadata.deletion_timestamp is not None:
            return
        digest = await self.digest(request.namespace, references(deployment))
        template = deployment.spec.template
        if digest is None or template.metadata.annotations.get(HASH) == digest:
            return
        change = {"spec": {"template": {"metadata": {"annotations": {HASH: digest}}}}}
        await self.client.patch(deployment, ctrl.merge_patch(change))
        self.log.info("rolled out", digest=digest)

    async def digest(self, namespace: str, used: list[Reference]) -> str | None:
        """Return the hash of the ConfigMaps. None: it uses none, or one does not exist yet."""
        data: dict[str, object] = {}
        for reference in used:
            config = await self.client.get_or_none(core.ConfigMap, ctrl.NamespacedName(namespace, reference.name))
            if config is not None:
                stored = config.to_dict()
                data[reference.name] = [stored.get("data"), stored.get("binaryData")]
            elif not reference.optional:
                return None
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest() if used else None

    async def users_of(self, config: core.ConfigMap) -> list[ctrl.Request]:
        """Return the Deployments that use a ConfigMap."""
        key = ctrl.object_key(config)
        users = await self.client.list(apps.Deployment, namespace=key.namespace, fields={CONFIG_MAPS: key.name})
        return [ctrl.Request(user.namespace, user.name) for user in users.metadata]


def references(deployment: apps.Deployment) -> list[Reference]:
    """Return the references to ConfigMaps in the Pod template. Empty if the Deployment did not opt in."""
    if deployment.metadata.annotations.get(RELOAD) != "true":
        return []
    pod = deployment.spec.template.spec
    found: list[Reference | None] = [volume.config_map for volume in pod.volumes]
    found += [each.config_map for volume in pod.volumes if volume.projected for each in volume.projected.sources]
    for container in [*pod.init_containers, *pod.containers]:
        found += [source.config_map_ref for source in container.env_from]
        found += [variable.value_from.config_map_key_ref for variable in container.env if variable.value_from]
    return [each for each in found if each is not None]


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    mgr.cache.index_field(apps.Deployment, CONFIG_MAPS, lambda found: [each.name for each in references(found)])
    reconciler = ReloadReconciler(mgr.client)
    builder = ctrl.new_controller_managed_by(mgr)
    builder.for_(apps.Deployment, predicates=[GenerationChangedPredicate() | AnnotationChangedPredicate()])
    builder.watches(core.ConfigMap, ctrl.handler.enqueue_requests_from_map_func(reconciler.users_of))
    builder.complete(reconciler)


SAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: colors, namespace: default}
data: {color: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, annotations: {cookbook.example.com/reload: "true"}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29", envFrom: [{configMapRef: {name: colors}}]}]}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="deployments,configmaps,pods")


if __name__ == "__main__":
    main()
