"""Scenario files: read, cases made into scenarios of their own, mistakes found before anything runs.

`scenarios/README.md` describes the format. Handed up: `Scenario`, and `load` for all of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
KNOWN = FOLDER / "known.yaml"
_PRIORITIES = {"P0", "P1", "P2"}
_NEEDS = {"controllers", "nodes", "kubectl", "alone"}
_SCENARIO_KEYS = {"id", "title", "priority", "tags", "needs", "tolerances", "crds", "hooks", "cases", "with", "steps"}
_STEP_KEYS = {
    "do": {"body", "yaml", "text", "base64", "type", "accept", "headers", "as", "token", "certificate", "times", "quiet", "pick", "drop",
           "capture", "order", "raw", "unordered"},
    "watch": {"from", "accept", "headers", "as", "token"},
    "collect": {"until", "pick", "drop", "unordered"},
    "wait": {"until", "quiet", "pick", "drop", "capture", "seconds"},
    "kubectl": {"stdin", "sorted"},
    "crd": {"quiet"},
    "hooked": {"drop", "pick", "count"},
    "expire": set(),
    "pause": set(),
}  # fmt: skip


class FormatError(Exception):
    """A scenario file says something that the runner does not know."""


@dataclass(frozen=True)
class Tolerance:
    """A place where the embedded server may differ, and why; `at` is a pattern over the paths of differences."""

    at: str
    reason: str


@dataclass(frozen=True)
class Scenario:
    """One scenario, ready to run; `variables` are those of its case."""

    id: str
    title: str
    priority: str
    file: str
    needs: frozenset[str]
    tolerances: tuple[Tolerance, ...]
    crds: tuple[Mapping[str, Any], ...]
    hooks: Mapping[str, Any]
    variables: Mapping[str, Any]
    steps: tuple[Mapping[str, Any], ...]

    @property
    def fingerprint(self) -> str:
        """A digest of what is asked; a golden answer to something else is not an answer."""
        asked = [self.crds, self.hooks, self.variables, self.steps, sorted(self.needs)]
        return hashlib.sha256(json.dumps(asked, sort_keys=True, default=list).encode()).hexdigest()[:10]

    @property
    def text(self) -> str:
        """Everything that is sent, as text; what it contains is not normalised."""
        return json.dumps([self.crds, self.hooks, self.variables, self.steps], default=list, ensure_ascii=False)


def load(folder: Path = FOLDER) -> dict[str, Scenario]:
    """Return all scenarios by id. Raises: FormatError."""
    found: dict[str, Scenario] = {}
    for path in sorted(folder.glob("*.yaml")):
        if path != KNOWN:
            for scenario in _read(path):
                if scenario.id in found:
                    raise FormatError(f"{path.name}: {scenario.id} is also in {found[scenario.id].file}.yaml")
                found[scenario.id] = scenario
    return found


def load_known(path: Path = KNOWN) -> dict[str, Any]:
    """Return the known differences: by id the reason, or {reason, at: [patterns]}."""
    known: dict[str, Any] = yaml.safe_load(path.read_text()) or {}
    return known


def _read(path: Path) -> Iterator[Scenario]:
    for entry in yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or []:
        try:
            yield from _scenarios(entry, path.stem)
        except (FormatError, KeyError, TypeError, AttributeError) as error:
            name = entry.get("id") if isinstance(entry, dict) else entry
            raise FormatError(f"{path.name}: {name}: {type(error).__name__} {error}") from error


def _scenarios(entry: Mapping[str, Any], file: str) -> Iterator[Scenario]:
    _check_keys(entry, _SCENARIO_KEYS)
    cases = entry.get("cases")
    if not cases:
        yield _scenario(entry, file, entry["id"], entry["title"], {})
        return
    for name, case in cases.items():
        variables = dict(case or {})
        title = f"{entry['title']}: {variables.pop('title', name)}"
        yield _scenario(entry, file, f"{entry['id']}{name}", title, variables)


def _scenario(entry: Mapping[str, Any], file: str, id: str, title: str, case: Mapping[str, Any]) -> Scenario:
    variables = {**(entry.get("with") or {}), **case}
    tolerances = [*(entry.get("tolerances") or ()), *variables.pop("tolerances", ())]
    priority = variables.pop("priority", entry["priority"])
    if priority not in _PRIORITIES:
        raise FormatError(f"priority is one of {', '.join(sorted(_PRIORITIES))}, not {priority}")
    needs = frozenset([*(entry.get("needs") or ()), *variables.pop("needs", ())])
    if needs - _NEEDS:
        raise FormatError(f"needs may be {', '.join(sorted(_NEEDS))}, not {', '.join(needs - _NEEDS)}")
    steps = tuple(entry["steps"])
    if isinstance(variables.get("steps"), list):
        steps = (*steps, *variables.pop("steps"))
    for step in steps:
        _check_step(step)
    return Scenario(
        id=id,
        title=title,
        priority=priority,
        file=file,
        needs=needs,
        tolerances=tuple(Tolerance(one["at"], one["reason"]) for one in tolerances),
        crds=tuple(entry.get("crds") or ()),
        hooks=entry.get("hooks") or {},
        variables=variables,
        steps=steps,
    )


def _check_step(step: Mapping[str, Any]) -> None:
    kinds = [kind for kind in _STEP_KEYS if kind in step]
    if len(kinds) != 1:
        raise FormatError(f"a step is one of {', '.join(_STEP_KEYS)}: {step}")
    _check_keys(step, _STEP_KEYS[kinds[0]] | {kinds[0], "note"})
    paths = (*step.get("pick", ()), *step.get("drop", ()))
    if "collect" in step and any(path == "type" or path.startswith("object.") for path in paths):
        raise FormatError(f"pick and drop of a collect are paths in the object of each frame: {', '.join(paths)}")


def _check_keys(entry: Mapping[str, Any], allowed: set[str]) -> None:
    unknown = set(entry) - allowed
    if unknown:
        raise FormatError(f"unknown key {', '.join(sorted(map(str, unknown)))}; known are {', '.join(sorted(allowed))}")
