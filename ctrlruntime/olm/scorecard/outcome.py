"""The results of the scorecard's tests: as objects, and as JSON and XML for other programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

from ctrlruntime.olm.scorecard.configuration import API_VERSION, Test

__all__ = ["Outcome", "Result", "State", "documents", "junit"]


class State(StrEnum):
    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    """The bundle does not pass the test."""

    ERROR = "error"
    """The test could not run."""

    NOT_RUN = "not-run"
    """The test needs a cluster. Upstream has no such state: it runs every test in a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    name: str
    state: State
    log: str = ""
    errors: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the result in the JSON of the scorecard, without empty fields."""
        tree: dict[str, Any] = {"name": self.name, "state": self.state.value}
        tree |= {"log": self.log} if self.log else {}
        tree |= {"errors": list(self.errors)} if self.errors else {}
        return tree | ({"suggestions": list(self.suggestions)} if self.suggestions else {})


@dataclass(frozen=True, slots=True)
class Outcome:
    """A test and its result, which is None for a test that is only listed."""

    test: Test
    result: Result | None

    @property
    def is_bad(self) -> bool:
        return self.result is not None and self.result.state in {State.FAIL, State.ERROR}

    @property
    def suite(self) -> str:
        return self.test.labels.get("suite", "")


def documents(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a TestList, as the scorecard prints it with `-o json`."""
    return {"apiVersion": API_VERSION, "kind": "TestList", "items": [_item(each) for each in outcomes]}


def _item(outcome: Outcome) -> dict[str, Any]:
    test, result = outcome.test, outcome.result
    spec = {"image": test.image, "entrypoint": test.entrypoint, "labels": test.labels}
    status = {"results": [result.document()]} if result else {}
    return {"apiVersion": API_VERSION, "kind": "Test", "spec": spec, "status": status}


def junit(outcomes: Sequence[Outcome]) -> str:
    """Return the XML of xUnit test runners, with a testsuite for each label `suite`."""
    suites: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        suites[outcome.suite].append(outcome)
    root = ET.Element("testsuites", {"name": "scorecard"})
    for name, several in suites.items():
        states = [each.result.state for each in several if each.result]
        counts = {
            "tests": len(several),
            "failures": states.count(State.FAIL),
            "errors": states.count(State.ERROR),
            "skipped": len(several) - len(states) + states.count(State.NOT_RUN),
        }
        suite = ET.SubElement(root, "testsuite", {"name": name, **{key: str(value) for key, value in counts.items()}})
        for each in several:
            _add_case(suite, name, each)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _add_case(suite: ET.Element, name: str, outcome: Outcome) -> None:
    case = ET.SubElement(suite, "testcase", {"name": outcome.test.name, "classname": name or "scorecard"})
    result = outcome.result
    if result is None or result.state is State.NOT_RUN:
        ET.SubElement(case, "skipped", {"message": result.log if result else "listed only"})
        return
    if result.state is not State.PASS:
        word = "failure" if result.state is State.FAIL else "error"
        said = ET.SubElement(case, word, {"message": _plain(result.errors[0]) if result.errors else ""})
        said.text = _plain("\n".join(result.errors))
    if result.suggestions:
        ET.SubElement(case, "system-out").text = _plain("\n".join(result.suggestions))


def _plain(text: str) -> str:
    """Without the characters that XML 1.0 has no way to write."""
    return "".join(char if char >= " " or char in "\t\n\r" else "\N{REPLACEMENT CHARACTER}" for char in text)
