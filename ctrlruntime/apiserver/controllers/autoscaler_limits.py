"""How fast and how far an autoscaler may go: bounds, stabilization windows and scaling policies.

As kube-controller-manager's pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ctrlruntime.schema.trees import Document

_DOWN_WINDOW: Final = 300
"""Seconds (--horizontal-pod-autoscaler-downscale-stabilization)."""
_GREATEST_STEP: Final = 2
_SMALLEST_LIMIT: Final = 4
"""Without a behavior the replicas may double, or become four."""
_UP: Final[Document] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Final[Document] = {
    "stabilizationWindowSeconds": _DOWN_WINDOW,
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_IN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST: Final = {
    True: ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"),
    False: ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"),
}
_STABILIZED: Final = {
    True: (
        "ScaleUpStabilized",
        "recent recommendations were lower than current one, applying the lowest recent recommendation",
    ),
    False: (
        "ScaleDownStabilized",
        "recent recommendations were higher than current one, applying the highest recent recommendation",
    ),
}
_READY: Final = ("ReadyForNewScale", "recommended size matches current size")


@dataclass(slots=True)
class History:
    """What an autoscaler has recommended and done: counts with the time when each was last recommended, and the changes."""

    recommended: dict[int, datetime] = field(default_factory=dict[int, datetime])
    ups: list[tuple[int, datetime]] = field(default_factory=list[tuple[int, datetime]])
    downs: list[tuple[int, datetime]] = field(default_factory=list[tuple[int, datetime]])

    def begin(self, current: int, now: datetime) -> None:
        """Take the replicas that are there for a first recommendation."""
        if not self.recommended:
            self.recommended[current] = now

    def note(self, before: int, after: int, behavior: Document | None, now: datetime) -> None:
        """Remember a change for the policies; without a behavior it is not needed."""
        if behavior is None:
            return
        changes, rules = (self.ups, _up(behavior)) if after > before else (self.downs, _down(behavior))
        longest = timedelta(seconds=max((int(policy["periodSeconds"]) for policy in rules["policies"]), default=0))
        changes[:] = [(count, moment) for count, moment in changes if moment >= now - longest]
        changes.append((abs(after - before), now))


@dataclass(frozen=True, slots=True)
class Decision:
    """The replicas to have, what holds back more or fewer, and the seconds after which that may be over."""

    replicas: int
    able: tuple[str, str]
    """Reason and message of the condition AbleToScale."""
    limited: tuple[str, str]
    """Reason and message of the condition ScalingLimited."""
    is_limited: bool
    again: float | None = None


def decide(
    history: History, behavior: Document | None, current: int, desired: int, least: int, most: int, now: datetime
) -> Decision:
    """Return the replicas that may be had now of those that the metrics ask for; the recommendation is remembered."""
    if behavior is None:
        return _plainly(history, current, desired, least, most, now)
    up, down = _up(behavior), _down(behavior)
    windows = int(up["stabilizationWindowSeconds"]), int(down["stabilizationWindowSeconds"])
    stable = _stabilized(history, windows, current, desired, now)
    able = _READY if stable == desired else _STABILIZED[desired >= current]
    waits = _expiries(history.recommended.values(), windows, now) if stable != desired else []
    replicas, reason = stable, _IN_RANGE
    if stable > current:
        limit = max(current, _limit(current, history, up, now, is_up=True))
        bound, why = (limit, _TOO_FAST[True]) if most > limit else (most, _TOO_MANY)
        if stable > bound:
            replicas, reason = bound, why
    elif stable < current:
        limit = min(current, _limit(current, history, down, now, is_up=False))
        bound, why = (limit, _TOO_FAST[False]) if least < limit else (least, _TOO_FEW)
        if stable < bound:
            replicas, reason = bound, why
    if reason in _TOO_FAST.values():
        periods = [int(policy["periodSeconds"]) for policy in (up if stable > current else down)["policies"]]
        waits += _expiries((moment for _, moment in (*history.ups, *history.downs)), periods, now)
    return Decision(replicas, able, reason, replicas != stable, min(waits, default=None))


def _plainly(history: History, current: int, desired: int, least: int, most: int, now: datetime) -> Decision:
    """Decide without a behavior (normalizeDesiredReplicas): only the way down is stabilized."""
    window = timedelta(seconds=_DOWN_WINDOW)
    recent = {count: moment for count, moment in history.recommended.items() if moment >= now - window}
    stable = max([desired, *recent])
    history.recommended = recent | {desired: now}
    waits = _expiries(recent.values(), [_DOWN_WINDOW], now) if stable != desired else []
    limit = max(_GREATEST_STEP * current, _SMALLEST_LIMIT)
    bound, why = (limit, _TOO_FAST[True]) if most > limit else (most, _TOO_MANY)
    able = _READY if stable == desired else _STABILIZED[False]
    replicas, reason = stable, _IN_RANGE
    if stable < least:
        replicas, reason = least, _TOO_FEW
    elif stable > bound:
        replicas, reason = bound, why
    return Decision(replicas, able, reason, replicas != stable, min(waits, default=None))


def _stabilized(history: History, windows: tuple[int, int], current: int, desired: int, now: datetime) -> int:
    """Return the recommendation that all of the windows up and down agree to (stabilizeRecommendationWithBehaviors)."""
    up, down = (
        [count for count, moment in history.recommended.items() if moment > now - timedelta(seconds=seconds)]
        for seconds in windows
    )
    found = min(max(current, min([desired, *up])), max([desired, *down]))
    oldest = now - timedelta(seconds=max(windows))
    history.recommended = {count: moment for count, moment in history.recommended.items() if moment >= oldest}
    history.recommended[desired] = now
    return found


def _limit(current: int, history: History, rules: Document, now: datetime, *, is_up: bool) -> int:
    """Return how far the policies let the replicas go (calculateScaleUpLimitWithScalingRules, …ScaleDownLimitWithBehaviors)."""
    if rules["selectPolicy"] == "Disabled":
        return current
    limits = list(_limits(current, history, rules["policies"], now, is_up=is_up))
    choose: Callable[[Iterable[int]], int] = max if (rules["selectPolicy"] == "Min") != is_up else min
    return choose(limits) if limits else current


def _limits(
    current: int, history: History, policies: Iterable[Document], now: datetime, *, is_up: bool
) -> Iterator[int]:
    sign = 1 if is_up else -1
    for policy in policies:
        period, value = int(policy["periodSeconds"]), int(policy["value"])
        start = current - _changed(history.ups, period, now) + _changed(history.downs, period, now)
        if policy["type"] == "Pods":
            yield start + sign * value
        elif is_up:  # rounded up: a change of less than one would never be one
            yield math.ceil(start * (1 + value / 100))
        else:
            yield int(start * (1 - value / 100))


def _changed(changes: Iterable[tuple[int, datetime]], period: int, now: datetime) -> int:
    return sum(count for count, moment in changes if moment > now - timedelta(seconds=period))


def _expiries(moments: Iterable[datetime], seconds: Iterable[int], now: datetime) -> list[float]:
    """Return in how many seconds each of these times is out of each window that it is in."""
    windows = list(seconds)
    left = [(moment - now).total_seconds() + window for moment in moments for window in windows]
    return [each + _MARGIN for each in left if each >= 0]


_MARGIN: Final = 0.01
"""Seconds: a window is over when something is older than it."""


def _up(behavior: Document) -> Document:
    return {**_UP, **(behavior.get("scaleUp") or {})}


def _down(behavior: Document) -> Document:
    return {**_DOWN, **(behavior.get("scaleDown") or {})}


__all__ = ["Decision", "History", "decide"]
