"""Runs after the blocks of docs/how-to/leader-election.md, in their namespace."""

import asyncio

from ctrlruntime.api import coordination, core, meta
from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    cluster = ctrl.Cluster(config)
    client = cluster.unfenced_client()
    await client.create(core.Namespace(metadata=meta.ObjectMeta(name="shop")))
    flags = ctrl.parse_flags(["--leader-elect"])
    mgr = build(config, flags)
    add(mgr)
    async with ctrl.running(mgr):
        await asyncio.wait_for(mgr.elected.wait(), 10)
        lease = await client.get(coordination.Lease, ctrl.NamespacedName("shop", "website.shop.example.com"))
        assert lease.spec.holder_identity
    patient(config)
    await leader.become(config, "website-operator-lock")
    pod = core.Pod(metadata=meta.ObjectMeta(name="website-0", namespace="shop"))
    pod.spec = core.PodSpec(containers=[core.Container(name="website", image="example.com/website:1")])
    await client.create(pod)
    await asyncio.wait_for(lead(client, "website-0"), 10)
    lock = await client.get(core.ConfigMap, ctrl.NamespacedName("shop", "website-operator-lock"))
    assert [owner.name for owner in lock.metadata.owner_references] == ["website-0"]
    await cluster.close()


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
