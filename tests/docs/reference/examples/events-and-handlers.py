"""Runs after the blocks of docs/reference/examples/events-and-handlers.md, in their namespace."""

from ctrlruntime.testing import Environment, eventually


class Seen:
    def __init__(self) -> None:
        self.requests: list[ctrl.Request] = []

    async def reconcile(self, request: ctrl.Request) -> None:
        self.requests.append(request)


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0")
    backups, volumes, orders = Seen(), Seen(), Seen()
    mails: asyncio.Queue[str] = asyncio.Queue()
    add_backups(mgr, backups)
    add_volumes(mgr, ctrl.Cluster(config, name="eu"), volumes)
    builder = ctrl.new_controller_managed_by(mgr).named("orders")
    builder.watches_raw_source(Orders(mails)).complete(orders)
    async with ctrl.running(mgr):
        container = core.Container(name="backup", image="example.com/backup:1")
        pod = core.PodTemplateSpec(spec=core.PodSpec(containers=[container], restart_policy="Never"))
        spec = batch.CronJobSpec(
            schedule="0 1 * * *", job_template=batch.JobTemplateSpec(spec=batch.JobSpec(template=pod))
        )
        await mgr.client.create(batch.CronJob(metadata=meta.ObjectMeta(name="nightly", namespace="default"), spec=spec))
        nightly = ctrl.Request("default", "nightly")
        await eventually(lambda: backups.requests == [nightly])
        await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="plan", namespace="default")))
        await eventually(lambda: len(backups.requests) >= 2)
        assert set(backups.requests) == {nightly}

        claim = core.PersistentVolumeClaim(
            metadata=meta.ObjectMeta(name="data", namespace="default"),
            spec=core.PersistentVolumeClaimSpec(
                access_modes=["ReadWriteOnce"],
                resources=core.VolumeResourceRequirements(requests={"storage": ctrl.Quantity("1Gi")}),
            ),
        )
        await mgr.client.create(claim)
        wanted = {ctrl.Request("default", "data", cluster) for cluster in ("", "eu")}
        await eventually(lambda: set(volumes.requests) == wanted)

        mails.put_nowait("weekly")
        await eventually(lambda: orders.requests == [ctrl.Request("shop", "weekly")])


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
