"""Selects and runs the tests of a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from ctrlruntime.errors import CtrlError
from ctrlruntime.olm.bundle import Bundle
from ctrlruntime.olm.scorecard.checks import CHECKS
from ctrlruntime.olm.scorecard.configuration import Configuration, Test
from ctrlruntime.olm.scorecard.outcome import Outcome, State
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
    return [_outcome(bundle, test) for test in tests]


def _outcome(bundle: Bundle, test: Test) -> Outcome:
    name = test.name
    if PurePosixPath(test.entrypoint[0]).name != _PROGRAM:
        return Outcome(test, State.NOT_RUN, f"it runs in the image {test.image}, which needs a cluster")
    check = CHECKS.get(name)
    if check is None:
        error = f"{_PROGRAM} has no test {name!r}{did_you_mean(name, CHECKS)}"
        return Outcome(test, State.ERROR, errors=(error,))
    try:
        notes = list(check(bundle))
    except CtrlError as error:
        return Outcome(test, State.ERROR, errors=(str(error),))
    log, errors, suggestions = (
        tuple(text for word, text in notes if word == which) for which in ("log", "error", "suggestion")
    )
    return Outcome(test, State.FAIL if errors else State.PASS, "\n".join(log), errors, suggestions)
