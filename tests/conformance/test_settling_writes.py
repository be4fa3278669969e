"""A reconciler that writes an object whole, without the server's defaults, settles; on both servers."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import apps, batch, core, meta
from ctrlruntime.client import dry_run
from ctrlruntime.errors import Conflict

BOTH = pytest.mark.parametrize("write", [ctrl.create_or_update, ctrl.create_or_patch])


def template():
    """Return an image and a limit, and nothing the server would fill in."""
    containers = [core.Container(name="web", image="nginx", resources=core.ResourceRequirements(limits={"cpu": "0.5"}))]
    spec = core.PodSpec(containers=containers)
    return core.PodTemplateSpec(metadata=meta.ObjectMeta(labels={"app": "web"}), spec=spec)


def cron_job(found, schedule="0 0 * * *"):
    pod = template()
    pod.spec.restart_policy = "Never"
    job = batch.JobTemplateSpec(spec=batch.JobSpec(template=pod))
    found.spec = batch.CronJobSpec(schedule=schedule, suspend=True, job_template=job)


def deployment(found):
    found.spec = apps.DeploymentSpec(
        replicas=2, selector=meta.LabelSelector(match_labels={"app": "web"}), template=template()
    )


@pytest.fixture
def mgr(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")


@BOTH
async def test_what_changed_nothing_once_is_not_sent_again_and_drift_is_mended_all_the_same(mgr, namespace, write):
    key = ctrl.NamespacedName(namespace, "web")

    async def reconcile(mutate):
        found, result = await write(mgr.client, batch.CronJob, key, mutate)
        return found, str(result)

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        outcomes = [await reconcile(cron_job) for _ in range(10)]
        assert [result for _, result in outcomes] == ["created", *["unchanged"] * 9]
        # Each is as the server has it, not as it was asked for.
        assert {found.spec.concurrency_policy for found, _ in outcomes} == {"Allow"}

        assert (await reconcile(lambda found: cron_job(found, "1 1 * * *")))[1] == "updated"
        assert (await mgr.client.get(batch.CronJob, key)).spec.schedule == "1 1 * * *"
        found, result = await reconcile(cron_job)
        assert (result, found.spec.schedule) == ("updated", "0 0 * * *")
        await reconcile(cron_job)
        other = (await mgr.client.get(batch.CronJob, key)).deep_copy()
        other.metadata.labels["somebody"] = "else"
        await mgr.client.update(other)
        assert [(await reconcile(cron_job))[1] for _ in range(3)] == ["unchanged"] * 3


@BOTH
async def test_a_deployment_with_only_image_and_replicas_settles_beside_its_controller(mgr, namespace, write):
    key = ctrl.NamespacedName(namespace, "web")
    writes = []

    def note(call):
        if call.resource == "deployments" and call.verb in {"create", "update", "patch"}:
            writes.append(call.verb)

    mgr.cluster.observers.add_observer(note)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        in_a_row = 0
        while in_a_row < 10:  # each change of its controller may cost one more write, which changes nothing
            try:
                _, result = await write(mgr.client, apps.Deployment, key, deployment)
            except Conflict:
                continue
            in_a_row = in_a_row + 1 if str(result) == "unchanged" else 0
            await asyncio.sleep(0.05)

    assert len(writes) <= 5


@BOTH
async def test_an_update_that_changed_nothing_on_the_server_is_unchanged(mgr, namespace, write):
    key = ctrl.NamespacedName(namespace, "web")

    def ports(*numbers):
        def mutate(service):
            service.spec.ports = [core.ServicePort(name=f"p{number}", port=number) for number in numbers]

        return mutate

    sent = []
    mgr.cluster.observers.add_observer(lambda call: sent.append(call.verb) if call.resource == "services" else None)
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        results = [(await write(mgr.client, core.Service, key, ports(80)))[1] for _ in range(3)]
        assert results == ["created", "unchanged", "unchanged"]
        assert [verb for verb in sent if verb in {"create", "update", "patch"}] == [
            "create",
            "update" if write is ctrl.create_or_update else "patch",
        ]
        assert (await write(mgr.client, core.Service, key, ports(80, 81)))[1] == "updated"
        # A dry run stores nothing, and still says what it would do.
        assert (await write(dry_run(mgr.client), core.Service, key, ports(82)))[1] == "updated"
        assert (await write(mgr.client, core.Service, key, ports(80, 81)))[1] == "unchanged"
