"""Children in other namespaces, and cluster-scoped ones: tracked by their owner and removed before it goes, on both servers."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta, rbac
from ctrlruntime.errors import NotFound
from ctrlruntime.testing import eventually

FINALIZER = "tracked-tests.example.com/children"


@pytest.fixture
def far(new_namespace):
    return new_namespace()


class Owner:
    """Each ConfigMap with the label has a Secret in another namespace and a ClusterRole."""

    def __init__(self, client, far):
        self.client = client
        self.far = far

    async def reconcile(self, request):
        owner = await self.client.get_or_none(core.ConfigMap, request)
        if owner is None or "tracked-tests.example.com/owner" not in owner.metadata.labels:
            return
        if owner.metadata.deletion_timestamp is not None:
            remaining = await ctrl.controllerutil.delete_tracked_dependents(
                self.client, owner, core.Secret, rbac.ClusterRole
            )
            if not remaining and ctrl.remove_finalizer(owner, FINALIZER):
                await self.client.update(owner)
            return
        if ctrl.add_finalizer(owner, FINALIZER):
            await self.client.update(owner)
        for kind, name in ((core.Secret, ctrl.NamespacedName(self.far, owner.metadata.name)),
                           (rbac.ClusterRole, ctrl.NamespacedName("", f"{self.far}-{owner.metadata.name}"))):  # fmt: skip
            await ctrl.create_or_update(
                self.client, kind, name, lambda child: ctrl.controllerutil.set_tracked_owner(owner, child)
            )


async def test_tracked_children_are_made_again_and_go_with_their_owner(server, namespace, far):
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace, far]), metrics_bind_address="0")
    handler = ctrl.handler.enqueue_request_for_tracked_owner(core.ConfigMap)
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("tracked")
    builder.watches(core.Secret, handler).watches(rbac.ClusterRole, handler).complete(Owner(mgr.client, far))
    owner = core.ConfigMap(
        metadata=meta.ObjectMeta(name="owner", namespace=namespace, labels={"tracked-tests.example.com/owner": "yes"})
    )
    secret, role = ctrl.NamespacedName(far, "owner"), ctrl.NamespacedName("", f"{far}-owner")
    api = mgr.cluster.unfenced_client()

    async def are_there():
        return (
            await api.get_or_none(core.Secret, secret) is not None
            and await api.get_or_none(rbac.ClusterRole, role) is not None
        )

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await api.create(owner)
        await eventually(are_there, timeout=LONGEST_WAIT)
        first = await api.get(core.Secret, secret)
        with pytest.raises(ValueError, match="set_tracked_owner"):
            ctrl.set_controller_reference(owner, first)

        await api.delete(first)

        async def is_made_again():
            found = await api.get_or_none(core.Secret, secret)
            return found is not None and found.metadata.uid != first.metadata.uid

        await eventually(is_made_again, timeout=LONGEST_WAIT)
        other = core.Secret(metadata=meta.ObjectMeta(name="not-mine", namespace=far))
        await api.create(other)
        await api.delete(owner)

        async def is_gone():
            return await api.get_or_none(core.ConfigMap, ctrl.object_key(owner)) is None

        await eventually(is_gone, timeout=LONGEST_WAIT)
        for kind, key in ((core.Secret, secret), (rbac.ClusterRole, role)):
            with pytest.raises(NotFound):
                await api.get(kind, key)
        assert await api.get_or_none(core.Secret, ctrl.object_key(other)) is not None
