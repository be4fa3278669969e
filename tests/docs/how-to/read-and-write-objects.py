"""Runs after the blocks of docs/how-to/read-and-write-objects.md, in their namespace."""

import asyncio

from ctrlruntime.testing import Environment


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    async with ctrl.running(mgr):
        written = await write(mgr.client, "default")
        await patch(mgr.client, written)
        assert written.data == {"color": "green"}
        await read(mgr.client, written.metadata)
        labels = {"app": "web"}
        template = core.PodTemplateSpec(
            metadata=meta.ObjectMeta(labels=labels), spec=core.PodSpec(containers=[core.Container(name="c", image="i")])
        )
        spec = apps.DeploymentSpec(selector=meta.LabelSelector(match_labels=labels), template=template)
        deployment = apps.Deployment(metadata=meta.ObjectMeta(name="web", namespace="default"), spec=spec)
        await scale_and_delete(mgr.client, await mgr.client.create(deployment))
        narrow(mgr.client)
        owner = core.ConfigMap(metadata=meta.ObjectMeta(name="issuer", namespace="default"))
        await mgr.client.create(owner)
        far = ctrl.NamespacedName("kube-public", "issued")
        await issue(mgr.client, owner, far)
        assert await mgr.client.get_or_none(core.Secret, far) is not None
        await mgr.client.delete(owner)
        while (found := await mgr.client.get_or_none(core.ConfigMap, ctrl.object_key(owner))) is not None:
            await issue(mgr.client, found, far)
        assert await mgr.client.get_or_none(core.Secret, far) is None


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
