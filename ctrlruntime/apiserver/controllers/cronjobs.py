"""CronJobs: a Job at every time the schedule names, as the concurrency policy allows, and a history of them."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    controller_of,
    is_deleting,
    is_true,
    key_of,
    metadata,
    own_key,
    owner_keys,
    owner_reference,
    parse_time,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.cron import Schedule, parse
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import AlreadyExists
from ctrlruntime.schema.trees import Document

_SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_TOO_MANY: Final = 100
"""So many missed starts are a clock or a suspension gone wrong; upstream says so and takes the last one."""


class CronJobs:
    name = "cronjob"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("cronjob-controller", now)

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("batch", "cronjobs"), own_key),
            keys_of(api.watch("batch", "jobs"), owner_keys("CronJob")),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        cron = api.get("batch", "cronjobs", *key)
        if cron is None or is_deleting(cron):
            return None
        jobs = _jobs_of(api, cron)
        status = await self._follow(api, cron, jobs)
        await self._drop_history(api, cron, jobs)
        due, after = None, None
        if not cron["spec"].get("suspend"):
            due, after = await self._due(api, cron, status)
        if due is not None:
            await self._start(api, cron, jobs, status, due)
        await write_status(api, "batch", "cronjobs", cron, status)
        return after

    async def _follow(self, api: API, cron: Document, jobs: Sequence[Document]) -> Document:
        """Return the status as the Jobs make it: which are active, and when one last succeeded."""
        status: dict[str, Any] = copy.deepcopy(cron.get("status") or {})
        listed = {ref.get("uid") for ref in status.get("active") or ()}
        running = {metadata(job)["uid"]: job for job in jobs if not _ended(job)}
        for job in jobs:
            if metadata(job)["uid"] in listed and metadata(job)["uid"] not in running:
                condition = "Complete" if is_true(job, "Complete") else "Failed"
                text = f"Saw completed job: {metadata(job)['name']}, condition: {condition}"
                await self._events.normal(api, cron, "SawCompletedJob", text)
            done = (job.get("status") or {}).get("completionTime")
            if done and is_true(job, "Complete") and done > status.get("lastSuccessfulTime", ""):
                status["lastSuccessfulTime"] = done
        kept = [ref for ref in status.get("active") or () if ref.get("uid") in running]
        kept += [_reference(job) for uid, job in running.items() if uid not in listed]
        _set_active(status, kept)
        return status

    async def _due(self, api: API, cron: Document, status: Document) -> tuple[datetime | None, float | None]:
        """Return the time that is due, if one is, and the seconds to the next one."""
        spec, now = cron["spec"], self._now()
        try:
            schedule, zone = parse(spec["schedule"]), ZoneInfo(spec["timeZone"]) if spec.get("timeZone") else UTC
        except (ValueError, OSError, LookupError) as error:
            await self._events.warning(api, cron, "UnparseableSchedule", f"unparseable schedule: {error}")
            return None, None
        earliest = parse_time(status.get("lastScheduleTime")) or parse_time(metadata(cron)["creationTimestamp"]) or now
        if spec.get("startingDeadlineSeconds") is not None:
            earliest = max(earliest, now - timedelta(seconds=float(spec["startingDeadlineSeconds"])))
        due, missed = _latest(schedule, zone, earliest, now)
        if missed > _TOO_MANY:
            text = f"too many missed start times ({missed}). Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            await self._events.warning(api, cron, "TooManyMissedTimes", text)
        upcoming = (
            schedule.after((due or now).astimezone(zone)) if not schedule.every else schedule.after(due or earliest)
        )
        after = None if upcoming is None else max(0.0, (upcoming.astimezone(UTC) - now).total_seconds())
        return due, after

    async def _start(self, api: API, cron: Document, jobs: Sequence[Document], status: Document, due: datetime) -> None:
        active = [job for job in jobs if not _ended(job)]
        match cron["spec"].get("concurrencyPolicy", "Allow"):
            case "Forbid" if active:
                text = "Not starting job because prior execution is running and concurrency policy is Forbid"
                await self._events.normal(api, cron, "JobAlreadyActive", text)
                return
            case "Replace":
                for job in active:
                    await self._delete(api, cron, job)
                    _set_active(status, [r for r in status.get("active") or () if r["uid"] != metadata(job)["uid"]])
            case _:
                pass
        namespace, _ = key_of(cron)
        try:
            job = await api.create("batch", "jobs", namespace, _new_job(cron, due))
        except AlreadyExists:
            status["lastScheduleTime"] = timestamp(due)  # made before, and the status was not written
            return
        await self._events.normal(api, cron, "SuccessfulCreate", f"Created job {metadata(job)['name']}")
        _set_active(status, [*(status.get("active") or ()), _reference(job)])
        status["lastScheduleTime"] = timestamp(due)

    async def _drop_history(self, api: API, cron: Document, jobs: Sequence[Document]) -> None:
        for kind, field, default in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            ended = sorted((job for job in jobs if is_true(job, kind)), key=_begun)
            for job in ended[: max(0, len(ended) - int(cron["spec"].get(field, default)))]:
                await self._delete(api, cron, job)

    async def _delete(self, api: API, cron: Document, job: Document) -> None:
        namespace, name = key_of(job)
        if not is_deleting(job):
            await api.delete(
                "batch", "jobs", namespace, name, uid=metadata(job)["uid"], propagation_policy="Background"
            )
            await self._events.normal(api, cron, "SuccessfulDelete", f"Deleted job {name}")


def _latest(schedule: Schedule, zone: tzinfo, earliest: datetime, now: datetime) -> tuple[datetime | None, int]:
    """Return the last time after `earliest` that is not after `now`, and how many there were."""
    found: datetime | None = None
    missed, moment = 0, earliest
    while missed < 10_000:
        following = schedule.after(moment.astimezone(zone))
        if following is None or following > now:
            break
        found = moment = following.astimezone(UTC)
        missed += 1
    return found, missed


def _set_active(status: Document, refs: list[Document]) -> None:
    if refs:
        status["active"] = refs
    else:
        status.pop("active", None)


def _jobs_of(api: API, cron: Document) -> list[Document]:
    uid = metadata(cron)["uid"]
    owners = ((job, controller_of(job)) for job in api.list("batch", "jobs", metadata(cron)["namespace"]))
    return [job for job, owner in owners if owner is not None and owner.get("uid") == uid]


def _ended(job: Document) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _begun(job: Document) -> tuple[str, str]:
    return str((job.get("status") or {}).get("startTime") or metadata(job)["creationTimestamp"]), metadata(job)["name"]


def _reference(job: Document) -> Document:
    meta = metadata(job)
    return {
        "kind": "Job",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "apiVersion": "batch/v1",
        "resourceVersion": meta["resourceVersion"],
    }


def _new_job(cron: Document, due: datetime) -> Document:
    template: Document = cron["spec"]["jobTemplate"]
    meta: Document = template.get("metadata") or {}
    zone = ZoneInfo(cron["spec"]["timeZone"]) if cron["spec"].get("timeZone") else UTC
    moment = due.astimezone(zone).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{metadata(cron)['name']}-{int(due.timestamp()) // 60}",
            "namespace": metadata(cron)["namespace"],
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), _SCHEDULED_AT: moment},
            "ownerReferences": [owner_reference(cron)],
        },
        "spec": copy.deepcopy(template.get("spec") or {}),
    }
