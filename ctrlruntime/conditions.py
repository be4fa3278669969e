"""Status conditions: set, find and remove them in a list that is unique and sorted by type.

`lastTransitionTime` changes only if the status of a condition changes, as the API conventions require.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeVar

from ctrlruntime.api.meta.v1 import Condition
from ctrlruntime.field import Time
from ctrlruntime.name_rules import QUALIFIED_NAME, SUBDOMAIN

__all__ = [
    "NAME",
    "RULES",
    "AnyCondition",
    "ConditionStatus",
    "find_condition",
    "is_condition_false",
    "is_condition_true",
    "remove_condition",
    "set_condition",
]

ConditionStatus: TypeAlias = Literal["True", "False", "Unknown"]


class AnyCondition(Protocol):
    """A condition of any kind: `meta.Condition`, or that of a Job, a Pod, a Deployment."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...


C = TypeVar("C", bound=AnyCondition)

NAME: Final[Mapping[str, Any]] = {
    "maxLength": 316,
    "pattern": f"^({SUBDOMAIN}/)?({QUALIFIED_NAME})$",
}
"""The schema of a name like `Ready` or `example.com/Ready`."""

RULES: Final[Mapping[str, Mapping[str, Any]]] = {
    "type": NAME,
    "status": {"enum": ["True", "False", "Unknown"]},
    "observedGeneration": {"minimum": 0},
    "reason": {"maxLength": 1024, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    "message": {"maxLength": 32768},
}
"""The rules for the fields of metav1.Condition as JSON schema; generated CRDs have them too."""

_SHOWN: Final = 60  # characters of a value in an error


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
    """Set the condition of one type, in place. Return whether anything changed.

    A new condition, and one whose status changes, gets the current time as lastTransitionTime. Other changes keep it.

    Args:
        conditions: the list in the status of an object.
        type: the type of the condition, such as "Ready".
        status: True, False, or "True", "False" or "Unknown".
        reason: one CamelCase word for programs.
        message: text for people.
        observed_generation: None keeps the current value.
        now: returns the current time.

    Raises: ValueError for a value that the API server would reject (metav1.Condition): an invalid status, a type or reason that is not a
    single word, a text that is too long.

    """
    text = str(status) if isinstance(status, bool) else status
    said: dict[str, str | int] = {"type": type, "status": text, "reason": reason, "message": message}
    said["observedGeneration"] = observed_generation or 0
    for field, value in said.items():
        if problem := _problem(RULES[field], value):
            shown = value if isinstance(value, int) or len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
            raise ValueError(f"{field} of the condition {type!r:.{_SHOWN}} cannot be {shown!r}: {problem}")
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


def _problem(rule: Mapping[str, Any], value: str | int) -> str:
    """Return what a rule asks for that the value is not; empty when it is well."""
    if isinstance(value, int):
        return f"give at least {rule['minimum']}" if value < rule["minimum"] else ""
    if "enum" in rule and value not in rule["enum"]:
        return f"give one of {', '.join(rule['enum'])}"
    if not rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value)):
        return f"it has {len(value)} characters, and may have {rule.get('minLength', 0)} to {rule['maxLength']}"
    if "pattern" in rule and not re.fullmatch(rule["pattern"], value):
        return f"give one word like MinimumReplicasAvailable, which matches {rule['pattern']}"
    return ""


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


def find_condition(conditions: Sequence[C], type: str) -> C | None:
    """Return the condition of one type, or None."""
    return next((condition for condition in conditions if condition.type == type), None)


def remove_condition(conditions: list[Condition], type: str) -> bool:
    """Remove the condition of one type, in place. Return whether it existed."""
    kept = [condition for condition in conditions if condition.type != type]
    removed = len(kept) != len(conditions)
    conditions[:] = kept
    return removed


def is_condition_true(conditions: Sequence[AnyCondition], type: str) -> bool:
    """Return whether the condition of one type exists and is "True"."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"


def is_condition_false(conditions: Sequence[AnyCondition], type: str) -> bool:
    """Return whether the condition of one type exists and is "False"."""
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "False"
