from __future__ import annotations

from datetime import timedelta

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import batch, core, meta
from ctrlruntime.testing import eventually, second_pass
from examples.cookbook import scheduled_backup
from examples.cookbook.scheduled_backup import BACKUP, ScheduledBackup, ScheduledBackupSpec, is_finished

HOUR = timedelta(hours=1)


async def test_scheduled_backup(operator, find, gone, client, namespace, clock):
    def backup(name: str, interval: timedelta) -> ScheduledBackup:
        return ScheduledBackup(
            metadata=meta.ObjectMeta(name=name, namespace=namespace),
            spec=ScheduledBackupSpec(image="example.com/backup:1", interval=ctrl.Duration.of(interval), keep=2),
        )

    orders = backup("orders", HOUR)

    def job_at(time: ctrl.Time) -> ctrl.NamespacedName:
        return ctrl.NamespacedName(namespace, f"orders-{int(time.timestamp())}")

    async def touch() -> None:
        await client.patch(orders, ctrl.merge_patch({"metadata": {"labels": {"ahead": str(clock.ahead.seconds)}}}))

    async def next_backup() -> ctrl.Time:
        """Return the time of a new backup, when its Job has finished."""
        clock.ahead += HOUR
        await touch()
        due = orders.metadata.creation_timestamp + clock.ahead
        await find(ScheduledBackup, orders.metadata, lambda found: found.status.last_time == due)
        await find(batch.Job, job_at(due), is_finished)
        return due

    async with operator(scheduled_backup, setup=lambda mgr: scheduled_backup.setup(mgr, clock)) as mgr:
        with pytest.raises(ctrl.Invalid, match="at least 1m"):
            await client.create(backup("often", timedelta(seconds=10)))
        with pytest.raises(ctrl.Invalid, match="at most 63 characters"):
            await client.create(backup("orders-and-customers-and-invoices-and-shipments-of-today", HOUR))

        # The first backup starts at once, and later ones replace the oldest Job.
        await client.create(orders)
        first = orders.metadata.creation_timestamp
        job = await find(batch.Job, job_at(first), is_finished)
        assert ctrl.controllerutil.has_owner(orders, job)
        found = await find(ScheduledBackup, orders.metadata, lambda found: found.status.last_time == first)
        assert found.status.next_time == first + HOUR
        second = await next_backup()
        third = await next_backup()
        await gone(batch.Job, job_at(first))

        # A running Job delays the backup that is due. The Job is suspended, so that it runs until the test ends it.
        busy = batch.Job(
            metadata=meta.ObjectMeta(name="orders-0-by-hand", namespace=namespace, labels={BACKUP: "orders"}),
            spec=batch.JobSpec(
                suspend=True,
                template=core.PodTemplateSpec(
                    spec=core.PodSpec(containers=[core.Container(name="c", image="i")], restart_policy="Never")
                ),
            ),
        )
        ctrl.set_controller_reference(orders, busy)
        await client.create(busy)
        await eventually(lambda: mgr.cache.get(batch.Job, busy.metadata), timeout=LONGEST_WAIT)
        clock.ahead += 3 * HOUR
        await touch()
        late = first + clock.ahead
        found = await find(ScheduledBackup, orders.metadata, lambda found: found.status.next_time == late + HOUR)
        assert found.status.last_time == third
        await client.patch(busy, ctrl.merge_patch({"spec": {"suspend": False}}))
        await find(batch.Job, job_at(late), is_finished)

        # The status is lost, as if the operator had stopped before it wrote the status.
        await client.status.patch(orders, ctrl.merge_patch({"status": {"lastTime": None}}))
        await find(ScheduledBackup, orders.metadata, lambda found: found.status.last_time == late)

        # Two backups were missed, and only the last of them is made.
        await gone(batch.Job, busy.metadata)
        await gone(batch.Job, job_at(second))
        jobs = await client.list(batch.Job, namespace=namespace)
        assert {job.name for job in jobs.metadata} == {job_at(third).name, job_at(late).name}

        assert await second_pass(mgr) == []
