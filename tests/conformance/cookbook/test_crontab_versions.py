from __future__ import annotations

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.testing import eventually
from ctrlruntime.testing.properties import check_round_trips
from examples.cookbook import crontab_versions
from examples.cookbook.crontab_versions import (
    CONVERSION,
    TIME_ZONE,
    CronTab,
    CronTabSpec,
    CronTabV2,
    CronTabV2Spec,
    Schedule,
)


async def test_crontab_versions(operator, client, namespace):
    check_round_trips(CONVERSION, examples=20)

    hourly = CronTab(
        metadata=meta.ObjectMeta(name="hourly", namespace=namespace),
        spec=CronTabSpec(cron_spec="0 * * * *", image="reports:1"),
    )
    nightly = CronTabV2(
        metadata=meta.ObjectMeta(name="nightly", namespace=namespace, annotations={"team": "penguins"}),
        spec=CronTabV2Spec(schedule=Schedule(minute="30", hour="2", time_zone="Europe/Berlin"), image="backup:1"),
    )

    async with operator(crontab_versions, webhooks=True):
        await client.create(hourly)
        hourly_v2 = await eventually(lambda: client.get(CronTabV2, hourly.metadata), timeout=LONGEST_WAIT)
        assert hourly_v2.spec == CronTabV2Spec(schedule=Schedule(minute="0"), image="reports:1")

        await client.create(nightly)
        nightly_v1 = await client.get(CronTab, nightly.metadata)
        assert nightly_v1.spec == CronTabSpec(cron_spec="30 2 * * *", image="backup:1")
        assert nightly_v1.metadata.annotations == {"team": "penguins", TIME_ZONE: "Europe/Berlin"}

        nightly_v1.spec.cron_spec = "0 3 * * 1-5"
        await client.update(nightly_v1)
        updated = await client.get(CronTabV2, nightly.metadata)
        weekdays = Schedule(minute="0", hour="3", day_of_week="1-5", time_zone="Europe/Berlin")
        assert updated.spec == CronTabV2Spec(schedule=weekdays, image="backup:1")
        assert updated.metadata.annotations == {"team": "penguins"}

        with pytest.raises(ctrl.Invalid, match=r"spec\.cronSpec"):
            await client.patch(hourly, ctrl.merge_patch({"spec": {"cronSpec": "@hourly"}}))
        with pytest.raises(ctrl.Invalid, match=r"spec\.schedule\.hour"):
            await client.patch(nightly, ctrl.merge_patch({"spec": {"schedule": {"hour": "two o'clock"}}}))
