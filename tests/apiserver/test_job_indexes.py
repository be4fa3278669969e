from __future__ import annotations

import pytest

from ctrlruntime.apiserver.registry.job_indexes import count_indexes, overlap


@pytest.mark.parametrize(("text", "count"), [("", 0), ("0", 1), ("0-2,5", 4), ("0,1,2-9", 10)])
def test_indexes_are_counted(text, count):
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1-b", 'cannot convert string to integer for index: "b"'),
        ("10", 'too large index: "10"'),
        ("0-10", 'too large index: "10"'),
        ("5-2", "non-increasing order, previous: 5, current: 2"),
        ("5,3", "non-increasing order, previous: 5, current: 3"),
        ("1-2-3", "at most two parts separated by '-'"),
    ],
)
def test_indexes_that_cannot_be_read_say_why(text, problem):
    with pytest.raises(ValueError, match=problem):
        count_indexes(text, 10)


@pytest.mark.parametrize(
    ("completed", "failed", "at"), [("0-3,5", "2,6-7", 2), ("0,2,4", "1,3,5", None), ("0-3", "", None), ("x,4", "4", 4)]
)
def test_an_index_is_not_completed_and_failed(completed, failed, at):
    wanted = "" if at is None else f"failedIndexes and completedIndexes overlap at index: {at}"
    assert overlap(completed, failed, 10) == wanted
