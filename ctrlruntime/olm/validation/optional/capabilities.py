"""The annotation `capabilities`, which must be one of five levels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ctrlruntime.olm.capabilities import LEVELS
from ctrlruntime.olm.finding import Check, Finding, Level
from ctrlruntime.olm.validation.optional.suite import INVALID_CSV, OPERATOR_FRAMEWORK
from ctrlruntime.olm.validation.validator import Subject, Validator, about
from ctrlruntime.spelling import did_you_mean

__all__ = ["VALIDATOR"]


_ANNOTATION: Final = "capabilities"
_LEVEL: Final = Check(
    code="capability-level",
    level=Level.ERROR,
    type=INVALID_CSV,
    suite="capabilities",
    summary="the annotation capabilities is not one of the five levels",
)


def _run(subject: Subject) -> Iterator[Finding]:
    level = subject.csv.metadata.annotations.get(_ANNOTATION) if subject.csv else None
    if level is not None and level not in LEVELS:
        text = f"{level!r} is not a capability level{did_you_mean(level, LEVELS)}"
        yield about(_LEVEL, subject.csv_object, text, f"metadata.annotations.{_ANNOTATION}")


VALIDATOR: Final = Validator(
    name="capabilities",
    suite=OPERATOR_FRAMEWORK,
    summary=f"the annotation capabilities, if any, is one of {', '.join(LEVELS)}",
    checks=(_LEVEL,),
    run=_run,
)
