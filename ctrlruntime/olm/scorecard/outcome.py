"""The results of the scorecard's tests: as objects, and as JSON and XML for other programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

from ctrlruntime.olm.scorecard.configuration import API_VERSION, Test

__all__ = ["Outcome", "State", "documents", "junit"]


class State(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    """The bundle does not pass the test."""

    ERROR = "error"
    """The test could not run."""

    NOT_RUN = "not-run"
    """The test needs a cluster. Upstream has no such state: it runs every test in a cluster."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A test and its result."""

    test: Test
    state: State | None = None
    """None for a test that is only listed."""

    log: str = ""
    errors: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        return self.state in {State.FAIL, State.ERROR}

    @property
    def suite(self) -> str:
        return self.test.labels.get("suite", "")

    def document(self) -> dict[str, Any]:
        """Return the test and its result in the JSON of the scorecard, without empty fields of the result."""
        test = self.test
        spec = {"image": test.image, "entrypoint": test.entrypoint, "labels": test.labels}
        status: dict[str, Any] = {}
        if self.state is not None:
            more = {"log": self.log, "errors": list(self.errors), "suggestions": list(self.suggestions)}
            given = {name: value for name, value in more.items() if value}
            status["results"] = [{"name": test.name, "state": self.state.value, **given}]
        return {"apiVersion": API_VERSION, "kind": "Test", "spec": spec, "status": status}


def documents(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a TestList, as the scorecard prints it with `-o json`."""
    return {"apiVersion": API_VERSION, "kind": "TestList", "items": [each.document() for each in outcomes]}


def junit(outcomes: Sequence[Outcome]) -> str:
    """Return the XML of xUnit test runners, with a testsuite for each label `suite`."""
    suites: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        suites[outcome.suite].append(outcome)
    root = ET.Element("testsuites", {"name": "scorecard"})
    for name, several in suites.items():
        states = [each.state for each in several]
        counts = {
            "tests": len(several),
            "failures": states.count(State.FAIL),
            "errors": states.count(State.ERROR),
            "skipped": states.count(State.NOT_RUN) + states.count(None),
        }
        suite = ET.SubElement(root, "testsuite", {"name": name, **{key: str(value) for key, value in counts.items()}})
        for each in several:
            _add_case(suite, name, each)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, name: str, outcome: Outcome) -> None:
    case = ET.SubElement(suite, "testcase", {"name": outcome.test.name, "classname": name or "scorecard"})
    if outcome.state in {None, State.NOT_RUN}:
        ET.SubElement(case, "skipped", {"message": outcome.log if outcome.state else "listed only"})
        return
    if outcome.is_bad:
        word = "failure" if outcome.state is State.FAIL else "error"
        problem = ET.SubElement(case, word, {"message": _plain(outcome.errors[0]) if outcome.errors else ""})
        problem.text = _plain("\n".join(outcome.errors))
    if outcome.suggestions:
        ET.SubElement(case, "system-out").text = _plain("\n".join(outcome.suggestions))


def _plain(text: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return "".join(char if char >= " " or char in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for char in text)
