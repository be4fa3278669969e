"""Runs after the blocks of docs/reference/examples/controllers.md, in their namespace."""

from ctrlruntime.api import meta
from ctrlruntime.testing import Environment, eventually


class Slow:
    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def reconcile(self, request: ctrl.Request) -> None:
        await self.release.wait()


async def run_the_examples(config: ctrl.Config) -> None:
    mgr = ctrl.new_manager(config, metrics_bind_address="0", cache=ctrl.CacheOptions(namespaces=["default"]))
    heartbeat, publisher = Heartbeat(), Publisher()
    add_all(mgr, [heartbeat])
    published = add_controller(mgr, core.ConfigMap, publisher, max_concurrent_reconciles=2)
    assert published.options.reconciliation_timeout == 60
    assert published.options.max_concurrent_reconciles == 2
    add_logged(mgr, site_fields)
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).named("slow")
    reconciler = Slow()
    slow = builder.build(reconciler)
    recorder = mgr.event_recorder("website")
    async with ctrl.running(mgr):
        website = core.ConfigMap(metadata=meta.ObjectMeta(name="home", namespace="default"))
        await mgr.client.create(website)
        await eventually(lambda: publisher.sent)
        assert publisher.sent[0]["X-Request-ID"] not in {"", "none"}
        found = await eventually(lambda: slowest(slow))
        assert found.request.namespace == "default"
        assert "in reconcile" in line_of(found), line_of(found)
        assert heartbeat.beats >= 1

        assert not check_color(recorder, website)
        website.data["color"] = "red"
        assert check_color(recorder, website)

        async def is_recorded() -> bool:
            events = await mgr.api_reader.list(core.Event, namespace="default")
            return any(event.reason == "ColorMissing" for event in events)

        assert await eventually(is_recorded)
        reconciler.release.set()


with Environment(backend="embedded") as environment:
    asyncio.run(run_the_examples(ctrl.get_config(str(environment.kubeconfig_path))))
