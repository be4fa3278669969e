"""Requests, results and the reconciler interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.errors import TerminalError
from ctrlruntime.rest.fence import current_actor


class Request(msgspec.Struct, frozen=True, order=True):
    """The object to reconcile: `namespace`, `name` and `cluster`.

    The namespace of a cluster-scoped object is empty, and the cluster of the manager is "".
    """

    namespace: str
    name: str
    cluster: str = ""

    def __str__(self) -> str:
        key = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.cluster}:{key}" if self.cluster else key


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Tell the controller when to reconcile the request again.

    Exceptions are retried with backoff. `TerminalError` is not retried. Code that cannot return a Result raises `RequeueAfter`.
    """

    requeue_after: float = 0.0
    """Seconds until the next reconcile without a change. 0: reconcile only after a change."""

    priority: int | None = None
    """The priority of the next reconcile. None: the priority of this one."""

    reason: str = ""
    """What the request waits for, for `ctrl why` and the debug page."""

    def __post_init__(self) -> None:
        seconds = cast("object", self.requeue_after)
        if not isinstance(seconds, (int, float)):
            raise TypeError(
                f"requeue_after is {seconds!r}: give seconds as a number (for a timedelta: its total_seconds())"
            )
        if not self.requeue_after >= 0:  # not a number is refused, too
            raise ValueError(f"requeue_after is {self.requeue_after}: give seconds, 0 or more")


def reconcile_id() -> str:
    """Return the ID of the running reconcile, as in its log lines.

    Empty outside a reconcile.
    """
    actor = current_actor()
    return "" if actor is None else actor.reconcile_id


R_contra = TypeVar("R_contra", default=Request, contravariant=True)


class Reconciler(Protocol[R_contra]):
    """Moves the actual state of an object towards its desired state.

    A reconciler is level-triggered: it does not receive the event, reads the current state, and may run at any time. A plain `def` runs in
    a thread of its controller. `async def` runs on the event loop and must not block it.
    """

    def reconcile(self, request: R_contra, /) -> Awaitable[Result | None] | Result | None: ...


ReconcileFunction: TypeAlias = Callable[[Any], Awaitable[Result | None] | Result | None]


def is_terminal(error: BaseException) -> bool:
    """Return whether an error is a TerminalError, was raised from one, or is a group that contains one, at any depth.

    As with errors.Is in Go, one terminal error among several joined errors makes all of them terminal.
    """
    seen: set[int] = set()
    left: list[BaseException] = [error]
    while left:
        one = left.pop()
        if isinstance(one, TerminalError):
            return True
        if id(one) in seen:
            continue
        seen.add(id(one))
        if one.__cause__ is not None:
            left.append(one.__cause__)
        if isinstance(one, BaseExceptionGroup):
            left += cast("BaseExceptionGroup[BaseException]", one).exceptions
    return False
