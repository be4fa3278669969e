"""Rate limiters: the delays before a failed key is retried.

The queue calls `when` for each rate-limited add.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Generic, Protocol, cast

from typing_extensions import TypeVar

from ctrlruntime.log import get_logger
from ctrlruntime.reconcile import Request

R = TypeVar("R", default=Request)
R_contra = TypeVar("R_contra", contravariant=True, default=Request)


_log = get_logger("workqueue")


class RateLimiter(Protocol[R_contra]):
    """The delays of failed keys.

    Use one instance for each queue, on its event loop. No method may block.
    """

    def when(self, key: R_contra, /) -> float:
        """Count a failure of the key, and return the seconds until its retry."""
        ...

    def forget(self, key: R_contra, /) -> None:
        """Reset the failures of the key, because it succeeded or is not retried."""
        ...

    def num_requeues(self, key: R_contra, /) -> int:
        """Return the failures of the key since it was last forgotten."""
        ...


class Guarded(Generic[R]):
    """Wraps a user's rate limiter: logs and counts its errors, and uses the default backoff for the key then.

    A delay that is not a number, below 0 or infinite counts as an error too. `failed` is called for each.
    """

    def __init__(self, limiter: RateLimiter[R], failed: Callable[[], None]) -> None:
        self._limiter = limiter
        self._failed = failed
        self._default: ItemExponentialFailureRateLimiter[R] = ItemExponentialFailureRateLimiter()
        self._logged = ""

    def when(self, key: R, /) -> float:
        try:
            delay = cast("object", self._limiter.when(key))
            if isinstance(delay, (int, float)) and 0 <= delay < math.inf:
                return delay
            raise ValueError(f"the delay is {delay!r}: return seconds, 0 or more")
        except Exception as error:  # noqa: BLE001 - user code must not end a worker
            self._report(error)
            return self._default.when(key)

    def forget(self, key: R, /) -> None:
        self._default.forget(key)
        try:
            self._limiter.forget(key)
        except Exception as error:  # noqa: BLE001 - as above
            self._report(error)

    def num_requeues(self, key: R, /) -> int:
        try:
            return self._limiter.num_requeues(key)
        except Exception as error:  # noqa: BLE001 - as above
            self._report(error)
            return self._default.num_requeues(key)

    def _report(self, error: Exception) -> None:
        self._failed()
        # Once for each kind of failure: it may come with each request.
        if (kind := f"{type(error).__name__}: {error}") != self._logged:
            self._logged = kind
            _log.error("rate limiter failed, using the default backoff", limiter=repr(self._limiter), exc_info=error)


class ItemExponentialFailureRateLimiter(Generic[R]):
    """Doubles the delay of a key with each failure.

    It waits `base` seconds after the first failure, twice as long after each further one, and at most `cap`.

    Raises: ValueError if base is not above 0, or cap is below base.
    """

    __slots__ = ("_base", "_cap", "_failures")

    def __init__(self, base: float = 0.005, cap: float = 1000.0) -> None:
        if base <= 0 or cap < base:
            raise ValueError(f"backoff from {base} s to {cap} s: base must be above 0, and cap not below base")
        self._base = base
        self._cap = cap
        self._failures: dict[R, int] = {}

    def when(self, key: R, /) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # A float overflows beyond 2^1023; whatever the base, the cap is reached long before.
        return min(self._cap, self._base * 2.0 ** min(failures, 1000))

    def forget(self, key: R, /) -> None:
        self._failures.pop(key, None)

    def num_requeues(self, key: R, /) -> int:
        # Mostly nothing has failed: then the key need not be hashed.
        return self._failures.get(key, 0) if self._failures else 0


class ItemFastSlowRateLimiter(Generic[R]):
    """Waits `fast` seconds after the first failures of a key, then `slow`.

    The first `max_fast_attempts` failures are fast.
    """

    __slots__ = ("_failures", "_fast", "_max_fast_attempts", "_slow")

    def __init__(self, fast: float, slow: float, max_fast_attempts: int) -> None:
        self._fast = fast
        self._slow = slow
        self._max_fast_attempts = max_fast_attempts
        self._failures: dict[R, int] = {}

    def when(self, key: R, /) -> float:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        return self._fast if failures <= self._max_fast_attempts else self._slow

    def forget(self, key: R, /) -> None:
        self._failures.pop(key, None)

    def num_requeues(self, key: R, /) -> int:
        return self._failures.get(key, 0)


class BucketRateLimiter(Generic[R]):
    """A token bucket for all keys together: `burst` at once, then `qps` a second.

    It ignores failures of single keys.

    A key that fails again while it waits keeps its delay and takes no second token, so that an object that often changes and fails does not
    delay the others. A key that is forgotten while it waits returns its token.

    Raises: ValueError if qps is not above 0, or burst is below 1.
    """

    __slots__ = ("_burst", "_clock", "_due", "_qps", "_tokens", "_updated")

    def __init__(self, qps: float = 10.0, burst: int = 100, *, clock: Callable[[], float] = time.monotonic) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps is {qps} and burst is {burst}: give qps above 0 and burst of 1 or more")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock()
        self._due: dict[R, float] = {}  # when the waits end

    def when(self, key: R, /) -> float:
        now = self._clock()
        if (due := self._due.get(key, now)) > now:
            return due - now
        self._tokens = min(float(self._burst), self._tokens + (now - self._updated) * self._qps)
        self._updated = now
        # The token is taken even when it is not there yet: below zero stands who waits.
        self._tokens -= 1.0
        wait = max(0.0, -self._tokens / self._qps)
        if wait:
            self._due[key] = now + wait
        return wait

    def forget(self, key: R, /) -> None:
        if self._due and self._due.pop(key, -math.inf) > self._clock():
            self._tokens += 1.0

    def num_requeues(self, key: R, /) -> int:
        return 0


class MaxOfRateLimiter(Generic[R]):
    """Waits for the longest delay of several limiters.

    Raises: ValueError without limiters.
    """

    __slots__ = ("_limiters",)

    def __init__(self, *limiters: RateLimiter[R]) -> None:
        if not limiters:
            raise ValueError("MaxOfRateLimiter needs at least one limiter")
        self._limiters = limiters

    def when(self, key: R, /) -> float:
        return max([limiter.when(key) for limiter in self._limiters])

    def forget(self, key: R, /) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def num_requeues(self, key: R, /) -> int:
        return max(limiter.num_requeues(key) for limiter in self._limiters)


class WithMaxWaitRateLimiter(Generic[R]):
    """Limits the delays of another limiter to `max_wait` seconds."""

    __slots__ = ("_limiter", "_max_wait")

    def __init__(self, limiter: RateLimiter[R], max_wait: float) -> None:
        self._limiter = limiter
        self._max_wait = max_wait

    def when(self, key: R, /) -> float:
        return min(self._max_wait, self._limiter.when(key))

    def forget(self, key: R, /) -> None:
        self._limiter.forget(key)

    def num_requeues(self, key: R, /) -> int:
        return self._limiter.num_requeues(key)
