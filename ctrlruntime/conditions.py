"""Status conditions: set, find and remove them in a list that stays unique and sorted by type.

`lastTransitionTime` moves only when the status of a condition changes, as the API conventions ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ctrlruntime.api.meta.v1 import Condition
from ctrlruntime.field import Time

__all__ = ["ConditionStatus", "find_condition", "is_false", "is_true", "remove_condition", "set_condition"]

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


def set_condition(
    conditions: list[Condition],
    type: str,
    status: ConditionStatus | bool,
    *,
    reason: str,
    message: str = "",
    observed_generation: int | None = None,
    now: Callable[[], Time] = Time.now,
) -> bool:
    """Set the condition of one type, in place, and return whether anything changed.

    A new condition and one whose status changes get the present as lastTransitionTime; any other change keeps it.
    `observed_generation` None leaves what is there. Raises: ValueError for an empty type or reason, which the API
    server would refuse.
    """
    if not type or not reason:
        raise ValueError(f"a condition needs a type and a reason; got type={type!r}, reason={reason!r}")
    text = str(status) if isinstance(status, bool) else status
    before = list(conditions)
    present = find_condition(conditions, type)
    if present is None:
        conditions.append(
            Condition(
                type=type,
                status=text,
                reason=reason,
                message=message,
                observed_generation=observed_generation or 0,
                last_transition_time=now(),
            )
        )
        _arrange(conditions)
        return True
    changed = _update(present, text, reason, message, observed_generation, now)
    _arrange(conditions)
    return changed or [c.type for c in before] != [c.type for c in conditions]


def _update(
    condition: Condition,
    status: str,
    reason: str,
    message: str,
    observed_generation: int | None,
    now: Callable[[], Time],
) -> bool:
    generation = condition.observed_generation if observed_generation is None else observed_generation
    wanted = (status, reason, message, generation)
    present = (condition.status, condition.reason, condition.message, condition.observed_generation)
    moved = condition.status != status or condition.last_transition_time is None
    if not moved and wanted == present:
        return False
    if moved:
        condition.last_transition_time = now()
    condition.status, condition.reason, condition.message, condition.observed_generation = wanted
    return True


def _arrange(conditions: list[Condition]) -> None:
    """Keep the first condition of each type, in the order of the types, in place."""
    first: dict[str, Condition] = {}
    for condition in conditions:
        first.setdefault(condition.type, condition)
    conditions[:] = [first[name] for name in sorted(first)]


def find_condition(conditions: Sequence[Condition], type: str) -> Condition | None:
    """Return the condition of one type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def remove_condition(conditions: list[Condition], type: str) -> bool:
    """Remove the condition of one type, in place, and return whether there was one."""
    kept = [condition for condition in conditions if condition.type != type]
    removed = len(kept) != len(conditions)
    conditions[:] = kept
    return removed


def is_true(conditions: Sequence[Condition], type: str) -> bool:
    """Return whether the condition of one type is there and "True"."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


def is_false(conditions: Sequence[Condition], type: str) -> bool:
    """Return whether the condition of one type is there and "False"."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "False"
