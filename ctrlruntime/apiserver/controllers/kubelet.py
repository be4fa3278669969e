"""The kubelet of the simulation: a pod on a node becomes Running and Ready after a delay, and goes away when it is
deleted.

Annotations on the pod change its fate, see `apiserver.behaviour`. A status that a client wrote on a pod which the simulation did
not start is left alone.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ctrlruntime.apiserver.behaviour import Behaviour, behaviour_of
from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.nodes import NODE_ADDRESS, NODE_NAME
from ctrlruntime.apiserver.controllers.objects import (
    FINISHED,
    Now,
    condition,
    controller_of,
    is_deleting,
    is_true,
    key_of,
    metadata,
    own_key,
    parse_time,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.controllers.references import Missing, missing_in_environment, missing_in_volumes
from ctrlruntime.apiserver.go_values import go_duration
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.schema.trees import Document

_NETWORK: Final = 10 << 24 | 244 << 16
_CONDITION_ORDER: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_SCHEME: Final = "simulated://"
_KILLED: Final = 128 + 9
_DEADLINE_EXCEEDED: Final = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}
_PULL_ERROR: Final = 'failed to pull and unpack image "{0}": failed to resolve reference "{0}": {0}: not found'


class Kubelet:
    name = "kubelet"

    def __init__(self, *, ready_delay: float, now: Now, clock: Callable[[], float] = time.monotonic) -> None:
        self._ready_delay = ready_delay
        self._now = now
        self._clock = clock
        self._events = Recorder("kubelet", now, host=NODE_NAME)
        self._due: dict[str, tuple[str, float]] = {}
        self._addresses: dict[str, str] = {}
        self._last_address = 0
        self._awaited: dict[tuple[str, str, str], set[Key]] = {}
        """The Pods that wait for a ConfigMap or a Secret, by its resource, namespace and name."""

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def bound(change: Change) -> Iterable[Key]:
            """A node that registers finds the pods that were bound to it before."""
            if change.type == "ADDED":
                name = metadata(change.object)["name"]
                yield from (key_of(pod) for pod in api.list("", "pods") if pod["spec"].get("nodeName") == name)

        return [
            keys_of(api.watch("", "pods"), self._keys),
            keys_of(api.watch("", "nodes"), bound),
            *(keys_of(api.watch("", name), partial(self._awaiting, name)) for name in ("configmaps", "secrets")),
        ]

    def _awaiting(self, resource: str, change: Change) -> Iterable[Key]:
        return () if change.type == "DELETED" else self._awaited.pop((resource, *key_of(change.object)), ())

    def _keys(self, change: Change) -> Iterable[Key]:
        uid = str(metadata(change.object)["uid"])
        if change.type == "DELETED":
            self._due.pop(uid, None)
            self._addresses.pop(uid, None)
            for awaiting in self._awaited.values():
                awaiting.discard(key_of(change.object))
            return ()
        address = (change.object.get("status") or {}).get("podIP")
        if address:
            self._addresses[uid] = address
        return own_key(change)

    async def reconcile(self, api: API, key: Key) -> float | None:
        pod = api.get("", "pods", *key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        owner = controller_of(pod)
        behaviour = behaviour_of(pod, is_job=owner is not None and owner.get("kind") == "Job")
        if is_deleting(pod):  # also where no node is: in a cluster the collector of pods does that
            return await self._stop(api, pod, behaviour)
        if api.get("", "nodes", "", pod["spec"]["nodeName"]) is None:
            return None
        phase = (pod.get("status") or {}).get("phase")
        if phase in FINISHED:
            return None
        left = self._active_for(pod)
        if left is not None and left <= 0:
            await self._write(api, pod, {**self._ended(pod, _KILLED), **_DEADLINE_EXCEEDED})
            return None
        step = self._keep_running if phase == "Running" else self._start
        after = await step(api, pod, behaviour)
        return after if left is None else min(left, left if after is None else after)

    def _active_for(self, pod: Document) -> float | None:
        """Return the seconds until `activeDeadlineSeconds` are over, None without."""
        deadline, began = pod["spec"].get("activeDeadlineSeconds"), (pod.get("status") or {}).get("startTime")
        if deadline is None:
            return None
        now = self._now()
        return float(deadline) - (now - (parse_time(began) or now)).total_seconds()

    def _left(self, pod: Document, stage: str, seconds: float) -> float:
        """Return the seconds until a stage of the pod is over; the first question about a stage begins it."""
        uid = str(metadata(pod)["uid"])
        if self._due.get(uid, ("",))[0] != stage:
            self._due[uid] = (stage, self._clock() + seconds)
        return self._due[uid][1] - self._clock()

    async def _stop(self, api: API, pod: Document, behaviour: Behaviour) -> float | None:
        namespace, name = metadata(pod)["namespace"], metadata(pod)["name"]
        grace = float(metadata(pod).get("deletionGracePeriodSeconds") or 0)
        left = self._left(pod, f"stopping within {grace}", min(behaviour.terminate_after, grace))
        if left > 0:
            return left
        if grace or not metadata(pod).get("finalizers"):
            await api.delete("", "pods", namespace, name, uid=metadata(pod)["uid"], grace_period_seconds=0)
        return None

    # Starting

    async def _start(self, api: API, pod: Document, behaviour: Behaviour) -> float | None:
        delay = self._ready_delay if behaviour.ready_after is None else behaviour.ready_after
        left = self._left(pod, "starting", delay)
        if left > 0 or behaviour.outcome == "pending":
            await self._write(api, pod, self._waiting(pod, lambda _: {"reason": "ContainerCreating"}))
            return left if left > 0 else None
        if behaviour.outcome == "image-pull-error":
            return await self._fail_to_pull(api, pod)
        if await self._misses(api, pod, behaviour):
            return None
        await self._write(api, pod, self._running(pod, self._run_all(pod, behaviour)))
        return 0.0 if behaviour.ends_with is not None else None

    async def _misses(self, api: API, pod: Document, behaviour: Behaviour) -> bool:
        """Report ConfigMaps and Secrets that are not there; the Pod is looked at again when they are."""
        unmounted = list(missing_in_volumes(api, pod))
        containers = [] if unmounted else [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
        unset = {c["name"]: found for c in containers if (found := missing_in_environment(api, pod, c)) is not None}
        if not unmounted and not unset:
            return False
        fresh = [missing for missing in (*unmounted, *unset.values()) if self._await(pod, missing)]
        if unmounted:
            reason, head, status = "FailedMount", "", self._waiting(pod, lambda _: {"reason": "ContainerCreating"})
        else:
            reason, head, status = "Failed", "Error: ", self._unconfigured(pod, behaviour, unset)
        await self._write(api, pod, status)
        for missing in fresh:
            await self._events.warning(api, pod, reason, head + missing.text)
        return True

    async def _fail_to_pull(self, api: API, pod: Document) -> float | None:
        """Report an image that is not there: first the error, then the backoff from it."""
        statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
        image = pod["spec"]["containers"][0].get("image", "")
        match (statuses[0].get("state") or {}).get("waiting", {}).get("reason"):
            case "ImagePullBackOff":
                return None
            case "ErrImagePull":
                reason, before = "ImagePullBackOff", 'Back-off pulling image "{0}": ErrImagePull: '
                await self._events.normal(api, pod, "BackOff", f'Back-off pulling image "{image}"')
            case _:
                reason, before = "ErrImagePull", ""
                await self._events.warning(
                    api, pod, "Failed", f'Failed to pull image "{image}": {_PULL_ERROR.format(image)}'
                )
                await self._events.warning(api, pod, "Failed", "Error: ErrImagePull")

        def state(container: Document) -> Document:
            return {"reason": reason, "message": (before + _PULL_ERROR).format(container.get("image", ""))}

        await self._write(api, pod, self._waiting(pod, state))
        return None

    def _await(self, pod: Document, missing: Missing) -> bool:
        """Remember what a Pod waits for; tell whether this is new."""
        key = (missing.resource, str(metadata(pod)["namespace"]), missing.name)
        awaiting = self._awaited.setdefault(key, set())
        is_new = key_of(pod) not in awaiting
        awaiting.add(key_of(pod))
        return is_new

    # Running

    async def _keep_running(self, api: API, pod: Document, behaviour: Behaviour) -> float | None:
        """Change a running pod when its containers end, are restarted, get well, or its readiness gates open."""
        present: list[Document] = (pod.get("status") or {}).get("containerStatuses") or []
        if not any(str(status.get("containerID", "")).startswith(_SCHEME) for status in present):
            return None  # not started by this simulation: a client wrote this status
        if behaviour.ends_with is None:
            wanted = behaviour.outcome != "never-ready"
            is_stale = pod["status"].get("observedGeneration") != metadata(pod).get("generation")
            is_other = any(status["ready"] != wanted for status in present)
            if is_stale or is_other or pod["spec"].get("readinessGates"):
                await self._write(api, pod, self._running(pod, self._run_all(pod, behaviour)))
            return None
        if any((status.get("state") or {}).get("waiting") for status in present):
            left = self._left(pod, f"restart {_restarts(pod)}", behaviour.back_off(_restarts(pod)))
            if left > 0:
                return left
            if behaviour.run_for:
                await self._write(api, pod, self._running(pod, self._run_all(pod, behaviour, more=1)))
                return 0.0
            return await self._crash(api, pod, behaviour, _restarts(pod) + 1)
        left = self._left(pod, f"run {_restarts(pod)}", behaviour.run_for)
        if left > 0:
            return left
        if behaviour.restarts(pod["spec"].get("restartPolicy", "Always")):
            return await self._crash(api, pod, behaviour, max(1, _restarts(pod)))
        await self._write(api, pod, self._ended(pod, behaviour.ends_with))
        return None

    async def _crash(self, api: API, pod: Document, behaviour: Behaviour, restarts: int) -> float:
        """Let the containers end, and wait with the next restart."""
        delay, meta = behaviour.back_off(restarts), metadata(pod)
        moment, code = timestamp(self._now()), behaviour.ends_with or 0
        last = {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": moment, "finishedAt": moment}
        where = f"pod={meta['name']}_{meta['namespace']}({meta['uid']})"
        statuses = [
            _container_status(
                container,
                {
                    "waiting": {
                        "reason": "CrashLoopBackOff",
                        "message": f"backoff {go_duration(delay)} restarting failed container={container['name']} {where}",
                    }
                },
                last={"terminated": {**last, "containerID": f"{_SCHEME}{container['name']}"}},
                restarts=restarts,
            )
            for container in pod["spec"]["containers"]
        ]
        await self._write(api, pod, self._running(pod, statuses))
        name = pod["spec"]["containers"][0]["name"]
        text = f"Back-off restarting failed container {name} in pod {meta['name']}_{meta['namespace']}({meta['uid']})"
        await self._events.warning(api, pod, "BackOff", text)
        return self._left(pod, f"restart {restarts}", delay)

    async def _write(self, api: API, pod: Document, status: Document) -> None:
        await write_status(api, "", "pods", pod, status)

    # Statuses

    def _run_all(self, pod: Document, behaviour: Behaviour, *, more: int = 0) -> list[Document]:
        """Return running containers; one that runs already keeps when it began."""
        before = {s["name"]: s for s in (pod.get("status") or {}).get("containerStatuses") or ()}
        fresh = {"running": {"startedAt": timestamp(self._now())}}
        is_ready = behaviour.outcome == "ready"
        found: list[Document] = []
        for container in pod["spec"]["containers"]:
            present = before.get(container["name"], {})
            state = present.get("state") or {}
            found.append(
                _container_status(
                    container,
                    state if state.get("running") else fresh,
                    last=present.get("lastState"),
                    ready=is_ready,
                    started=True,
                    restarts=int(present.get("restartCount", 0)) + more,
                )
            )
        return found

    def _waiting(self, pod: Document, state: Callable[[Document], Document]) -> Document:
        containers = [_container_status(c, {"waiting": state(c)}) for c in pod["spec"].get("containers") or ()]
        conditions = {
            "PodReadyToStartContainers": True,
            "Initialized": True,
            "Ready": False,
            "ContainersReady": False,
        }
        if any(c["state"]["waiting"]["reason"] == "ContainerCreating" for c in containers):
            conditions["PodReadyToStartContainers"] = False
        return self._status(pod, "Pending", containers, conditions=conditions, with_address=False)

    def _unconfigured(self, pod: Document, behaviour: Behaviour, unset: Mapping[str, Missing]) -> Document:
        """Return the status of a Pod with containers that cannot be created; the others run, after the init containers."""

        def waiting(container: Document) -> Document:
            return {"waiting": {"reason": "CreateContainerConfigError", "message": unset[container["name"]].text}}

        before = pod["spec"].get("initContainers") or []
        blocked = next((at for at, container in enumerate(before) if container["name"] in unset), None)
        if blocked is None:
            running = {status["name"]: status for status in self._run_all(pod, behaviour)}
            containers = [
                _container_status(c, waiting(c)) if c["name"] in unset else running[c["name"]]
                for c in pod["spec"]["containers"]
            ]
        else:
            initializing = {"waiting": {"reason": "PodInitializing"}}
            containers = [_container_status(c, initializing) for c in pod["spec"]["containers"]]
        conditions = {
            "PodReadyToStartContainers": True,
            "Initialized": blocked is None,
            "Ready": False,
            "ContainersReady": False,
        }
        status = self._status(pod, "Pending", containers, conditions=conditions)
        if blocked is not None:
            done = self._init_statuses(pod)[:blocked]
            left = [
                waiting(before[blocked]),
                *({"waiting": {"reason": "PodInitializing"}} for _ in before[blocked + 1 :]),
            ]
            status["initContainerStatuses"] = [
                *done,
                *(_container_status(c, state) for c, state in zip(before[blocked:], left, strict=True)),
            ]
        return status

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

    def _ended(self, pod: Document, code: int) -> Document:
        present = (pod.get("status") or {}).get("containerStatuses") or ()
        started = next((c["state"]["running"]["startedAt"] for c in present if c["state"].get("running")), None)
        terminated = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": started or timestamp(self._now()),
            "finishedAt": timestamp(self._now()),
        }
        containers = [
            _container_status(
                container,
                {"terminated": {**terminated, "containerID": f"{_SCHEME}{container['name']}"}},
                started=False,
                restarts=_restarts(pod),
            )
            for container in pod["spec"]["containers"]
        ]
        conditions = {"PodReadyToStartContainers": False, "Initialized": True, "Ready": False, "ContainersReady": False}
        reason = "PodFailed" if code else "PodCompleted"
        return self._status(pod, "Failed" if code else "Succeeded", containers, conditions=conditions, why=reason)

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
        unready = " ".join(c["name"] for c in containers if not c["ready"])
        text = f"containers with unready status: [{unready}]" if why == "ContainersNotReady" and unready else ""
        status: Document = {
            **present,
            "observedGeneration": metadata(pod).get("generation"),
            "phase": phase,
            "conditions": self._conditions(pod, conditions, why, text),
            "hostIP": host,
            "hostIPs": [{"ip": host}],
            "startTime": present.get("startTime") or timestamp(self._now()),
            "containerStatuses": list(containers),
        }
        if with_address:
            address = host if pod["spec"].get("hostNetwork") else self._address(pod)
            status.update({"podIP": address, "podIPs": [{"ip": address}]})
        if with_address:
            done = present.get("initContainerStatuses") or ()
            is_done = bool(done) and all("waiting" not in one["state"] for one in done)
            status["initContainerStatuses"] = done if is_done else self._init_statuses(pod)
            status["ephemeralContainerStatuses"] = self._ephemeral_statuses(pod)
        return {name: value for name, value in status.items() if value not in (None, [])}

    def _ephemeral_statuses(self, pod: Document) -> list[Document]:
        """Return what `kubectl debug` added, running; it is never ready."""
        present = {s["name"]: s for s in (pod.get("status") or {}).get("ephemeralContainerStatuses") or ()}
        running = {"running": {"startedAt": timestamp(self._now())}}
        return [
            present.get(container["name"]) or _container_status(container, running)
            for container in pod["spec"].get("ephemeralContainers") or ()
        ]

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

    def _conditions(self, pod: Document, wanted: dict[str, bool], why: str, message: str) -> list[Document]:
        moment = timestamp(self._now())
        found = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
        for kind, is_met in {**wanted, "PodScheduled": True}.items():
            text, before = "True" if is_met else "False", condition(pod, kind)
            if before is None or before.get("status") != text:
                found[kind] = {"type": kind, "status": text, "lastProbeTime": None, "lastTransitionTime": moment}
                if not is_met and kind in {"Ready", "ContainersReady"}:
                    found[kind]["reason"] = why
                    if message:
                        found[kind]["message"] = message
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


def _restarts(pod: Document) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or [{}]
    return int(statuses[0].get("restartCount", 0))


def _container_status(
    container: Document,
    state: dict[str, Any],
    *,
    last: Document | None = None,
    ready: bool = False,
    started: bool | None = None,
    restarts: int = 0,
) -> Document:
    name, image = container["name"], container.get("image", "")
    is_created = "waiting" not in state or bool(last)
    return {
        "name": name,
        "state": state,
        "lastState": last or {},
        "ready": ready,
        "restartCount": restarts,
        "image": image,
        "imageID": f"{_SCHEME}{image}" if is_created else "",
        **({"containerID": f"{_SCHEME}{name}"} if is_created else {}),
        "started": bool(started),
        **(_granted(container.get("resources") or {}) if "running" in state else {}),
    }


def _granted(resources: Document) -> Document:
    """Return the resources that a running container has: at once those of its spec, also after a resize.

    They are there even when there are none: by them the API server sees that a Pod can be resized.
    """
    kept = {side: resources[side] for side in ("limits", "requests") if resources.get(side)}
    return {**({"allocatedResources": kept["requests"]} if "requests" in kept else {}), "resources": kept}
