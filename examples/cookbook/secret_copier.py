"""Secret copier: the operator copies each Secret with the annotation `cookbook.example.com/copy-to` into other namespaces.

With the annotation `cookbook.example.com/copy-to: "blog,shop"`, both namespaces get a copy of the same name. A copy is restored when another
client changes or deletes it. It is deleted when the annotation no longer names its namespace, or when the source is deleted.

- An owner reference cannot cross namespaces: the garbage collector would delete the copy. A tracked owner is a label and an annotation.
- Kubernetes does not delete tracked dependents. So the source gets a finalizer before its first copy is created.
- A Secret that exists in a target namespace is not overwritten. Otherwise users could replace the Secrets of other namespaces.
- A namespace that does not exist yet is retried with backoff, and does not delay the others.
- Type and data are copied, but not the annotations. So a copy is not copied again.

Shows: `set_tracked_owner`, `enqueue_request_for_tracked_owner`, `delete_tracked_dependents`, a finalizer, one kind that is watched twice.
"""

from __future__ import annotations

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.controllerutil import delete_tracked_dependents, set_tracked_owner, tracking_labels
from examples.cookbook import running

COPY_TO = "cookbook.example.com/copy-to"
FINALIZER = "cookbook.example.com/secret-copies"


def targets(source: core.Secret) -> list[str]:
    """Return the namespaces that must have a copy."""
    if source.metadata.deletion_timestamp is not None:
        return []
    names = {name.strip() for name in source.metadata.annotations.get(COPY_TO, "").split(",")}
    return sorted(names - {"", source.metadata.namespace})


def is_source(event: ctrl.event.Event[core.Secret]) -> bool:
    return COPY_TO in event.annotations or FINALIZER in (event.meta.finalizers or ())


@ctrl.rbac(groups="", resources="secrets", verbs="create;update;delete")
class SecretCopier:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        source = await self.client.get_or_none(core.Secret, request)
        if source is None:
            return
        namespaces = targets(source)
        if not namespaces:
            await self.release(source)
            return
        if ctrl.add_finalizer(source, FINALIZER):
            await self.client.update(source)
        failures: list[ctrl.errors.CtrlError] = []
        for namespace in namespaces:
            try:
                await self.copy(source, namespace)
            except ctrl.errors.CtrlError as error:
                failures.append(error)
        await self.prune(source, namespaces)
        if failures:
            raise ExceptionGroup(f"{len(failures)} of {len(namespaces)} copies failed", failures)

    async def copy(self, source: core.Secret, namespace: str) -> None:
        key = ctrl.NamespacedName(namespace, source.metadata.name)

        def mutate(copy: core.Secret) -> None:
            exists = bool(copy.metadata.uid)
            if exists and not tracking_labels(source).items() <= copy.metadata.labels.items():
                raise ctrl.errors.AlreadyOwnedError(f"Secret {key} exists, and is not a copy of this Secret")
            set_tracked_owner(source, copy)
            copy.type = source.type
            copy.data = source.data

        await ctrl.create_or_update(self.client, core.Secret, key, mutate)

    async def prune(self, source: core.Secret, namespaces: list[str]) -> None:
        """Delete the copies in other namespaces."""
        for copy in await self.client.list(core.Secret, labels=tracking_labels(source)):
            if copy.metadata.namespace not in namespaces and copy.metadata.deletion_timestamp is None:
                await self.client.delete(copy, uid=copy.metadata.uid)

    async def release(self, source: core.Secret) -> None:
        """Delete all copies, and then remove the finalizer."""
        if not ctrl.contains_finalizer(source, FINALIZER):
            return
        if await delete_tracked_dependents(self.client, source, core.Secret) == 0:
            ctrl.remove_finalizer(source, FINALIZER)
            await self.client.update(source)


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(core.Secret, predicates=[is_source])
    builder.named("secret-copier").watches(core.Secret, ctrl.handler.enqueue_request_for_tracked_owner(core.Secret))
    builder.complete(SecretCopier(mgr.client))


SAMPLE = """
{apiVersion: v1, kind: Namespace, metadata: {name: blog}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: default, annotations: {cookbook.example.com/copy-to: "blog,shop"}}
stringData: {password: correct-horse}
"""


def main() -> None:
    running.run(setup, sample=SAMPLE, shows="secrets --all-namespaces")


if __name__ == "__main__":
    main()
