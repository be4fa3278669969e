"""Validation of conditions of the common form (ValidateConditions in apimachinery's pkg/apis/meta/v1/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, invalid_value, not_supported, required, too_long
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import qualified_name_causes
from ctrlruntime.selector import utf8_length

_STATES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', "
    "and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or "
    f"'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_LONGEST_REASON: Final = 1024
_LONGEST_MESSAGE: Final = 32 * 1024


def common_conditions_causes(conditions: Sequence[Document], path: str) -> Iterator[StatusCause]:
    """What is wrong with a list of conditions; none of them is twice in it."""
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where, kind, reason = f"{path}[{index}]", condition.get("type", ""), condition.get("reason", "")
        if kind in seen:
            yield duplicate(f"{where}.type", kind)
        seen.add(kind)
        yield from qualified_name_causes(kind, f"{where}.type")
        if condition.get("status", "") not in _STATES:
            yield not_supported(f"{where}.status", condition.get("status", ""), _STATES)
        if condition.get("observedGeneration", 0) < 0:
            text = "must be greater than or equal to zero"
            yield invalid_value(f"{where}.observedGeneration", condition["observedGeneration"], text)
        if not condition.get("lastTransitionTime"):
            yield required(f"{where}.lastTransitionTime")
        if not reason:
            yield required(f"{where}.reason")
        elif not re.fullmatch(_REASON, reason):
            yield invalid_value(f"{where}.reason", reason, _REASON_TEXT)
        for name, limit in (("reason", _LONGEST_REASON), ("message", _LONGEST_MESSAGE)):
            if utf8_length(condition.get(name, "")) > limit:
                yield too_long(f"{where}.{name}", limit)


__all__ = ["common_conditions_causes"]
