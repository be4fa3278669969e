"""Jobs: pods until enough have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    claim,
    is_active,
    is_deleting,
    is_true,
    key_of,
    metadata,
    own_key,
    owner_keys,
    parse_time,
    pod_from,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Document

INDEX: Final = "batch.kubernetes.io/job-completion-index"


class Jobs:
    name = "job"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("job-controller", now)

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("batch", "jobs"), own_key),
            keys_of(api.watch("", "pods"), owner_keys("Job")),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        job = api.get("batch", "jobs", *key)
        if job is None or is_deleting(job):
            return None
        if _is_finished(job):
            return await self._expire(api, job)
        pods = await claim(api, job, "", "pods")
        status = self._status(job, pods)
        ending = self._ending(job, status)
        if ending:
            status["conditions"] = [*status.get("conditions", ()), *ending]
            for pod in filter(is_active, pods):
                await self._delete(api, job, pod)
            status = {name: value for name, value in status.items() if name != "active"} | {"ready": 0}
            if ending[-1]["type"] == "Complete":
                status["completionTime"] = timestamp(self._now())
        else:
            await self._run(api, job, pods, status)
            status = self._status(job, await claim(api, job, "", "pods"))
        await write_status(api, "batch", "jobs", job, status)
        if ending and ending[-1]["type"] == "Complete":
            await self._events.normal(api, job, "Completed", "Job completed")
        elif ending:
            await self._events.warning(api, job, ending[-1]["reason"], ending[-1]["message"])
        return None

    async def _run(self, api: API, job: Document, pods: Sequence[Document], status: Document) -> None:
        active = [pod for pod in pods if is_active(pod)]
        if job["spec"].get("suspend"):
            for pod in active:
                await self._delete(api, job, pod)
            return
        room = int(job["spec"].get("parallelism", 1))
        completions = job["spec"].get("completions")
        if completions is not None:
            room = min(room, int(completions) - status.get("succeeded", 0))
        elif status.get("succeeded"):
            room = 0  # a work queue: after the first success no pod is started
        for pod in active[max(0, room) :] if completions is not None else ():
            await self._delete(api, job, pod)
        free = _free_indexes(job, pods)
        for _ in range(room - len(active)):
            await self._create(api, job, next(free, None))

    async def _create(self, api: API, job: Document, index: int | None) -> None:
        namespace, name = key_of(job)
        base = name if index is None else f"{name}-{index}"
        pod = pod_from(job["spec"]["template"], job, generateName=f"{base}-", namespace=namespace)
        if index is not None:
            for part in ("labels", "annotations"):
                metadata(pod).setdefault(part, {})[INDEX] = str(index)
            pod["spec"]["hostname"] = base
            for container in pod["spec"].get("containers") or ():
                container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "value": str(index)})
        created = await api.create("", "pods", namespace, pod)
        await self._events.normal(api, job, "SuccessfulCreate", f"Created pod: {metadata(created)['name']}")

    async def _delete(self, api: API, job: Document, pod: Document) -> None:
        namespace, name = key_of(pod)
        await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"])
        await self._events.normal(api, job, "SuccessfulDelete", f"Deleted pod: {name}")

    def _status(self, job: Document, pods: Sequence[Document]) -> Document:
        before: Document = job.get("status") or {}
        active = [pod for pod in pods if is_active(pod)]
        status: dict[str, Any] = {
            "active": len(active),
            "succeeded": len([pod for pod in pods if _phase(pod) == "Succeeded"]),
            "failed": len([pod for pod in pods if _phase(pod) == "Failed"]),
        }
        status = {name: value for name, value in status.items() if value}
        if not job["spec"].get("suspend"):
            status["startTime"] = before.get("startTime") or timestamp(self._now())
        status["ready"] = sum(1 for pod in active if is_true(pod, "Ready"))
        status["terminating"] = sum(1 for pod in pods if is_deleting(pod))
        status["uncountedTerminatedPods"] = {}
        suspended = self._suspended(job)
        if suspended:
            status["conditions"] = suspended
        return status

    def _suspended(self, job: Document) -> list[Document]:
        present = [c for c in (job.get("status") or {}).get("conditions") or () if c["type"] == "Suspended"]
        is_suspended = bool(job["spec"].get("suspend"))
        if not present and not is_suspended:
            return []
        if present and (present[0]["status"] == "True") == is_suspended:
            return present
        reason, text = ("JobSuspended", "Job suspended") if is_suspended else ("JobResumed", "Job resumed")
        return [self._condition("Suspended", reason, text, is_met=is_suspended)]

    def _ending(self, job: Document, status: Document) -> list[Document]:
        """Return the conditions that end the job, if it ends."""
        completions = job["spec"].get("completions")
        wanted = 1 if completions is None else int(completions)
        if status.get("succeeded", 0) >= wanted and not (completions is None and status.get("active")):
            text = "Reached expected number of succeeded pods"
            return [self._condition(kind, "CompletionsReached", text) for kind in ("SuccessCriteriaMet", "Complete")]
        if status.get("failed", 0) > int(job["spec"].get("backoffLimit", 6)):
            text = "Job has reached the specified backoff limit"
            return [self._condition(kind, "BackoffLimitExceeded", text) for kind in ("FailureTarget", "Failed")]
        return []

    def _condition(self, kind: str, reason: str, message: str, *, is_met: bool = True) -> Document:
        moment = timestamp(self._now())
        return {
            "type": kind,
            "status": "True" if is_met else "False",
            "lastProbeTime": moment,
            "lastTransitionTime": moment,
            "reason": reason,
            "message": message,
        }

    async def _expire(self, api: API, job: Document) -> float | None:
        """Delete a finished job when its time to live is over."""
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        ended = next(c for c in job["status"]["conditions"] if c["type"] in {"Complete", "Failed"})
        since = parse_time(ended["lastTransitionTime"]) or self._now()
        left = float(seconds) - (self._now() - since).total_seconds()
        if left > 0:
            return left
        namespace, name = key_of(job)
        await api.delete("batch", "jobs", namespace, name, uid=metadata(job)["uid"], propagation_policy="Foreground")
        return None


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _is_finished(job: Document) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _free_indexes(job: Document, pods: Sequence[Document]) -> Iterator[int]:
    """Yield the completion indexes that nobody works on; nothing unless the job is indexed."""
    if job["spec"].get("completionMode") != "Indexed":
        return
    taken = {
        (metadata(pod).get("annotations") or {}).get(INDEX)
        for pod in pods
        if is_active(pod) or _phase(pod) == "Succeeded"
    }
    yield from (index for index in range(int(job["spec"].get("completions") or 0)) if str(index) not in taken)
