from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctrlruntime.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    WithMaxWaitRateLimiter,
)


def test_back_off_doubles_up_to_the_cap():
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter()

    delays = [limiter.when("a") for _ in range(20)]

    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[17] < 1000
    assert delays[18:] == [1000.0, 1000.0]
    assert limiter.num_requeues("a") == 20


def test_back_off_is_per_key_and_ends_with_forget():
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter(base=1.0)
    limiter.when("a")
    limiter.when("a")

    assert limiter.when("b") == 1.0
    limiter.forget("a")
    limiter.forget("unknown")
    assert limiter.num_requeues("a") == 0
    assert limiter.when("a") == 1.0


def test_back_off_does_not_overflow():
    limiter: ItemExponentialFailureRateLimiter[str] = ItemExponentialFailureRateLimiter()
    for _ in range(3000):
        delay = limiter.when("a")

    assert delay == 1000.0


@pytest.mark.parametrize(("base", "cap"), [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0)])
def test_impossible_back_off_is_refused(base, cap):
    with pytest.raises(ValueError, match="backoff from"):
        ItemExponentialFailureRateLimiter(base, cap)


def test_fast_slow_changes_after_the_fast_attempts():
    limiter: ItemFastSlowRateLimiter[str] = ItemFastSlowRateLimiter(0.1, 10.0, 2)

    assert [limiter.when("a") for _ in range(4)] == [0.1, 0.1, 10.0, 10.0]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert limiter.when("a") == 0.1


def test_bucket_allows_a_burst_and_then_its_rate():
    now = 0.0
    limiter: BucketRateLimiter[str] = BucketRateLimiter(qps=10, burst=3, clock=lambda: now)

    assert [limiter.when(key) for key in "abc"] == [0.0, 0.0, 0.0]
    assert [limiter.when(key) for key in "de"] == pytest.approx([0.1, 0.2])
    now = 1.0
    assert limiter.when("f") == 0.0
    limiter.forget("f")
    assert limiter.num_requeues("f") == 0


def test_a_key_that_fails_often_does_not_delay_the_others():
    now = 0.0
    limiter: BucketRateLimiter[str] = BucketRateLimiter(qps=5, burst=1, clock=lambda: now)
    for number in range(200):
        now = number * 0.02  # fifty events a second, each one fails
        assert limiter.when("busy") <= 0.2 + 1e-9

    assert limiter.when("other") <= 0.4 + 1e-9


def test_a_key_that_is_forgotten_while_it_waits_gives_its_token_back():
    now = 0.0
    limiter: BucketRateLimiter[str] = BucketRateLimiter(qps=1, burst=1, clock=lambda: now)
    assert [limiter.when(key) for key in "abc"] == [0.0, 1.0, 2.0]

    limiter.forget("b")
    limiter.forget("a")  # its wait was over: the token is spent

    assert limiter.when("d") == 2.0
    now = 2.0
    limiter.forget("c")
    assert limiter.when("c") == 1.0


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([0.0, 0.01, 0.3, 2.0]), st.booleans()), max_size=60))
def test_a_bucket_lets_through_what_it_may_and_nobody_waits_for_more_than_the_keys_that_wait(steps):
    now, qps, burst = 0.0, 4.0, 3
    limiter: BucketRateLimiter[str] = BucketRateLimiter(qps=qps, burst=burst, clock=lambda: now)
    waiting: dict[str, float] = {}  # when the wait of a key ends
    passed: list[float] = []  # when a key was let through
    for key, pause, is_forgotten in steps:
        now += pause
        passed += [due for due in waiting.values() if due <= now]
        waiting = {each: due for each, due in waiting.items() if due > now}
        if is_forgotten:
            limiter.forget(key)
            waiting.pop(key, None)
            continue
        due = now + limiter.when(key)
        if key in waiting:
            assert due == pytest.approx(waiting[key])
            continue
        assert due - now <= (len(waiting) + 1) / qps + 1e-9
        waiting[key] = due
    passed += waiting.values()
    for moment in passed:
        assert sum(each <= moment for each in passed) <= burst + qps * moment + 1e-6


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (1, 0)])
def test_impossible_bucket_is_refused(qps, burst):
    with pytest.raises(ValueError, match="qps is"):
        BucketRateLimiter(qps, burst)


def test_max_of_waits_for_the_slowest_and_counts_in_all():
    fast, slow = ItemExponentialFailureRateLimiter(1.0), ItemFastSlowRateLimiter(3.0, 5.0, 1)
    limiter: MaxOfRateLimiter[str] = MaxOfRateLimiter(fast, slow)

    assert [limiter.when("a") for _ in range(4)] == [3.0, 5.0, 5.0, 8.0]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert fast.num_requeues("a") == slow.num_requeues("a") == 0


def test_max_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        MaxOfRateLimiter()


def test_with_max_wait_caps_another_limiter():
    limiter: WithMaxWaitRateLimiter[str] = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(1.0), 3.0)

    assert [limiter.when("a") for _ in range(4)] == [1.0, 2.0, 3.0, 3.0]
    assert limiter.num_requeues("a") == 4
    limiter.forget("a")
    assert limiter.num_requeues("a") == 0
