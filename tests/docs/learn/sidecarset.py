"""Runs after the blocks of docs/learn/sidecarset.md, in their namespace."""

import asyncio
import pathlib
import re
import textwrap

from ctrlruntime.testing import Environment, eventually
from examples.sidecarset import api, controller

page = pathlib.Path("docs/learn/sidecarset.md").read_text()
files = "\n".join(file.read_text() for file in pathlib.Path("examples/sidecarset").glob("*.py"))
for block in re.findall(r"```python\n(.*?)```", page.partition("\n## Manifests")[0], re.DOTALL):
    assert block in files or textwrap.indent(block, "    ", str.strip) in files, block


async def run_the_tutorial(environment: Environment) -> None:
    mgr = ctrl.new_manager(
        ctrl.get_config(str(environment.kubeconfig_path)),
        scheme=ctrl.Scheme(api.SidecarSet),
        metrics_bind_address="0",
        webhook=ctrl.webhook.WebhookOptions(port=0, development=ctrl.webhook.DevelopmentMode()),
    )
    controller.setup(mgr, requeue_after=0.1)
    sample = pathlib.Path("examples/sidecarset/config/samples/apps_v1alpha1_sidecarset.yaml").read_text()
    async with ctrl.running(mgr):
        sidecar_set = await mgr.client.create(api.SidecarSet.from_yaml(sample))
        pod = core.Pod(
            metadata=meta.ObjectMeta(name="web", namespace="default", labels={"app": "web"}),
            spec=core.PodSpec(containers=[core.Container(name="web", image="nginx")]),
        )
        await mgr.client.create(pod)
        assert [container.name for container in pod.spec.containers] == ["web", "logs"]

        async def is_counted() -> bool:
            status = (await mgr.client.get(api.SidecarSet, ctrl.object_key(sidecar_set))).status
            return status is not None and status.updated_pods == 1

        assert await eventually(is_counted)


with Environment(backend="embedded", crds="examples/sidecarset/config/crd/bases") as environment:
    asyncio.run(run_the_tutorial(environment))
