"""Golden answers: what the real server said, one file for each scenario file, one line for each step."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scenario.format import Scenario
from scenario.runner import Run

FOLDER = Path(__file__).resolve().parent.parent / "golden"


class Golden:
    """Reads and writes `FOLDER/FILE.json`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, dict[str, Any]] = {}

    def steps(self, scenario: Scenario) -> list[Any] | None:
        """Return the recorded answers, or None when there are none to these questions."""
        entry = self._file(scenario.file).get(scenario.id)
        if entry is None or entry["asked"] != scenario.fingerprint:
            return None
        steps: list[Any] = entry["steps"]
        return steps

    def record(self, runs: Iterable[Run], scenarios: Mapping[str, Scenario]) -> None:
        """Keep new answers and forget those of scenarios that are no more."""
        by_file: dict[str, list[Run]] = {}
        for run in runs:
            by_file.setdefault(run.scenario.file, []).append(run)
        for file, some in by_file.items():
            path = self._folder / f"{file}.json"
            path.parent.mkdir(exist_ok=True)
            path.touch()
            with path.open("r+") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX)  # two may record at once
                text = handle.read()
                entries: dict[str, Any] = json.loads(text) if text else {}
                entries.update(
                    {
                        run.scenario.id: {"asked": run.scenario.fingerprint, "steps": run.steps}
                        for run in some
                        if not run.error
                    }
                )
                kept = {
                    name: entry
                    for name, entry in sorted(entries.items())
                    if name in scenarios and scenarios[name].file == file
                }
                handle.seek(0)
                handle.truncate()
                handle.write(_text(kept))
        self._files.clear()

    def _file(self, name: str) -> dict[str, Any]:
        if name not in self._files:
            path = self._folder / f"{name}.json"
            self._files[name] = json.loads(path.read_text() or "{}") if path.exists() else {}
        return self._files[name]


def _text(entries: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for name, entry in entries.items():
        steps = ",\n  ".join(json.dumps(step, ensure_ascii=False, separators=(",", ":")) for step in entry["steps"])
        parts.append(f'{json.dumps(name)}: {{"asked": {json.dumps(entry["asked"])}, "steps": [\n  {steps}]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
