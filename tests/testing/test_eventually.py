from __future__ import annotations

import asyncio

import pytest

from ctrlruntime.testing import eventually


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


async def test_returns_the_first_true_value():
    clock, values = Clock(), iter([None, [], ["pod"]])

    found = await eventually(lambda: next(values), clock=clock, sleep=clock.sleep)

    assert found == ["pod"]
    assert clock.now == pytest.approx(0.1)


async def test_awaits_a_coroutine_and_takes_exceptions_as_not_yet():
    clock, calls = Clock(), []

    async def check() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise LookupError("not there")
        return len(calls)

    assert await eventually(check, clock=clock, sleep=clock.sleep) == 3


async def test_the_error_shows_the_last_value_and_the_limit():
    clock = Clock()

    with pytest.raises(AssertionError, match=r"the check did not hold within 2 s \(\d+ calls\); last value: 0"):
        await eventually(lambda: 0, timeout=2, interval=0.5, clock=clock, sleep=clock.sleep)

    assert clock.now == 2.0


async def test_the_error_for_none_says_what_a_check_returns():
    clock = Clock()

    with pytest.raises(AssertionError, match="ends with `return True`"):
        await eventually(lambda: None, timeout=1, clock=clock, sleep=clock.sleep)


async def test_the_error_has_the_last_exception_as_its_cause():
    clock, failure = Clock(), ValueError("two replicas")

    def check() -> None:
        raise failure

    with pytest.raises(AssertionError, match="raised ValueError: two replicas") as caught:
        await eventually(check, timeout=1, clock=clock, sleep=clock.sleep)

    assert caught.value.__cause__ is failure


async def test_a_failed_pytest_raises_means_not_yet():
    clock, calls = Clock(), []

    def check() -> bool:
        calls.append(1)
        with pytest.raises(IndexError):
            ["a", "b", "c"][len(calls)]
        return True

    assert await eventually(check, clock=clock, sleep=clock.sleep)
    assert len(calls) == 3


async def test_a_check_that_never_returns_is_cut_and_named():
    with pytest.raises(AssertionError, match="call 1 of the check did not return"):
        await eventually(asyncio.Event().wait, timeout=0.05, interval=0.01)


async def test_cancellation_passes_through():
    task = asyncio.create_task(eventually(asyncio.Event().wait, timeout=60))
    await asyncio.sleep(0)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
