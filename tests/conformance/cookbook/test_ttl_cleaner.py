from __future__ import annotations

from datetime import timedelta

from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, events, meta
from ctrlruntime.testing import eventually, second_pass
from examples.cookbook import ttl_cleaner
from examples.cookbook.ttl_cleaner import TTL, TTLReconciler


async def test_ttl_cleaner(operator, find, gone, client, namespace, clock):
    def config(name: str, ttl: str | None) -> core.ConfigMap:
        annotations = {} if ttl is None else {TTL: ttl}
        return core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace, annotations=annotations))

    async def set_ttl(found: core.ConfigMap, ttl: str) -> None:
        await client.patch(found, ctrl.merge_patch({"metadata": {"annotations": {TTL: ttl}}}))

    async with operator(ttl_cleaner, setup=lambda mgr: ttl_cleaner.setup(mgr, clock)) as mgr:
        preview, release, settings = config("preview", "30m"), config("release", "720h"), config("settings", None)
        typo, never = config("typo", "soon"), config("never", "-1h")
        for each in (preview, release, settings, typo, never):
            await client.create(each)

        async def reported() -> list[str]:
            found = await client.list(events.Event, namespace=namespace)
            notes = [f"{event.regarding.kind} {event.regarding.name}: {event.note}" for event in found]
            return sorted(notes) if len(notes) == 2 else []

        first, second = await eventually(reported, timeout=LONGEST_WAIT)
        assert first == f"ConfigMap never: {TTL}: -1h is not above zero"
        assert second.startswith(f"ConfigMap typo: {TTL}: 'soon' is not a duration")

        # The reconciler waits until the time has come.
        reconciler = TTLReconciler(mgr, clock)
        wait = await eventually(lambda: reconciler.reconcile(ctrl.Request(namespace, "preview")), timeout=LONGEST_WAIT)
        assert timedelta(minutes=25) < timedelta(seconds=wait.requeue_after) <= timedelta(minutes=30)

        clock.ahead = timedelta(minutes=31)
        await set_ttl(preview, "1800s")
        await gone(core.ConfigMap, preview.metadata)

        # A deleted ConfigMap may come back, and its TTL counts again. A corrected annotation counts, too.
        clock.ahead = timedelta()
        await client.create(config("preview", "30m"))
        await set_ttl(typo, "1s")
        await gone(core.ConfigMap, typo.metadata)
        for each in (preview, release, settings, never):
            await find(core.ConfigMap, each.metadata)

        assert await second_pass(mgr) == []
