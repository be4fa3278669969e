"""Node index: the operator writes the number of running Pods of each Node into an annotation of the Node.

The primary object is a Node, which has no namespace. Its Pods are found with an index, and an event of a Pod reconciles its Node.

- An index function needs the complete Pods, because the Node and the phase are in `spec` and `status`. So Pods are cached as `core.Pod`.
- The operator needs only the annotations of a Node. So Nodes are cached as metadata, without their long lists of images.
- `AnnotationChangedPredicate` drops the heartbeats of the kubelets. Without it each of them would be a reconcile.
- A map function is called with the old and the new state. So a Pod that has ended is counted down on its Node.
- The annotation has only the number. With names or times in it, the Node would be written for each event of a Pod.

Shows: a cluster-scoped primary object, `PartialObjectMetadata`, `index_field`, `watches` with a map function, predicates.
"""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.predicate import AnnotationChangedPredicate
from examples.cookbook import running

PODS = "cookbook.example.com/pods"
NODE = "node"
NodeMetadata = ctrl.PartialObjectMetadata.of(core.Node)


@ctrl.rbac(groups="", resources="nodes", verbs="patch")
class NodeReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        node = await self.client.get_or_none(NodeMetadata, request)
        if node is None or node.metadata.deletion_timestamp is not None:
            return
        count = str(len(await self.client.list(core.Pod, fields={NODE: request.name})))
        if node.metadata.annotations.get(PODS) != count:
            await self.client.patch(node, ctrl.merge_patch({"metadata": {"annotations": {PODS: count}}}))


def node_of(pod: core.Pod) -> list[str]:
    """Return the Node on which a Pod runs. Empty if it is not scheduled, or has ended."""
    is_running = pod.spec.node_name and pod.status.phase not in {"Succeeded", "Failed"}
    return [pod.spec.node_name] if is_running else []


def requests_of(pod: core.Pod) -> list[ctrl.Request]:
    return [ctrl.Request("", node) for node in node_of(pod)]


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    mgr.cache.index_field(core.Pod, NODE, node_of)
    builder = ctrl.new_controller_managed_by(mgr).for_(NodeMetadata, predicates=[AnnotationChangedPredicate()])
    builder.watches(core.Pod, ctrl.handler.enqueue_requests_from_map_func(requests_of))
    builder.complete(NodeReconciler(mgr.client))


SAMPLE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="nodes,pods")


if __name__ == "__main__":
    main()
