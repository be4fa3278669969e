"""What a reconcile may return."""

from datetime import timedelta

import pytest

from ctrlruntime.reconcile import Result


@pytest.mark.parametrize("seconds", ["5", None, timedelta(seconds=5)])
def test_a_delay_is_a_number(seconds):
    with pytest.raises(TypeError, match=r"requeue_after is .* give seconds as a number"):
        Result(requeue_after=seconds)


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_delay_is_zero_or_more(seconds):
    with pytest.raises(ValueError, match="requeue_after is"):
        Result(requeue_after=seconds)
