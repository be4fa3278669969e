"""Selects and runs the tests of a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from ctrlruntime.errors import CtrlError
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.scorecard.checks import CHECKS
from ctrlruntime.olm.scorecard.configuration import Configuration, Test
from ctrlruntime.olm.scorecard.outcome import Outcome, Result, State
from ctrlruntime.selector import EVERYTHING, LabelSelector
from ctrlruntime.spelling import did_you_mean

__all__ = ["run", "selected"]

_PROGRAM: Final = "scorecard-test"
"""The program of the image whose tests are known here."""


def selected(configuration: Configuration, selector: LabelSelector = EVERYTHING) -> list[Test]:
    """Return the tests whose labels match, in the order of the stages. The list may be empty."""
    return [test for test in configuration.tests if selector.matches(test.labels)]


def run(bundle: Bundle, tests: Iterable[Test]) -> list[Outcome]:
    """Run tests on a bundle. The problems of an invalid bundle are in the results, and raise nothing."""
    return [Outcome(test, _result(bundle, test)) for test in tests]


def _result(bundle: Bundle, test: Test) -> Result:
    name = test.name
    if PurePosixPath(test.entrypoint[0]).name != _PROGRAM:
        return Result(name=name, state=State.NOT_RUN, log=f"it runs in the image {test.image}, which needs a cluster")
    check = CHECKS.get(name)
    if check is None:
        return Result(
            name=name, state=State.ERROR, errors=(f"{_PROGRAM} has no test {name!r}{did_you_mean(name, CHECKS)}",)
        )
    try:
        notes = list(check(bundle))
    except CtrlError as error:
        return Result(name=name, state=State.ERROR, errors=(str(error),))
    errors = tuple(text for word, text in notes if word == "error")
    return Result(
        name=name,
        state=State.FAIL if errors else State.PASS,
        log="\n".join(text for word, text in notes if word == "log"),
        errors=errors,
        suggestions=tuple(text for word, text in notes if word == "suggestion"),
    )
