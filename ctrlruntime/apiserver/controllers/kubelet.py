"""The kubelet of the simulation: a pod on a node becomes Running and Ready after a delay, and goes away when it is
deleted.

An annotation on the pod changes its fate, see OUTCOME_ANNOTATION.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.nodes import NODE_ADDRESS
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    condition,
    controller_of,
    is_deleting,
    is_true,
    metadata,
    own_key,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Change, Document

OUTCOME_ANNOTATION: Final = "simulation.ctrlruntime.dev/outcome"
"""On a pod: `fail` (containers end with code 1), `crash` (CrashLoopBackOff), `never-ready` (runs, never Ready),
`pending` (containers are never started), `succeed` (containers end with code 0). Pods of Jobs succeed without it.
"""

_NETWORK: Final = 10 << 24 | 244 << 16
_CONDITION_ORDER: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Kubelet:
    name = "kubelet"

    def __init__(self, *, ready_delay: float, now: Now, clock: Callable[[], float] = time.monotonic) -> None:
        self._ready_delay = ready_delay
        self._now = now
        self._clock = clock
        self._due: dict[str, float] = {}
        self._addresses: dict[str, str] = {}
        self._last_address = 0

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [keys_of(api.watch("", "pods"), self._keys)]

    def _keys(self, change: Change) -> Iterable[Key]:
        uid = str(metadata(change.object)["uid"])
        if change.type == "DELETED":
            self._due.pop(uid, None)
            self._addresses.pop(uid, None)
            return ()
        address = (change.object.get("status") or {}).get("podIP")
        if address:
            self._addresses[uid] = address
        return own_key(change)

    async def reconcile(self, api: API, key: Key) -> float | None:
        pod = api.get("", "pods", *key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        if is_deleting(pod):
            await self._stop(api, pod)
            return None
        status = pod.get("status") or {}
        if status.get("phase") in FINISHED:
            return None
        if status.get("phase") == "Running":
            await self._keep_running(api, pod)
            return None
        return await self._start(api, pod)

    async def _stop(self, api: API, pod: Document) -> None:
        namespace, name = metadata(pod)["namespace"], metadata(pod)["name"]
        if metadata(pod).get("deletionGracePeriodSeconds") != 0 or not metadata(pod).get("finalizers"):
            await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"], grace_period_seconds=0)

    async def _start(self, api: API, pod: Document) -> float | None:
        uid = str(metadata(pod)["uid"])
        left = self._due.setdefault(uid, self._clock() + self._ready_delay) - self._clock()
        if left > 0 or _outcome(pod) == "pending":
            await self._write(api, pod, self._waiting(pod))
            return left if left > 0 else None
        del self._due[uid]
        await self._write(api, pod, self._started(pod))
        return None

    async def _keep_running(self, api: API, pod: Document) -> None:
        """A running pod changes when its readiness gates open, or when it has nothing more to do."""
        if not any(c.get("state", {}).get("running") for c in (pod.get("status") or {}).get("containerStatuses") or ()):
            return  # not started by this simulation: a client wrote this status
        outcome = _outcome(pod)
        if outcome in {"succeed", "fail"}:
            await self._write(api, pod, self._ended(pod, failed=outcome == "fail"))
        elif pod["spec"].get("readinessGates"):
            await self._write(api, pod, self._running(pod, (pod.get("status") or {})["containerStatuses"]))

    async def _write(self, api: API, pod: Document, status: Document) -> None:
        await write_status(api, "", "pods", pod, status)

    def _started(self, pod: Document) -> Document:
        match _outcome(pod):
            case "crash":
                state = {
                    "waiting": {"reason": "CrashLoopBackOff", "message": "the simulation lets this container crash"}
                }
                return self._running(pod, [_container_status(c, state, restarts=1) for c in pod["spec"]["containers"]])
            case "never-ready":
                state = {"running": {"startedAt": timestamp(self._now())}}
                return self._running(
                    pod, [_container_status(c, state, started=True) for c in pod["spec"]["containers"]]
                )
            case _:
                state = {"running": {"startedAt": timestamp(self._now())}}
                containers = pod["spec"]["containers"]
                return self._running(pod, [_container_status(c, state, ready=True, started=True) for c in containers])

    def _waiting(self, pod: Document) -> Document:
        state = {"waiting": {"reason": "ContainerCreating"}}
        containers = [_container_status(c, state) for c in pod["spec"].get("containers") or ()]
        return self._status(pod, "Pending", containers, conditions={"Initialized": True}, with_address=False)

    def _running(self, pod: Document, containers: Sequence[Document]) -> Document:
        are_ready = all(c["ready"] for c in containers)
        gates = [gate.get("conditionType", "") for gate in pod["spec"].get("readinessGates") or ()]
        conditions = {
            "PodReadyToStartContainers": True,
            "Initialized": True,
            "Ready": are_ready and all(is_true(pod, gate) for gate in gates),
            "ContainersReady": are_ready,
        }
        return self._status(pod, "Running", containers, conditions=conditions)

    def _ended(self, pod: Document, *, failed: bool) -> Document:
        present = (pod.get("status") or {}).get("containerStatuses") or ()
        started = next((c["state"]["running"]["startedAt"] for c in present if c["state"].get("running")), None)
        terminated = {
            "exitCode": int(failed),
            "reason": "Error" if failed else "Completed",
            "startedAt": started or timestamp(self._now()),
            "finishedAt": timestamp(self._now()),
        }
        containers = [
            _container_status(c, {"terminated": terminated}, started=False) for c in pod["spec"]["containers"]
        ]
        conditions = {"PodReadyToStartContainers": False, "Initialized": True, "Ready": False, "ContainersReady": False}
        reason = "PodFailed" if failed else "PodCompleted"
        return self._status(pod, "Failed" if failed else "Succeeded", containers, conditions=conditions, why=reason)

    def _status(
        self,
        pod: Document,
        phase: str,
        containers: Sequence[Document],
        *,
        conditions: dict[str, bool],
        why: str = "ContainersNotReady",
        with_address: bool = True,
    ) -> Document:
        present = dict(pod.get("status") or {})
        host = NODE_ADDRESS
        status: Document = {
            **present,
            "phase": phase,
            "conditions": self._conditions(pod, conditions, why),
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "startTime": present.get("startTime") or timestamp(self._now()),
            "containerStatuses": list(containers),
        }
        if with_address:
            address = host if pod["spec"].get("hostNetwork") else self._address(pod)
            status.update({"podIP": address, "podIPs": [{"ip": address}]})
        done = self._init_statuses(pod)
        if done and with_address:
            status["initContainerStatuses"] = present.get("initContainerStatuses") or done
        return status

    def _init_statuses(self, pod: Document) -> list[Document]:
        moment = timestamp(self._now())
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": moment, "finishedAt": moment}}
        running = {"running": {"startedAt": moment}}
        return [
            _container_status(c, running, ready=True, started=True)
            if c.get("restartPolicy") == "Always"
            else _container_status(c, ended, ready=True, started=False)
            for c in pod["spec"].get("initContainers") or ()
        ]

    def _conditions(self, pod: Document, wanted: dict[str, bool], why: str) -> list[Document]:
        moment = timestamp(self._now())
        found = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
        for kind, is_met in {**wanted, "PodScheduled": True}.items():
            text, before = "True" if is_met else "False", condition(pod, kind)
            if before is None or before.get("status") != text:
                found[kind] = {"type": kind, "status": text, "lastTransitionTime": moment}
                if not is_met and kind in {"Ready", "ContainersReady"}:
                    found[kind]["reason"] = why
        order = {kind: place for place, kind in enumerate(_CONDITION_ORDER)}
        return sorted(found.values(), key=lambda c: order.get(c["type"], len(order)))

    def _address(self, pod: Document) -> str:
        uid = str(metadata(pod)["uid"])
        if uid not in self._addresses:
            used = set(self._addresses.values())
            address = ""
            while not address or address in used:
                self._last_address = self._last_address % 65_000 + 1
                number = _NETWORK + self._last_address
                address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
            self._addresses[uid] = address
        return self._addresses[uid]


def _outcome(pod: Document) -> str:
    chosen = (metadata(pod).get("annotations") or {}).get(OUTCOME_ANNOTATION)
    if chosen:
        return str(chosen)
    owner = controller_of(pod)
    return "succeed" if owner is not None and owner.get("kind") == "Job" else ""


def _container_status(
    container: Document, state: dict[str, Any], *, ready: bool = False, started: bool | None = None, restarts: int = 0
) -> Document:
    name, image = container["name"], container.get("image", "")
    is_created = "waiting" not in state
    return {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": f"simulated://{image}" if is_created else "",
        **({"containerID": f"simulated://{name}"} if is_created else {}),
        "started": bool(started),
    }
