"""CronTab in two versions: the operator converts objects between v1, with a schedule of one string, and v2, with an object of fields.

Users read and write the version that they know. The API server stores v1, and calls the conversion webhook for v2.

- v1 is the hub, because it is stored. A third version needs only a conversion to the hub, and not one to each other version.
- Both versions accept the same schedules. Otherwise an object of one version could not be read in the other.
- v1 has no time zone. The conversion keeps it in an annotation, so a client of v1 that updates the object does not remove it.
- A test with `check_round_trips` converts random objects to the other version and back. It fails for a field that a converter forgets.

Shows: `ctrl.webhook.Conversion` with hub and spoke, two classes of one kind, `storage=True`, metadata in a conversion.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from examples.cookbook import running

FIELD = "[0-9*,/-]+"
TIME_ZONE = "cookbook.example.com/time-zone"


class CronTabSpec(ctrl.Model):
    cron_spec: Annotated[str, Field(pattern=f"^{FIELD}( {FIELD}){{4}}$")]
    image: str


class CronTab(ctrl.Object, group="cookbook.example.com", version="v1", storage=True):
    """Runs an image on a schedule."""

    spec: CronTabSpec


CronField = Annotated[str, Field(pattern=f"^{FIELD}$")]


class Schedule(ctrl.Model):
    minute: CronField = "*"
    hour: CronField = "*"
    day_of_month: CronField = "*"
    month: CronField = "*"
    day_of_week: CronField = "*"
    time_zone: str = ""


class CronTabV2Spec(ctrl.Model):
    schedule: Schedule
    image: str


class CronTabV2(ctrl.Object, group="cookbook.example.com", version="v2", kind="CronTab"):
    """Runs an image on a schedule."""

    spec: CronTabV2Spec


def to_v1(new: CronTabV2) -> CronTab:
    schedule, metadata = new.spec.schedule, new.metadata
    if schedule.time_zone:
        metadata.annotations[TIME_ZONE] = schedule.time_zone
    fields = (schedule.minute, schedule.hour, schedule.day_of_month, schedule.month, schedule.day_of_week)
    return CronTab(metadata=metadata, spec=CronTabSpec(cron_spec=" ".join(fields), image=new.spec.image))


def to_v2(old: CronTab) -> CronTabV2:
    minute, hour, day_of_month, month, day_of_week = old.spec.cron_spec.split(" ")
    schedule = Schedule(
        minute=minute,
        hour=hour,
        day_of_month=day_of_month,
        month=month,
        day_of_week=day_of_week,
        time_zone=old.metadata.annotations.pop(TIME_ZONE, ""),
    )
    return CronTabV2(metadata=old.metadata, spec=CronTabV2Spec(schedule=schedule, image=old.spec.image))


CONVERSION = ctrl.webhook.Conversion(CronTab).spoke(CronTabV2, to_hub=to_v1, from_hub=to_v2)


def setup(mgr: ctrl.Manager) -> None:
    """Add the webhook to a manager. `ctrl manifests` calls this too."""
    ctrl.new_webhook_managed_by(mgr).for_(CronTab).with_conversion(CONVERSION).complete()


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: CronTab
metadata: {name: hourly, namespace: default}
spec: {cronSpec: "0 * * * *", image: "reports:1"}
---
apiVersion: cookbook.example.com/v2
kind: CronTab
metadata: {name: nightly, namespace: default}
spec: {schedule: {minute: "30", hour: "2", timeZone: Europe/Berlin}, image: "backup:1"}
"""


def main() -> None:
    running.run(setup, CronTab, CronTabV2, sample=SAMPLE, shows="crontabs.v1.cookbook.example.com", webhooks=True)


if __name__ == "__main__":
    main()
