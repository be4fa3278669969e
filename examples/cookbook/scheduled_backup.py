"""Scheduled backup: the operator starts a Job for each backup that is due, and deletes old Jobs.

The first backup starts at the creation of the object, and the others follow at the interval. The status has the last and the next time.

- The times come from `creationTimestamp` and the interval, not from a timer. A restart of the operator does not shift or repeat a backup.
- The scheduled time is in the name of the Job. If the operator stops before it writes the status, a second create is an `AlreadyExists`.
- After a long stop only the last backup that was missed is made. The others would save the same data.
- Two backups never run at the same time. With `owns`, the end of the first Job reconciles the object, and the one that is due starts.

Shows: `requeue_after`, `owns` without `create_or_update`, `has_owner`, a clock as argument, CEL rules.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import batch, core, meta
from examples.cookbook import running

BACKUP = "cookbook.example.com/backup"
INTERVAL = "self.matches('^([0-9]+[hms])+$') && duration(self) >= duration('1m')"


class ScheduledBackupSpec(ctrl.Model):
    image: str = Field(min_length=1)
    interval: Annotated[ctrl.Duration, crd.CEL(INTERVAL, message="must be at least 1m, in whole seconds")]
    keep: Annotated[ctrl.Int32, Field(ge=1, description="The number of finished Jobs to keep.")] = 3


class ScheduledBackupStatus(ctrl.Model):
    last_time: ctrl.Time | None = None
    next_time: ctrl.Time | None = None


@crd.printcolumn("Last", ".status.lastTime", type="date")
@crd.printcolumn("Next", ".status.nextTime")
@crd.CEL("size(self.metadata.name) <= 52", message="the name of a Job has at most 63 characters")
class ScheduledBackup(ctrl.Object, group="cookbook.example.com", version="v1"):
    """Backups at an interval."""

    spec: ScheduledBackupSpec
    status: ScheduledBackupStatus = Field(default_factory=ScheduledBackupStatus)


@ctrl.rbac(groups="cookbook.example.com", resources="scheduledbackups", verbs="get;list;watch")
@ctrl.rbac(groups="cookbook.example.com", resources="scheduledbackups/status", verbs="update")
@ctrl.rbac(groups="batch", resources="jobs", verbs="create;delete")
class ScheduledBackupReconciler:
    def __init__(self, client: ctrl.Client, now: Callable[[], datetime]) -> None:
        self.client = client
        self.now = now

    async def reconcile(self, request: ctrl.Request) -> ctrl.Result | None:
        backup = await self.client.get_or_none(ScheduledBackup, request)
        if backup is None or backup.metadata.deletion_timestamp is not None:
            return None
        now, before = ctrl.Time.of(self.now()), backup.status.deep_copy()
        created, interval = backup.metadata.creation_timestamp or now, backup.spec.interval
        due = created + max(0, (now - created) // interval) * interval
        jobs = await self.client.list(batch.Job, namespace=request.namespace, labels={BACKUP: request.name})
        own = [job for job in jobs if ctrl.controllerutil.has_owner(backup, job)]
        finished = sorted(filter(is_finished, own), key=lambda job: job.metadata.name)  # the names end with the times
        if (before.last_time is None or before.last_time < due) and len(finished) == len(own):
            with suppress(ctrl.AlreadyExists):
                await self.client.create(job_for(backup, due))
            backup.status.last_time = due
        for job in finished[: -backup.spec.keep]:
            with suppress(ctrl.NotFound):
                await self.client.delete(job, uid=job.metadata.uid, propagation_policy="Background")
        backup.status.next_time = upcoming = due + interval
        if backup.status != before:
            await self.client.status.update(backup)
        return ctrl.Result(requeue_after=(upcoming - now).total_seconds(), reason="the next backup")


def is_finished(job: batch.Job) -> bool:
    return any(ctrl.is_condition_true(job.status.conditions, each) for each in ("Complete", "Failed"))


def job_for(backup: ScheduledBackup, due: ctrl.Time) -> batch.Job:
    name = backup.metadata.name
    pod = core.PodSpec(containers=[core.Container(name="backup", image=backup.spec.image)], restart_policy="Never")
    job = batch.Job(
        metadata=meta.ObjectMeta(
            name=f"{name}-{int(due.timestamp())}", namespace=backup.metadata.namespace, labels={BACKUP: name}
        ),
        spec=batch.JobSpec(template=core.PodTemplateSpec(spec=pod)),
    )
    ctrl.set_controller_reference(backup, job)
    return job


def setup(mgr: ctrl.Manager, now: Callable[[], datetime] = ctrl.Time.now) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(ScheduledBackup).owns(batch.Job)
    builder.complete(ScheduledBackupReconciler(mgr.client, now))


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: ScheduledBackup
metadata: {name: orders, namespace: default}
spec: {image: "example.com/backup:1", interval: 1m, keep: 2}
"""


def main() -> None:
    running.run(setup, ScheduledBackup, sample=SAMPLE, shows="scheduledbackups,jobs")


if __name__ == "__main__":
    main()
