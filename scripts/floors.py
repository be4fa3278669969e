"""Prints the constraints that hold pip to the lowest version of everything pyproject.toml names: `python3 scripts/floors.py`.

Versions of what those packages need themselves are pip's choice, as they are for users. Needs the standard library only: it runs before
there is an environment.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?>=(?P<floor>[0-9][0-9.]*)")


def floors(project: dict[str, Any]) -> Iterator[str]:
    """Yield NAME==FLOOR for each requirement of the table `[project]`. Raises: ValueError for one that is not NAME>=FLOOR."""
    asked = [*project["dependencies"], *(each for extra in project["optional-dependencies"].values() for each in extra)]
    found: dict[str, str] = {}
    for each in asked:
        if each.partition("[")[0] == project["name"]:
            continue
        match = _REQUIREMENT.fullmatch(each)
        if match is None:
            raise ValueError(f"pyproject.toml asks for {each!r}: give NAME>=VERSION, the lowest version that works")
        name, floor = match["name"], match["floor"]
        if found.setdefault(name, floor) != floor:
            raise ValueError(
                f"pyproject.toml asks for {name} from {found[name]} and from {floor}: give one lowest version"
            )
    return (f"{name}=={floor}" for name, floor in sorted(found.items()))


if __name__ == "__main__":
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    print("\n".join(floors(tomllib.loads(text)["project"])))
