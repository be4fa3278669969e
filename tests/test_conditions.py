from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from ctrlruntime.api import batch
from ctrlruntime.api.meta import Condition
from ctrlruntime.conditions import (
    find_condition,
    is_condition_false,
    is_condition_true,
    remove_condition,
    set_condition,
)
from ctrlruntime.field import Time


class Clock:
    def __init__(self) -> None:
        self._seconds = count(1)

    def __call__(self) -> Time:
        return Time.parse(f"2026-01-01T00:00:{next(self._seconds):02d}Z")


def test_a_new_condition_is_added_with_the_present_time() -> None:
    conditions: list[Condition] = []

    changed = set_condition(conditions, "Ready", True, reason="Up", message="m", observed_generation=3, now=Clock())

    assert changed
    assert conditions == [
        Condition(
            type="Ready",
            status="True",
            reason="Up",
            message="m",
            observed_generation=3,
            last_transition_time=Time.parse("2026-01-01T00:00:01Z"),
        )
    ]


def test_setting_the_same_again_changes_nothing() -> None:
    conditions: list[Condition] = []
    clock = Clock()
    set_condition(conditions, "Ready", "True", reason="Up", observed_generation=1, now=clock)

    assert not set_condition(conditions, "Ready", "True", reason="Up", now=clock)
    assert not set_condition(conditions, "Ready", True, reason="Up", observed_generation=1, now=clock)
    assert conditions[0].observed_generation == 1


def test_the_transition_time_moves_only_with_the_status() -> None:
    conditions: list[Condition] = []
    clock = Clock()
    set_condition(conditions, "Ready", "True", reason="Up", now=clock)

    assert set_condition(conditions, "Ready", "True", reason="Other", message="m", observed_generation=2, now=clock)
    assert conditions[0].last_transition_time == Time.parse("2026-01-01T00:00:01Z")
    assert (conditions[0].reason, conditions[0].observed_generation) == ("Other", 2)

    assert set_condition(conditions, "Ready", "False", reason="Down", now=clock)
    assert conditions[0].last_transition_time == Time.parse("2026-01-01T00:00:02Z")


def test_conditions_are_unique_and_sorted_by_type() -> None:
    conditions = [
        Condition(type="Z", status="True"),
        Condition(type="B", status="True"),
        Condition(type="Z", status="False"),
    ]

    set_condition(conditions, "A", "Unknown", reason="New")

    assert [(c.type, c.status) for c in conditions] == [("A", "Unknown"), ("B", "True"), ("Z", "True")]


def test_the_list_is_changed_in_place_and_the_condition_kept() -> None:
    ready = Condition(type="Ready", status="True", reason="Up")
    conditions = [ready]

    assert set_condition(conditions, "Ready", "True", reason="Up")
    assert conditions[0] is ready
    assert ready.last_transition_time is not None


def test_find_and_remove() -> None:
    conditions: list[Condition] = []
    set_condition(conditions, "Ready", "True", reason="Up")
    set_condition(conditions, "Busy", "False", reason="Idle")

    assert is_condition_true(conditions, "Ready")
    assert is_condition_false(conditions, "Busy")
    assert not is_condition_true(conditions, "Busy")
    assert not is_condition_false(conditions, "Absent")
    assert find_condition(conditions, "Absent") is None
    assert remove_condition(conditions, "Ready")
    assert not remove_condition(conditions, "Ready")
    assert [c.type for c in conditions] == ["Busy"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"type": ""}, "type of the condition '' cannot be '': give one word"),
        ({"type": "a b"}, "type of the condition 'a b' cannot be 'a b': give one word"),
        ({"reason": ""}, "reason of the condition 'Ready' cannot be '': it has 0 characters, and may have 1 to 1024"),
        ({"reason": "Not up"}, "cannot be 'Not up': give one word"),
        ({"status": "true"}, "status of the condition 'Ready' cannot be 'true': give one of True, False, Unknown"),
        ({"message": "m" * 32769}, "m…': it has 32769 characters, and may have 0 to 32768"),
        ({"observed_generation": -1}, "observedGeneration of the condition 'Ready' cannot be -1: give at least 0"),
    ],
)
def test_what_the_server_would_refuse_is_refused(wrong: dict[str, Any], problem: str) -> None:
    present = [Condition(type="Ready", status="True", reason="Up")]

    with pytest.raises(ValueError) as caught:
        set_condition(present, **{"type": "Ready", "status": "False", "reason": "Down", **wrong})

    assert problem in str(caught.value)
    assert present == [Condition(type="Ready", status="True", reason="Up")]


def test_conditions_of_built_in_kinds_can_be_read() -> None:
    job = batch.JobStatus(conditions=[batch.JobCondition(type="Complete", status="True")])

    assert is_condition_true(job.conditions, "Complete")
    assert not is_condition_false(job.conditions, "Failed")
    assert find_condition(job.conditions, "Complete") is job.conditions[0]
