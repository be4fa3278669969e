"""Hello, ConfigMap: the operator greets each ConfigMap that has the label `greet`.

The smallest operator that does something: it watches a built-in kind, and writes one field. If `data.name` is "Ada", it sets `data.greeting`
to "Hello, Ada!". It corrects the greeting when another client changes it.

- The reconciler reads the current state. It does not know which event triggered it, and does not need to.
- It compares before it writes. So its own write triggers one more reconcile that writes nothing.
- A predicate passes only the events of ConfigMaps with the label `greet`. A cluster has many others.
- A merge patch sends only the field that the operator sets. Changes by other clients to other fields are not lost.

Shows: `for_` with a predicate, `get_or_none`, `merge_patch`.
"""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.predicate import LabelSelectorPredicate
from examples.cookbook import running


@ctrl.rbac(groups="", resources="configmaps", verbs="patch")
class GreetingReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.log = ctrl.get_logger("hello")

    async def reconcile(self, request: ctrl.Request) -> None:
        config = await self.client.get_or_none(core.ConfigMap, request)
        if config is None or config.metadata.deletion_timestamp is not None:
            return
        name = config.data.get("name", "world")
        greeting = f"Hello, {name}!"
        if config.data.get("greeting") == greeting:
            return
        await self.client.patch(config, ctrl.merge_patch({"data": {"greeting": greeting}}))
        self.log.info("greeted", to=name)


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    greeted = LabelSelectorPredicate("greet")
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, predicates=[greeted]).complete(
        GreetingReconciler(mgr.client)
    )


SAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: ada, namespace: default, labels: {greet: ""}}
data: {name: Ada}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="configmaps")


if __name__ == "__main__":
    main()
