"""Jobs: pods until enough have succeeded, or too many have failed.

As upstream, every pod has a finalizer until it is counted, so a finished pod that a client deletes still counts;
and a Job ends in two steps: first the condition that decides (SuccessCriteriaMet, FailureTarget), then, when its pods
have ended, the one that ends it (Complete, Failed). One thing is not as upstream: a pod that replaces a failed one is
made at once, not after a backoff of ten seconds and more.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.indexes import INDEX, Indexes, index_of, parse_indexes
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    claim,
    condition,
    controller_of,
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
from ctrlruntime.apiserver.interfaces import API
from ctrlruntime.errors import NotFound
from ctrlruntime.schema.trees import Document

TRACKING: Final = "batch.kubernetes.io/job-tracking"
_FAILURE_COUNT: Final = "batch.kubernetes.io/job-index-failure-count"
_OWN_NAME: Final = "kubernetes.io/job-controller"


@dataclass(slots=True)
class _Tally:
    """A Job with its pods as they are now, and what has been counted so far."""

    job: Document
    pods: Sequence[Document]
    fresh: list[Document] = field(default_factory=list[Document])
    """Pods that ended and were not counted before."""
    succeeded: int = 0
    failed: int = 0
    indexes: Indexes | None = None
    verdict: tuple[str, str] | None = None
    """Reason and message of a failure that the pod failure policy asks for."""

    @property
    def spec(self) -> Document:
        found: Document = self.job["spec"]
        return found

    @property
    def active(self) -> list[Document]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def terminating(self) -> list[Document]:
        return [pod for pod in self.pods if is_deleting(pod) and _phase(pod) not in FINISHED]


class Jobs:
    name = "job"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("job-controller", now)
        self._counted: set[str] = set()

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch("batch", "jobs"), own_key),
            keys_of(api.watch("", "pods"), owner_keys("Job")),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        job = api.get("batch", "jobs", *key)
        if job is None or is_deleting(job):
            await self._release(api, _pods_of(api, key, metadata(job)["uid"] if job is not None else ""))
            return None
        if job["spec"].get("managedBy", _OWN_NAME) != _OWN_NAME:
            return None
        if _is_finished(job):
            await self._release(api, _pods_of(api, key, metadata(job)["uid"]))
            return await self._expire(api, job)
        tally = self._count(job, await claim(api, job, "", "pods"))
        return await self._go_on(api, tally)

    async def _go_on(self, api: API, tally: _Tally) -> float | None:
        """Take one step: end the Job, suspend it, or bring its pods to their number."""
        job, conditions = tally.job, self._conditions(tally)
        ending = next((c for c in conditions if c["type"] in {"SuccessCriteriaMet", "FailureTarget"}), None)
        if ending is not None or job["spec"].get("suspend"):
            await self._delete_all(api, job, tally.active)
        else:
            await self._run(api, tally)
        tally.pods = await claim(api, job, "", "pods")
        status = self._status(tally, conditions)
        if ending is not None and not tally.active and not tally.terminating:
            status["conditions"] = [*conditions, self._last_condition(ending)]
            if ending["type"] == "SuccessCriteriaMet":
                status["completionTime"] = timestamp(self._now())
        await write_status(api, "batch", "jobs", job, status)
        self._counted.update(str(metadata(pod)["uid"]) for pod in tally.fresh)
        await self._release(api, tally.fresh)
        await self._tell(api, job, status)
        return self._time_left(job)

    # Counting

    def _count(self, job: Document, pods: Sequence[Document]) -> _Tally:
        before: Document = job.get("status") or {}
        spec = job["spec"]
        tally = _Tally(job, pods, succeeded=before.get("succeeded", 0), failed=before.get("failed", 0))
        if spec.get("completionMode") == "Indexed":
            tally.indexes = Indexes(
                total=int(spec.get("completions") or 0),
                completed=parse_indexes(before.get("completedIndexes", "")),
                failed=parse_indexes(before.get("failedIndexes", "")),
                limit=spec.get("backoffLimitPerIndex"),
            )
        for pod in pods:
            if self._is_fresh(job, pod):
                tally.fresh.append(pod)
                self._count_pod(tally, pod)
        if tally.indexes is not None:
            tally.succeeded = len(tally.indexes.completed)
        return tally

    def _is_fresh(self, job: Document, pod: Document) -> bool:
        """A pod ends by itself, or by being deleted; one that a suspension removes counts for nothing."""
        if str(metadata(pod)["uid"]) in self._counted or TRACKING not in (metadata(pod).get("finalizers") or ()):
            return False
        waits = job["spec"].get("podReplacementPolicy") == "Failed"
        return _phase(pod) in FINISHED or (is_deleting(pod) and (not waits or _has_stopped(pod)))

    def _count_pod(self, tally: _Tally, pod: Document) -> None:
        index = index_of(pod)
        if _phase(pod) == "Succeeded":
            tally.succeeded += 1
            if tally.indexes is not None and index is not None:
                tally.indexes.complete(index)
            return
        is_removed = is_deleting(pod) and _phase(pod) not in FINISHED
        if is_removed and (tally.spec.get("suspend") or is_true(tally.job, "SuccessCriteriaMet")):
            return
        action = _policy_action(tally.spec, pod)
        if action is not None and action[0] == "Ignore":
            return
        tally.failed += 1
        if action is not None and action[0] == "FailJob":
            tally.verdict = ("PodFailurePolicy", action[1])
        if tally.indexes is not None and index is not None:
            count = int((metadata(pod).get("annotations") or {}).get(_FAILURE_COUNT, "0")) + 1
            tally.indexes.fail(index, count, for_good=action is not None and action[0] == "FailIndex")

    # Ending

    def _conditions(self, tally: _Tally) -> list[Document]:
        """Return the conditions with that of a suspension, and that which decides the end, if it has come."""
        present = [dict(c) for c in (tally.job.get("status") or {}).get("conditions") or ()]
        is_suspended = bool(tally.spec.get("suspend"))
        old = next((c for c in present if c["type"] == "Suspended"), None)
        if (old is not None or is_suspended) and (old is None or (old["status"] == "True") != is_suspended):
            reason, text = ("JobSuspended", "Job suspended") if is_suspended else ("JobResumed", "Job resumed")
            present = [c for c in present if c is not old]
            present.append(self._condition("Suspended", reason, text, is_met=is_suspended))
        if not any(c["type"] in {"SuccessCriteriaMet", "FailureTarget"} for c in present):
            present += self._decision(tally)
        return present

    def _decision(self, tally: _Tally) -> list[Document]:
        failure = tally.verdict or self._failure(tally)
        if failure is not None:
            return [self._condition("FailureTarget", *failure)]
        success = _success(tally)
        return [] if success is None else [self._condition("SuccessCriteriaMet", *success)]

    def _failure(self, tally: _Tally) -> tuple[str, str] | None:
        spec = tally.spec
        limit = int(spec.get("backoffLimit", 6))
        template = spec["template"]["spec"]
        restarts = sum(_restarts(pod) for pod in tally.active) if template.get("restartPolicy") == "OnFailure" else 0
        if tally.failed > limit or (restarts >= limit and restarts > 0):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        left = self._time_left(tally.job)
        if left is not None and left <= 0 and not spec.get("suspend"):
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        if tally.indexes is not None and tally.indexes.failed:
            most = spec.get("maxFailedIndexes")
            if most is not None and len(tally.indexes.failed) > most:
                return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
            if tally.indexes.are_all_decided:
                return "FailedIndexes", "Job has failed indexes"
        return None

    def _last_condition(self, decided: Document) -> Document:
        kind = "Complete" if decided["type"] == "SuccessCriteriaMet" else "Failed"
        return self._condition(kind, decided["reason"], decided["message"])

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

    def _time_left(self, job: Document) -> float | None:
        """Return the seconds until the deadline of a running Job; None without one."""
        deadline, since = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
        if deadline is None or job["spec"].get("suspend"):
            return None
        began = parse_time(since)
        return float(deadline) - (self._now() - began).total_seconds() if began is not None else float(deadline)

    # Pods

    async def _run(self, api: API, tally: _Tally) -> None:
        spec, active = tally.spec, tally.active
        waiting = len(tally.terminating) if spec.get("podReplacementPolicy") == "Failed" else 0
        wanted = int(spec.get("parallelism", 1))
        completions = spec.get("completions")
        if tally.indexes is not None:
            wanted = min(wanted, tally.indexes.undecided)
        elif completions is not None:
            wanted = min(wanted, int(completions) - tally.succeeded)
        elif tally.succeeded:
            wanted = len(active)  # a work queue: after the first success no pod is started
        await self._delete_all(api, tally.job, active[max(0, wanted) :])
        if tally.indexes is not None:
            taken = {index_of(pod) for pod in (*active, *(tally.terminating if waiting else ()))}
            free = [index for index in tally.indexes.open if index not in taken]
            for index in free[: max(0, wanted - len(active) - waiting)]:
                await self._create(api, tally, index)
            return
        for _ in range(wanted - len(active) - waiting):
            await self._create(api, tally, None)

    async def _create(self, api: API, tally: _Tally, index: int | None) -> None:
        job = tally.job
        namespace, name = key_of(job)
        base = name if index is None else f"{name}-{index}"
        pod = pod_from(job["spec"]["template"], job, generateName=f"{base}-", namespace=namespace)
        metadata(pod).setdefault("finalizers", []).append(TRACKING)
        if index is not None:
            for part in ("labels", "annotations"):
                metadata(pod).setdefault(part, {})[INDEX] = str(index)
            if tally.indexes is not None and tally.indexes.limit is not None:
                metadata(pod)["annotations"][_FAILURE_COUNT] = str(tally.indexes.failures.get(index, 0))
            pod["spec"].setdefault("hostname", base)
            source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
            for container in (*pod["spec"].get("containers", ()), *pod["spec"].get("initContainers", ())):
                if not any(variable.get("name") == "JOB_COMPLETION_INDEX" for variable in container.get("env", ())):
                    container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
        created = await api.create("", "pods", namespace, pod)
        await self._events.normal(api, job, "SuccessfulCreate", f"Created pod: {metadata(created)['name']}")

    async def _delete_all(self, api: API, job: Document, pods: Iterable[Document]) -> None:
        for pod in pods:
            namespace, name = key_of(pod)
            await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"])
            await self._events.normal(api, job, "SuccessfulDelete", f"Deleted pod: {name}")

    async def _release(self, api: API, pods: Iterable[Document]) -> None:
        """Take the finalizer off pods that are counted, or that nobody counts any more."""
        for pod in pods:
            kept = [name for name in metadata(pod).get("finalizers") or () if name != TRACKING]
            if len(kept) < len(metadata(pod).get("finalizers") or ()):
                change: Document = {"uid": metadata(pod)["uid"], "finalizers": kept or None}
                try:
                    await api.merge_patch("", "pods", *key_of(pod), {"metadata": change})
                except NotFound:
                    continue
            self._counted.discard(str(metadata(pod)["uid"]))

    # Status

    def _status(self, tally: _Tally, conditions: list[Document]) -> Document:
        before: Document = tally.job.get("status") or {}
        status: dict[str, Any] = {"active": len(tally.active), "succeeded": tally.succeeded, "failed": tally.failed}
        status = {name: value for name, value in status.items() if value}
        if tally.indexes is not None:
            status |= tally.indexes.shown()
        if not tally.spec.get("suspend"):
            status["startTime"] = before.get("startTime") or timestamp(self._now())
        status["ready"] = sum(1 for pod in tally.active if is_true(pod, "Ready"))
        status["terminating"] = len(tally.terminating)
        status["uncountedTerminatedPods"] = {}
        if conditions:
            status["conditions"] = conditions
        return status

    async def _tell(self, api: API, job: Document, status: Document) -> None:
        """Write the events of conditions that are new."""
        before = {(c["type"], c["status"]) for c in (job.get("status") or {}).get("conditions") or ()}
        for told in status.get("conditions") or ():
            if (told["type"], told["status"]) in before:
                continue
            match told["type"]:
                case "Complete":
                    await self._events.normal(api, job, "Completed", "Job completed")
                case "Failed":
                    await self._events.warning(api, job, told["reason"], told["message"])
                case "Suspended":
                    reason = "Suspended" if told["status"] == "True" else "Resumed"
                    await self._events.normal(api, job, reason, told["message"])
                case _:
                    pass

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


def _success(tally: _Tally) -> tuple[str, str] | None:
    spec, indexes = tally.spec, tally.indexes
    for number, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        if indexes is not None and indexes.satisfies(rule):
            return "SuccessPolicy", f"Matched rules at index {number}"
    completions = spec.get("completions")
    if completions is None:
        is_done = tally.succeeded > 0 and not tally.active
    elif indexes is not None:
        is_done = len(indexes.completed) >= indexes.total
    else:
        is_done = tally.succeeded >= int(completions)
    return ("CompletionsReached", "Reached expected number of succeeded pods") if is_done else None


def _policy_action(spec: Document, pod: Document) -> tuple[str, str] | None:
    """Return (action, why) of the first rule of the pod failure policy that a failed pod matches."""
    for number, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        where = f"matching {rule['action']} rule at index {number}"
        namespace, name = key_of(pod)
        codes = rule.get("onExitCodes")
        if codes is not None:
            for container, code in _exit_codes(pod):
                is_ours = codes.get("containerName") in {None, container}
                if code and is_ours and (code in codes["values"]) == (codes["operator"] == "In"):
                    text = f"Container {container} for pod {namespace}/{name} failed with exit code {code} {where}"
                    return str(rule["action"]), text
        kind = _matched_condition(rule, pod)
        if kind:
            return str(rule["action"]), f"Pod {namespace}/{name} has condition {kind} {where}"
    return None


def _matched_condition(rule: Document, pod: Document) -> str:
    """Return the type of the first condition of the pod that a rule asks for."""
    for pattern in rule.get("onPodConditions") or ():
        found = condition(pod, str(pattern["type"]))
        if found is not None and found.get("status") == pattern.get("status", "True"):
            return str(pattern["type"])
    return ""


def _exit_codes(pod: Document) -> list[tuple[str, int]]:
    status: Document = pod.get("status") or {}
    containers = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    ended = [(c["name"], (c.get("state") or {}).get("terminated")) for c in containers]
    return [(str(name), int(state.get("exitCode", 0))) for name, state in ended if state is not None]


def _pods_of(api: API, key: Key, uid: str) -> list[Document]:
    """Return the pods that a Job of this name controls (of any uid, when none is given)."""
    found: list[Document] = []
    for pod in api.list("", "pods", key[0]):
        owner = controller_of(pod)
        is_named = owner is not None and owner.get("kind") == "Job" and owner.get("name") == key[1]
        if is_named and owner is not None and uid in {"", owner.get("uid")}:
            found.append(pod)
    return found


def _restarts(pod: Document) -> int:
    return sum(int(c.get("restartCount", 0)) for c in (pod.get("status") or {}).get("containerStatuses") or ())


def _has_stopped(pod: Document) -> bool:
    return metadata(pod).get("deletionGracePeriodSeconds") == 0


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _is_finished(job: Document) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")
