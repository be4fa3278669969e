"""Waits for a condition in a test, with a timeout and a message with the last value."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast, overload

__all__ = ["eventually"]

T = TypeVar("T")


@overload
async def eventually(
    check: Callable[[], Awaitable[T | None]],
    *,
    timeout: float = 10.0,
    interval: float = 0.05,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T: ...


@overload
async def eventually(
    check: Callable[[], T | None],
    *,
    timeout: float = 10.0,
    interval: float = 0.05,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T: ...


async def eventually(
    check: Callable[[], Awaitable[T | None]] | Callable[[], T | None],
    *,
    timeout: float = 10.0,
    interval: float = 0.05,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Call `check` until it returns a true value, and return that.

    It is called every `interval` seconds.

    `check` is a function or a coroutine function. A false value (None, an empty list) and any exception mean "not yet". A check that only
    asserts ends with ``return True``.

    Raises: AssertionError after `timeout` seconds, with the last value in its message, or the last exception as its cause.
    """
    deadline = clock() + timeout
    failure: BaseException | None = None
    last = "the check never returned"
    calls = 0
    while True:
        calls += 1
        limit = asyncio.timeout(max(deadline - clock(), interval))
        try:
            async with limit:
                value = await _call(check)
        except _failures() as error:
            if limit.expired():
                last = f"call {calls} of the check did not return; before it: {last}"
            else:
                failure, last = error, f"last the check raised {type(error).__name__}: {error}"
        else:
            if value:
                return value
            failure, last = None, f"last value: {value!r}" + (_NONE if value is None else "")
        if clock() >= deadline:
            raise AssertionError(f"the check did not hold within {timeout:g} s ({calls} calls); {last}") from failure
        await sleep(interval)


_NONE = " (a check holds when it returns something true; one that only asserts ends with `return True`)"


async def _call(check: Callable[[], Awaitable[T | None]] | Callable[[], T | None]) -> T | None:
    value = check()
    return await cast("Awaitable[T | None]", value) if inspect.isawaitable(value) else value


def _failures() -> tuple[type[BaseException], ...]:
    """What means "not yet". The failure of `pytest.raises` and `pytest.fail` is not an Exception, and pytest need not be
    there.
    """
    pytest = sys.modules.get("pytest")
    return (Exception, pytest.fail.Exception) if pytest else (Exception,)
