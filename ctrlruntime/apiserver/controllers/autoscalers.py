"""HorizontalPodAutoscalers: the replicas of whatever has a scale follow what its Pods use.

As kube-controller-manager's pkg/controller/podautoscaler/horizontal.go. That looks at an autoscaler every 15 seconds; here a change of its
target or of a Pod is answered at once. What Pods use is said by their annotations (`apiserver.usage`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from ctrlruntime.apiserver.controllers.autoscaler_limits import Decision, History, decide
from ctrlruntime.apiserver.controllers.autoscaler_metrics import Metrics, Reading
from ctrlruntime.apiserver.controllers.autoscaler_replicas import MetricError, Tolerances
from ctrlruntime.apiserver.controllers.events import Recorder
from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import (
    Now,
    is_deleting,
    key_of,
    labels_of,
    metadata,
    own_key,
    timestamp,
    write_status,
)
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import APIStatusError, Conflict
from ctrlruntime.quantities import parse
from ctrlruntime.schema.trees import Document, copy_tree
from ctrlruntime.selector import LabelSelector, parse_labels

_SERVED: Final = ("autoscaling", "horizontalpodautoscalers")
_TARGETS: Final = (("apps", "deployments"), ("apps", "replicasets"), ("apps", "statefulsets"))
_RESYNC: Final = 15.0
"""Seconds after which an autoscaler is looked at again: the scales of custom resources are not watched."""
_GOT_SCALE: Final = ("SucceededGetScale", "the HPA controller was able to get the target's current scale")
_DISABLED: Final = ("ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
_NO_SELECTOR: Final = ("InvalidSelector", "the HPA target's scale is missing a selector")


class _FailureError(Exception):
    """No metric says how many replicas there should be; the condition is set already."""


@dataclass(slots=True)
class _Memory:
    """What is known of one autoscaler beyond its object."""

    history: History = field(default_factory=History)
    selector: LabelSelector | None = None
    told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The failures of the last look: each is an Event when it begins, and not at every look."""


class _Look:
    """One look at an autoscaler: its status as it becomes, and what went wrong."""

    def __init__(self, autoscaler: Document, now: datetime) -> None:
        self.autoscaler = autoscaler
        self.spec: Document = autoscaler["spec"]
        self.status: Document = copy_tree(autoscaler.get("status") or {})
        self.failures: list[tuple[str, str]] = []
        self._moment = timestamp(now)

    def condition(self, kind: str, status: bool, reason: str, message: str) -> None:
        """Set a condition; its time is that of the last change of its status (setConditionInList)."""
        conditions: list[Document] = self.status.setdefault("conditions", [])
        found = next((one for one in conditions if one["type"] == kind), None)
        if found is None:
            found = {"type": kind}
            conditions.append(found)
        text = str(status)
        if found.get("status") != text:
            found["lastTransitionTime"] = self._moment
        found.update({"status": text, "reason": reason, "message": message})

    def count(self, current: int, desired: int, metrics: Sequence[Document] | None, *, is_rescaled: bool) -> None:
        """Put the numbers into the status; the generation is not among them (setStatus)."""
        kept: Document = {name: self.status[name] for name in ("lastScaleTime", "conditions") if name in self.status}
        if is_rescaled:
            kept["lastScaleTime"] = self._moment
        counts: Document = {"currentReplicas": current} if current else {}
        shown = list(metrics) if metrics else None
        self.status = {**kept, **counts, "desiredReplicas": desired, "currentMetrics": shown}


class Autoscalers:
    """Keeps the targets of all HorizontalPodAutoscalers."""

    name = "horizontalpodautoscaler"

    def __init__(self, now: Now) -> None:
        self._now = now
        self._events = Recorder("horizontal-pod-autoscaler", now)
        self._memories: defaultdict[Key, _Memory] = defaultdict(_Memory)
        self._known: defaultdict[str, set[Key]] = defaultdict(set)
        """The keys by namespace: in one without autoscalers nothing is looked at."""

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        return [
            keys_of(api.watch(*_SERVED), self._own),
            keys_of(api.watch("", "pods"), self._neighbours),
            *(keys_of(api.watch(*served), self._neighbours) for served in _TARGETS),
        ]

    def _own(self, change: Change) -> Iterable[Key]:
        key = key_of(change.object)
        if change.type != "DELETED":
            self._known[key[0]].add(key)
        elif key in self._known.get(key[0], ()):
            self._known[key[0]].discard(key)
        return own_key(change)

    def _neighbours(self, change: Change) -> Iterable[Key]:
        return list(self._known.get(str(metadata(change.object).get("namespace", "")), ()))

    async def reconcile(self, api: API, key: Key) -> float | None:
        autoscaler = api.get(*_SERVED, *key)
        if autoscaler is None:
            self._memories.pop(key, None)
            return None
        if is_deleting(autoscaler):
            return None
        memory, now = self._memories[key], self._now()
        look = _Look(autoscaler, now)
        after = await self._look(api, key, look, memory, now)
        await self._write_status(api, key, look)
        for reason, message in look.failures:
            if (reason, message) not in memory.told:
                await self._events.warning(api, autoscaler, reason, message)
        memory.told = set(look.failures)
        return after

    async def _look(self, api: API, key: Key, look: _Look, memory: _Memory, now: datetime) -> float:
        """Scale the target if need be; return the seconds after which to look again (reconcileAutoscaler)."""
        try:
            served, scale = _scale_of(api, key[0], look.spec["scaleTargetRef"])
        except APIStatusError as error:
            text = error.message
            look.failures.append(("FailedGetScale", text))
            prefix = "the HPA controller was unable to get the target's current scale"
            look.condition("AbleToScale", False, "FailedGetScale", f"{prefix}: {text}")
            return _RESYNC
        look.condition("AbleToScale", True, *_GOT_SCALE)
        current, most = int(scale["spec"].get("replicas", 0)), int(look.spec["maxReplicas"])
        least = int(look.spec.get("minReplicas", 1))
        memory.history.begin(current, now)
        readings: Sequence[Document] | None = None
        after, why = _RESYNC, ""
        if not current:
            desired = 0
            look.condition("ScalingActive", False, *_DISABLED)
        elif current > most:
            desired, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            desired, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            try:
                wanted, metric, readings = self._wanted(api, key, look, scale, memory, now)
            except _FailureError as failure:
                shown = failure.args[1]
                look.count(current, int(look.status.get("desiredReplicas", 0)), shown, is_rescaled=False)
                look.failures.append(("FailedComputeMetricsReplicas", str(failure.args[0])))
                return _RESYNC
            why = f"{metric} above target" if wanted > current else "All metrics below target"
            decision = decide(memory.history, look.spec.get("behavior"), current, wanted, least, most, now)
            desired, after = decision.replicas, _after(decision)
            look.condition("AbleToScale", True, *decision.able)
            look.condition("ScalingLimited", decision.is_limited, *decision.limited)
        is_rescaled = desired != current
        if is_rescaled and not await self._rescale(api, look, served, (current, desired), why):
            look.count(current, int(look.status.get("desiredReplicas", 0)), readings, is_rescaled=False)
            return _RESYNC
        if is_rescaled:
            memory.history.note(current, desired, look.spec.get("behavior"), now)
        look.count(current, desired, readings, is_rescaled=is_rescaled)
        return after

    async def _rescale(self, api: API, look: _Look, served: tuple[str, str], counts: tuple[int, int], why: str) -> bool:
        key, desired = key_of(look.autoscaler), counts[1]
        try:
            await api.set_scale(*served, key[0], str(look.spec["scaleTargetRef"]["name"]), desired)
        except APIStatusError as error:
            look.failures.append(("FailedRescale", f"New size: {desired}; reason: {why}; error: {error.message}"))
            text = f"the HPA controller was unable to update the target scale: {error.message}"
            look.condition("AbleToScale", False, "FailedUpdateScale", text)
            return False
        text = f"the HPA controller was able to update the target scale to {desired}"
        look.condition("AbleToScale", True, "SucceededRescale", text)
        await self._events.normal(api, look.autoscaler, "SuccessfulRescale", f"New size: {desired}; reason: {why}")
        return True

    def _wanted(
        self, api: API, key: Key, look: _Look, scale: Document, memory: _Memory, now: datetime
    ) -> tuple[int, str, Sequence[Document]]:
        """Return the most that a metric asks for, that metric, and what the status shows of all (computeReplicasForMetrics).

        Raises: _FailureError when no metric can be read, or one that cannot be might ask for more.
        """
        selector = self._selector(api, key, look, scale, memory)
        pods = [pod for pod in api.list("", "pods", key[0]) if selector.matches(labels_of(pod))]
        current, tolerances = int(scale["spec"].get("replicas", 0)), _tolerances(look.spec.get("behavior"))
        read_from = Metrics(api, key[0], selector, pods, current, tolerances, now)
        best: Reading | None = None
        shown: list[Document] = []
        failed: list[tuple[str, str, str]] = []
        metrics: list[Document] = look.spec.get("metrics") or []
        for metric in metrics:
            try:
                reading = read_from.read(metric)
            except MetricError as error:
                reason, inner, outer = error.args
                look.failures.append((reason, inner))
                failed.append((reason, inner, outer))
                shown.append({"type": ""})
                continue
            shown.append(reading.shown)
            if best is None or reading.replicas > best.replicas:
                best = reading
        if best is None or (failed and best.replicas < current):
            reason, inner, outer = failed[0]
            look.condition("ScalingActive", False, reason, f"the HPA was unable to compute the replica count: {inner}")
            count = f"{len(failed)} invalid out of {len(metrics)}"
            raise _FailureError(f"invalid metrics ({count}), first error is: {outer}", shown)
        text = f"the HPA was able to successfully calculate a replica count from {best.name}"
        look.condition("ScalingActive", True, "ValidMetricFound", text)
        return best.replicas, best.name, shown

    def _selector(self, api: API, key: Key, look: _Look, scale: Document, memory: _Memory) -> LabelSelector:
        """Return the selector of the target's Pods (validateAndParseSelector). Raises: _FailureError."""
        text = str(scale["status"].get("selector", ""))
        if not text:
            look.failures.append(("SelectorRequired", "selector is required"))
            look.condition("ScalingActive", False, *_NO_SELECTOR)
            raise _FailureError("selector is required", None)
        try:
            memory.selector = selector = parse_labels(text)
        except ValueError as error:
            problem = f"couldn't convert selector into a corresponding internal selector object: {error}"
            look.failures.append(("InvalidSelector", problem))
            look.condition("ScalingActive", False, "InvalidSelector", problem)
            raise _FailureError(problem, None) from None
        rivals = [other for other in sorted(self._known[key[0]]) if self._shares(api, other, selector)]
        if len(rivals) > 1:
            names = " ".join(f"{{{name} {namespace}}}" for namespace, name in rivals)
            problem = f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            look.failures.append(("AmbiguousSelector", problem))
            look.condition("ScalingActive", False, "AmbiguousSelector", problem)
            raise _FailureError(problem, None)
        return selector

    def _shares(self, api: API, other: Key, selector: LabelSelector) -> bool:
        """Tell whether another autoscaler picks one of the Pods that a selector picks."""
        theirs = self._memories[other].selector if other in self._memories else None
        if theirs is None or theirs is selector:
            return theirs is selector
        labels = map(labels_of, api.list("", "pods", other[0]))
        return any(selector.matches(each) and theirs.matches(each) for each in labels)

    async def _write_status(self, api: API, key: Key, look: _Look) -> None:
        """Write the status, over what others have written since."""
        autoscaler: Document | None = look.autoscaler
        while autoscaler is not None:
            try:
                await write_status(api, *_SERVED, autoscaler, look.status)
            except Conflict:
                autoscaler = api.get(*_SERVED, *key)
            else:
                return


def _scale_of(api: API, namespace: str, target: Document) -> tuple[tuple[str, str], Document]:
    """Return group and plural of a target, and its Scale. Raises: APIStatusError."""
    group, kind = str(target.get("apiVersion", "")).rpartition("/")[0], str(target["kind"])
    plural = api.plural_of(group, kind)
    if plural is None:
        raise APIStatusError(f'no matches for kind "{kind}" in group "{group}"')
    return (group, plural), api.scale(group, plural, namespace, str(target["name"]))


def _tolerances(behavior: Document | None) -> Tolerances:
    given: dict[str, float] = {}
    for name in ("scaleDown", "scaleUp"):
        value: Any = ((behavior or {}).get(name) or {}).get("tolerance")
        if value is not None:
            given[name.removeprefix("scale").lower()] = float(Decimal(parse(value)))
    return Tolerances(**given)


def _after(decision: Decision) -> float:
    return _RESYNC if decision.again is None else min(_RESYNC, decision.again)
