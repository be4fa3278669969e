"""Answers held against golden ones: the list of differences, with tolerances and known ones set apart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from scenario.format import Scenario
from scenario.golden import Golden
from scenario.runner import Run

COMPARES_MANAGED_FIELDS = True  # until the embedded server keeps them
_MISSING = object()


@dataclass(frozen=True)
class Difference:
    """One place where an answer is not the golden one."""

    path: str
    golden: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: golden {_shown(self.golden)}, found {_shown(self.found)}"


@dataclass
class Verdict:
    """How a run compares: `differences` count against it, `tolerated` do not."""

    scenario: Scenario
    differences: list[Difference] = field(default_factory=list)
    tolerated: list[Difference] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """Tolerances that tolerated nothing."""

    @property
    def is_equal(self) -> bool:
        return not self.differences


def judge(run: Run, golden: Golden) -> Verdict:
    """Compare a run with the golden answers."""
    scenario = run.scenario
    verdict = Verdict(scenario)
    if run.error:
        verdict.differences.append(Difference("error", None, run.error))
        return verdict
    expected = golden.steps(scenario)
    if expected is None:
        verdict.differences.append(
            Difference("golden", "recorded answers", "none; run scripts/conformance --record " + scenario.id)
        )
        return verdict
    used: set[str] = set()
    for difference in differences(expected, run.steps, "steps"):
        by = next((one.at for one in scenario.tolerances if matches(one.at, difference.path)), None)
        if by is None:
            verdict.differences.append(difference)
        else:
            used.add(by)
            verdict.tolerated.append(difference)
    verdict.unused = [one.at for one in scenario.tolerances if one.at not in used]
    return verdict


def is_known(verdict: Verdict, known: Mapping[str, Any]) -> bool:
    """Tell whether the differences are those that the list of known ones has for the scenario, in each place."""
    entry = known.get(verdict.scenario.id)
    if entry is None:
        return verdict.is_equal
    places = entry.get("at") if isinstance(entry, dict) else None
    if verdict.is_equal:
        return False
    return places is None or all(any(matches(place, one.path) for place in places) for one in verdict.differences)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"))


def matches(pattern: str, path: str) -> bool:
    """Tell whether a path is the pattern's (`*` stands for anything) or lies below it."""
    found = _pattern(pattern).match(path)
    return found is not None and (found.end() == len(path) or path[found.end()] in ".[" or pattern.endswith("*"))


def differences(golden: Any, found: Any, path: str) -> Iterator[Difference]:
    if isinstance(golden, dict) and isinstance(found, dict):
        for key in [*golden, *(key for key in found if key not in golden)]:
            if key == "managedFields" and not COMPARES_MANAGED_FIELDS:
                continue
            inner = f"{path}.{key}" if re.fullmatch(r"[\w$()-]+", key) else f"{path}[{json.dumps(key)}]"
            yield from differences(golden.get(key, _MISSING), found.get(key, _MISSING), inner)
    elif isinstance(golden, list) and isinstance(found, list):
        if len(golden) != len(found):
            yield Difference(f"{path}.length", golden, found)
            return
        for index, (one, other) in enumerate(zip(golden, found, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif golden != found or type(golden) is not type(found):
        yield Difference(path, golden, found)


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = value if isinstance(value, str) and "\n" in value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 1500 else f"{text[:1500]}…"
