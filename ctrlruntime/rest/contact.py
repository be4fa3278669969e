"""Whether an API server responds, as its transport sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ctrlruntime.rest.transport import RequestCounter, WaitReason

MAX_FAILURES: Final = 3
"""Failures in a row after which a server counts as not responding."""


class Contact:
    """Counts the responses of one API server, for its metrics as well.

    A response with status 401 is a failure: the server does not accept the credential, so it answers nothing else.

    counter: that of the metrics. Use it on one event loop.
    """

    __slots__ = ("_counter", "answers", "failures", "on_turn")

    def __init__(self, counter: RequestCounter) -> None:
        self._counter = counter
        self.answers = 0
        """The number of responses."""

        self.failures = 0
        """The number of failures since the last response."""

        self.on_turn: Callable[[], None] = _nothing
        """Called with the first response after a failure, and with the third failure in a row."""

    def request(self, code: str, method: str, host: str) -> None:
        self._counter.request(code, method, host)
        if code in {"<error>", "401"}:
            self.failed()
            return
        self.answers += 1
        if self.failures:
            self.failures = 0
            self.on_turn()

    def failed(self) -> None:
        """Count a failure without a request, such as that of a credential plugin."""
        self.failures += 1
        if self.failures == MAX_FAILURES:
            self.on_turn()

    def throttled(self, seconds: float, host: str) -> None:
        self._counter.throttled(seconds, host)

    def waited(self, seconds: float, reason: WaitReason, host: str) -> None:
        self._counter.waited(seconds, reason, host)


def _nothing() -> None:
    return
