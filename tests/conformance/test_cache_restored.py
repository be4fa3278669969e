"""A CRD or a permission is taken away under a running manager and given back: that kind waits and comes again by itself, others go on."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from loose_definitions import loose_definition
from pydantic import Field
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta, rbac
from ctrlruntime.errors import CtrlError, Forbidden
from ctrlruntime.testing import eventually

GROUP = "restored-tests.example.com"
WATCH = ctrl.cache.WatchOptions(timeout=(1.0, 2.0), timeout_grace=1.0, missing_kind_retry_interval=0.5)


class LeverSpec(ctrl.Model):
    angle: int = 0


class Lever(ctrl.Object, group=GROUP, version="v1"):
    spec: LeverSpec = Field(default_factory=LeverSpec)


LEVERS = loose_definition(Lever)


class Seen:
    """Reads what it is asked about, and notes what it found."""

    def __init__(self, client, kind):
        self.client = client
        self.kind = kind
        self.found = {}

    async def reconcile(self, request):
        found = await self.client.get_or_none(self.kind, request)
        self.found[request.name] = None if found is None else found.metadata.uid


@contextlib.asynccontextmanager
async def working(config, namespace, *kinds):
    """Run a manager with a controller for each kind; yields it and what the controllers saw."""
    cache = ctrl.CacheOptions(namespaces=[namespace], watch=WATCH)
    mgr = ctrl.new_manager(config, scheme=ctrl.Scheme(Lever), cache=cache, metrics_bind_address="0")
    seen = {kind: Seen(mgr.client, kind) for kind in kinds}
    for kind in kinds:
        ctrl.new_controller_managed_by(mgr).for_(kind).complete(seen[kind])
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        yield mgr, seen


async def test_a_crd_is_removed_and_restored_while_the_manager_runs(server, namespace):
    await asyncio.to_thread(server.install_crds, [LEVERS])
    try:
        config = ctrl.get_config(str(server.kubeconfig_path))
        async with working(config, namespace, Lever, core.ConfigMap) as (mgr, seen):

            async def create(kind, name):
                obj = kind(metadata=meta.ObjectMeta(name=name, namespace=namespace))

                async def is_created():
                    try:
                        await mgr.client.create(obj)
                    except CtrlError:  # the API server takes a moment to serve a new kind everywhere
                        return False
                    return True

                await eventually(is_created, timeout=LONGEST_WAIT)
                await eventually(lambda: seen[kind].found.get(name), timeout=LONGEST_WAIT)

            await create(Lever, "one")

            await asyncio.to_thread(server.uninstall_crds, [f"levers.{GROUP}"])
            await create(core.ConfigMap, "meanwhile")
            await eventually(lambda: any("Lever" in kind for kind in failing(mgr)), timeout=LONGEST_WAIT)

            await asyncio.to_thread(server.install_crds, [LEVERS])
            await create(Lever, "two")
            # kube-apiserver ends the watches of a removed CRD after one second, whether or not it has sent the deletions.
            await eventually(lambda: seen[Lever].found["one"] is None, timeout=LONGEST_WAIT)
            assert {item.name for item in (await mgr.client.list(Lever)).metadata} == {"two"}
            await create(core.ConfigMap, "later")
            assert failing(mgr) == {}
    finally:
        with contextlib.suppress(Exception):
            await asyncio.to_thread(server.uninstall_crds, [f"levers.{GROUP}"])


def failing(mgr):
    """Return the kinds that cannot be read at the moment, with why."""
    return {
        str(gvk): informer.last_error
        for gvk, informer in mgr.cache.informers().items()
        if informer.last_error is not None
    }


async def test_a_permission_is_removed_and_restored_while_the_manager_runs(server, namespace, tmp_path):
    admin = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    api = admin.unfenced_client()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(await asyncio.to_thread(server.add_user, f"restored-{namespace}"))
    subject = rbac.Subject(kind="User", api_group="rbac.authorization.k8s.io", name=f"restored-{namespace}")
    for resource in ("configmaps", "secrets"):
        metadata = meta.ObjectMeta(name=resource, namespace=namespace)
        rule = rbac.PolicyRule(api_groups=[""], resources=[resource], verbs=["get", "list", "watch"])
        await api.create(rbac.Role(metadata=metadata, rules=[rule]))

    async def bind(resource):
        reference = rbac.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=resource)
        metadata = meta.ObjectMeta(name=resource, namespace=namespace)
        await api.create(rbac.RoleBinding(metadata=metadata, role_ref=reference, subjects=[subject]))

    async def create(kind, name):
        await api.create(kind(metadata=meta.ObjectMeta(name=name, namespace=namespace)))

    for resource in ("configmaps", "secrets"):
        await bind(resource)
    try:
        async with working(ctrl.get_config(str(kubeconfig)), namespace, core.ConfigMap, core.Secret) as (mgr, seen):
            await create(core.Secret, "one")
            await eventually(lambda: seen[core.Secret].found.get("one"), timeout=LONGEST_WAIT)

            await api.delete(rbac.RoleBinding(metadata=meta.ObjectMeta(name="secrets", namespace=namespace)))
            await eventually(lambda: any("Secret" in kind for kind in failing(mgr)), timeout=LONGEST_WAIT)
            assert all(isinstance(error, Forbidden) for error in failing(mgr).values())
            await create(core.Secret, "two")
            await create(core.ConfigMap, "meanwhile")
            await eventually(lambda: seen[core.ConfigMap].found.get("meanwhile"), timeout=LONGEST_WAIT)
            assert "two" not in seen[core.Secret].found
            informer = next(found for gvk, found in mgr.cache.informers().items() if gvk.kind == "Secret")
            (reflector,) = informer._reflectors.values()
            lists = reflector.relists

            await bind("secrets")
            await eventually(lambda: seen[core.Secret].found.get("two"), timeout=LONGEST_WAIT)
            assert failing(mgr) == {}
            assert reflector.relists == lists  # the watch was resumed where it was
    finally:
        await admin.close()


@pytest.mark.parametrize("late", [True, False], ids=["late", "there"])
async def test_a_kind_that_comes_late_is_started_without_a_restart(server, namespace, late):
    if not late:
        await asyncio.to_thread(server.install_crds, [LEVERS])
    try:
        config = ctrl.get_config(str(server.kubeconfig_path))
        async with working(config, namespace, Lever, core.ConfigMap) as (mgr, seen):
            await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="first", namespace=namespace)))
            await eventually(lambda: seen[core.ConfigMap].found.get("first"), timeout=LONGEST_WAIT)
            if late:
                assert "Lever" in str(failing(mgr))
                await asyncio.to_thread(server.install_crds, [LEVERS])

            async def is_created():
                with contextlib.suppress(CtrlError):
                    return await mgr.client.create(Lever(metadata=meta.ObjectMeta(name="one", namespace=namespace)))

            await eventually(is_created, timeout=LONGEST_WAIT)
            await eventually(lambda: seen[Lever].found.get("one"), timeout=LONGEST_WAIT)
    finally:
        await asyncio.to_thread(server.uninstall_crds, [f"levers.{GROUP}"])
