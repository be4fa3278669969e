"""Limits of a client: requests a second (a token bucket), and the size of a response."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

MAX_HEADER_SIZE = 64 * 1024
MAX_ANSWER_SIZE = 256 * 1024 * 1024
MAX_FRAME_SIZE = 64 * 1024 * 1024


class AnswerLimits(NamedTuple):
    """The maximum size of a response's headers, and of its body, compressed and decompressed. A streamed body has no limit."""

    head: int = MAX_HEADER_SIZE
    body: int = MAX_ANSWER_SIZE


DEFAULT_ANSWER_LIMITS = AnswerLimits()


class TokenBucket:
    """Allows `burst` requests at once, then `qps` a second, in order. Safe in any thread."""

    def __init__(self, qps: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock()
        self._lock = threading.Lock()

    def take(self, within: float) -> float | None:
        """Take a token and return the seconds until it may be used.

        None, without a token, if that is more than `within`.
        """
        with self._lock:
            now = self._clock()
            tokens = min(float(self._burst), self._tokens + (now - self._updated) * self.qps)
            wait = max(0.0, (1.0 - tokens) / self.qps)
            self._tokens, self._updated = tokens, now
            if wait > within:
                return None
            self._tokens -= 1.0
            return wait
