"""Health checks: a registry of named checks, and the response to a probe.

`serving` serves it over HTTP.

A check is a function without arguments that raises if the check fails. Its error is logged. The caller of a probe sees only the text of an
`UnhealthyError`, because a probe has no authentication. A check can be async. A plain function runs in its own thread, so that a blocking
check does not affect anything else.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ctrlruntime.errors import CtrlError

__all__ = [
    "Answer",
    "Checks",
    "UnhealthyError",
    "ping",
]

Check: TypeAlias = Callable[[], Awaitable[None] | None]
"""A check. It raises an error if the check fails; its result is ignored."""

Place: TypeAlias = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]
"""Runs an async check on the event loop to which it belongs."""

TIME_LIMIT = 5.0
"""The timeout of a check in seconds."""


class Answer(NamedTuple):
    """The response to a probe: an HTTP status and `text`.

    For the log: `failures`, the error of each failed check, and `unknown`, excluded checks that do not exist.
    """

    status: int
    text: str
    failures: Mapping[str, BaseException] = {}
    unknown: Sequence[str] = ()


class UnhealthyError(CtrlError):
    """Raise it in a check to return its text to the caller.

    The text of other errors is only logged.
    """


def ping() -> None:
    """Return without an error.

    This is the check of a registry without checks: it shows that the process responds.
    """


class Checks:
    """Named checks, run together or one by one.

    Args:
        time_limit: seconds after which a check fails.

    """

    def __init__(self, *, time_limit: float = TIME_LIMIT) -> None:
        if time_limit <= 0:
            raise ValueError(f"time_limit is {time_limit}: give seconds above 0")
        self._time_limit = time_limit
        self._checks: dict[str, Check] = {}
        self._place: Place = _here
        self._running: dict[str, asyncio.Future[None]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._all()

    def names(self) -> list[str]:
        """Return the names of the checks."""
        return sorted(self._checks)

    def asked_from_another_loop(self, place: Place) -> Checks:
        """Return the same checks for use on another event loop.

        `place` runs async checks on their own loop.

        Plain checks run in threads, so they respond even if that loop is blocked.
        """
        view = Checks(time_limit=self._time_limit)
        view._checks = self._checks
        view._place = place
        return view

    def add(self, name: str, check: Check) -> None:
        """Add a check.

        Raises: ValueError for a name that is in use or cannot be part of a path, TypeError if `check` is not a function.
        """
        if not name or "/" in name:
            raise ValueError(f"cannot name a check {name!r}: the name is part of a path. Give text without '/'")
        if name in self._checks:
            raise ValueError(f"cannot add the check {name!r}: a check of this name exists")
        if not callable(check):
            raise TypeError(
                f"the check {name!r} is {check!r}: give a function that raises an error when the check fails"
            )
        self._checks[name] = check

    async def answer(self, *, verbose: bool = False, exclude: Collection[str] = (), path: str = "healthz") -> Answer:
        """Run all checks in parallel, except the excluded ones.

        The status is 200, or 500 with a list of all checks.

        `path` is the endpoint in the last line of the list.
        """
        checks = sorted(self._all().items())
        asked = {name: check for name, check in checks if name not in exclude}
        outcomes = dict(zip(asked, await asyncio.gather(*map(self._failure, asked)), strict=True))
        failures = {name: error for name, error in outcomes.items() if error is not None}
        unknown = sorted(set(exclude) - {name for name, _ in checks})
        status = 500 if failures else 200
        if not failures and not verbose:
            return Answer(status, "ok", failures, unknown)
        lines = [_line(name, name in outcomes, outcomes.get(name)) for name, _ in checks]
        if unknown:
            lines.append(f"warn: unknown check in exclude: {', '.join(map(repr, unknown))}")
        lines.append(f"{path} check {'failed' if failures else 'passed'}")
        return Answer(status, "\n".join(lines) + "\n", failures, unknown)

    async def answer_one(self, name: str) -> Answer:
        """Run one check. The status is 200, 500, or 404 for an unknown name."""
        if name not in self._all():
            return Answer(404, f"unknown check {name!r}\n")
        error = await self._failure(name)
        return Answer(200, "ok") if error is None else Answer(500, f"{name} failed: {_reason(error)}\n", {name: error})

    def _all(self) -> dict[str, Check]:
        return self._checks or {"ping": ping}

    async def _failure(self, name: str) -> BaseException | None:
        limit = asyncio.timeout(self._time_limit)
        try:
            async with limit:
                # Shielded: two probes share one run, and the end of one must not end the other's.
                await asyncio.shield(self._run(name))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return error
        except Exception as error:  # noqa: BLE001 - whatever a check raises means that something is wrong
            return TimeoutError(f"the check took longer than {self._time_limit:g} s") if limit.expired() else error
        return None

    def _run(self, name: str) -> asyncio.Future[None]:
        """Return the run of a check that is under way, or begin one: a check that hangs must not pile up with each
        probe.
        """
        running = self._running.get(name)
        if running is not None and not running.done():
            return running
        check = self._all()[name]
        is_async = inspect.iscoroutinefunction(check) or inspect.iscoroutinefunction(getattr(check, "__call__", None))  # noqa: B004 - asked for its kind, not its existence
        run: asyncio.Future[None] = asyncio.ensure_future(
            self._place(lambda: _await(check())) if is_async else _in_thread(name, check, self._place)
        )
        # Its outcome is read by whoever waits; when nobody waits any more, it is nobody's.
        run.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._running[name] = run
        return run


def _line(name: str, was_asked: bool, failure: BaseException | None) -> str:
    if not was_asked:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if failure is None else f"[-]{name} failed: {_reason(failure)}"


def _reason(failure: BaseException) -> str:
    return str(failure) if isinstance(failure, UnhealthyError) else "reason withheld"


async def _await(outcome: Awaitable[None] | None) -> None:
    if inspect.isawaitable(outcome):
        await outcome


async def _here(make: Callable[[], Awaitable[None]]) -> None:
    await make()


async def _in_thread(name: str, check: Check, place: Place) -> None:
    # A daemon thread: one that hangs must not keep the process from ending, as a thread of the loop's executor would.
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[Awaitable[None] | None] = loop.create_future()

    def call() -> None:
        try:
            outcome = check()
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is awaited
            _tell(loop, finished, error, None)
        else:
            _tell(loop, finished, None, outcome)

    threading.Thread(target=call, name=f"health check {name}", daemon=True).start()
    outcome = await finished
    if inspect.isawaitable(outcome):
        # A plain function may wrap an async one and return its coroutine.
        await place(lambda: _await(outcome))


def _tell(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Awaitable[None] | None],
    error: BaseException | None,
    outcome: Awaitable[None] | None,
) -> None:
    def deliver() -> None:
        if future.done():
            return
        if error is None:
            future.set_result(outcome)
        else:
            future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

    if not loop.is_closed():
        loop.call_soon_threadsafe(deliver)
