"""The readiness probe fails for a kind that cannot be read, after a grace, and recovers with it; on both servers."""

from __future__ import annotations

import asyncio
import re

import aiohttp
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta, rbac
from ctrlruntime.testing import eventually


async def test_a_kind_that_may_not_be_watched_makes_the_probe_fail_until_it_may(server, namespace, tmp_path):
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(await asyncio.to_thread(server.add_user, "silent"))
    watch = ctrl.cache.WatchOptions(timeout=(1.0, 1.0), timeout_grace=0.5, missing_kind_retry_interval=0.5)
    mgr = ctrl.new_manager(
        ctrl.get_config(str(kubeconfig)),
        cache=ctrl.CacheOptions(namespaces=[namespace], watch=watch, stale_after=3.0),
        metrics_bind_address="0",
        health_probe_bind_address="127.0.0.1:0",
    )
    started = asyncio.Event()

    async def reconcile(request):
        started.set()

    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconcile)
    admin = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT), aiohttp.ClientSession() as session:

        async def readyz():
            async with session.get(f"http://127.0.0.1:{mgr.health_probe_address.port}/readyz?verbose") as answer:
                return answer.status, await answer.text()

        assert (await readyz())[0] == 200  # the grace

        async def is_unready():
            return (await readyz())[0] == 500

        await eventually(is_unready, timeout=LONGEST_WAIT)
        assert re.search(r"\[-\]caches failed: .*ConfigMap: no activity for \d+ s \(.*forbidden", (await readyz())[1])

        role = rbac.Role(metadata=meta.ObjectMeta(name="silent", namespace=namespace))
        role.rules = [rbac.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get", "list", "watch"])]
        subject = rbac.Subject(kind="User", api_group="rbac.authorization.k8s.io", name="silent")
        reference = rbac.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="silent")
        binding = rbac.RoleBinding(metadata=role.metadata.deep_copy(), role_ref=reference, subjects=[subject])
        api = admin.unfenced_client()
        await api.create(role)
        await api.create(binding)
        await api.create(core.ConfigMap(metadata=meta.ObjectMeta(name="one", namespace=namespace)))

        async def is_ready():
            return (await readyz())[0] == 200

        await eventually(is_ready, timeout=LONGEST_WAIT)
        await asyncio.wait_for(started.wait(), LONGEST_WAIT)
        for _ in range(30):  # over several watches, each of which ends and is begun anew
            assert await is_ready()
            await asyncio.sleep(0.1)
    await admin.close()
