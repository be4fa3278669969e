"""Runs after the blocks of docs/reference/examples/queues.md, in their namespace."""

import asyncio

from ctrlruntime.api import core, meta
from ctrlruntime.testing import Environment, eventually


class FailsOnce:
    def __init__(self) -> None:
        self.runs = 0

    async def reconcile(self, request: ctrl.Request) -> None:
        self.runs += 1
        if self.runs == 1:
            raise ctrl.errors.ServiceUnavailable("the registry is down")


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    reconciler = FailsOnce()
    setup(mgr, reconciler)
    async with ctrl.running(mgr):
        container = core.Container(name="web", image="nginx")
        template = core.PodTemplateSpec(
            metadata=meta.ObjectMeta(labels={"app": "web"}), spec=core.PodSpec(containers=[container])
        )
        spec = apps.DeploymentSpec(selector=meta.LabelSelector(match_labels={"app": "web"}), template=template)
        await mgr.client.create(apps.Deployment(metadata=meta.ObjectMeta(name="web", namespace="default"), spec=spec))
        await eventually(lambda: mgr.metrics.controller("deployment").errors == 1)
        assert mgr.metrics.workqueue("deployment").limiter_failures == 0


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
