"""Indexes of a Job as text, such as `0-2,5`: read and compared with kube-apiserver's words (pkg/apis/batch/validation)."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[+-]?[0-9]+")


def count_indexes(text: str, completions: int) -> int:
    """Return how many indexes a text names. Raises: ValueError when it names none of a Job with these completions."""
    last, total = None, 0
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def overlap(completed: str, failed: str, completions: int) -> str:
    """Return what is wrong when an index is in both texts; what cannot be read is left out."""
    left, right = _readable(completed, completions), _readable(failed, completions)
    while left and right:
        (first, end), (other, other_end) = left[0], right[0]
        if first <= other_end and other <= end:
            return f"failedIndexes and completedIndexes overlap at index: {max(first, other)}"
        (left if first <= other else right).pop(0)
    return ""


def _readable(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except ValueError:
            continue
    return found


def _interval(text: str, completions: int) -> tuple[int, int]:
    first, *rest = text.split("-")
    if len(rest) > 1:
        why = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise ValueError(f'the fragment "{text}" {why}')
    start = _index(first, completions)
    if not rest:
        return start, start
    end = _index(rest[0], completions)
    if start >= end:
        raise ValueError(f"non-increasing order, previous: {start}, current: {end}")
    return start, end


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)


__all__ = ["count_indexes", "overlap"]
