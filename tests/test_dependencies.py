"""What pyproject.toml says of dependencies: everything that is imported is named, where it is needed, with a lowest version."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
floors = runpy.run_path(str(ROOT / "scripts" / "floors.py"))["floors"]

FOR_PEOPLE = ("cli", "olm", "project", "apiserver", "testing", "__main__")
"""Parts of the package that need an extra: the command line, the embedded server and the helpers of tests."""


def normal(requirement: str) -> str:
    """Return the name of the distribution in a requirement, as names are compared."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def imported() -> Iterator[tuple[str, Path]]:
    """Yield each top-level module that the package imports from elsewhere, with a file that does."""
    for path in sorted((ROOT / "ctrlruntime").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    found = [each.name for each in names]
                case ast.ImportFrom(level=0, module=str(module)):
                    found = [module]
                case _:
                    continue
            for name in found:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "ctrlruntime":
                    yield top, path.relative_to(ROOT)


def test_every_import_is_declared():
    named = {
        normal(each) for each in [*PROJECT["dependencies"], *(each for extra in EXTRAS.values() for each in extra)]
    }
    distributions = importlib.metadata.packages_distributions()
    missing = {
        f"{top} ({', '.join(distributions.get(top, ['not installed']))}), imported in {path}"
        for top, path in imported()
        if not named & {normal(each) for each in distributions.get(top, ())}
    }

    assert not missing


def needed_by(requirements: list[str]) -> set[str]:
    """Return the distributions that are installed with these requirements."""
    found: set[str] = set()
    waiting = [normal(each) for each in requirements]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            asked = importlib.metadata.requires(name) or ()
            waiting += [normal(each) for each in asked if "extra ==" not in each and "python_version <" not in each]
    return found


WITHOUT_EXTRAS = """\
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import ctrlruntime, ctrlruntime.testing.demo
for module in pkgutil.walk_packages(ctrlruntime.__path__, "ctrlruntime."):
    if module.name.split(".")[1] not in LEFT_OUT:
        importlib.import_module(module.name)
import examples.memcached.__main__
"""


def test_the_core_and_an_example_are_imported_without_any_extra(tmp_path):
    core = needed_by(PROJECT["dependencies"])
    blocked = {
        module
        for module, names in importlib.metadata.packages_distributions().items()
        if not {normal(each) for each in names} & (core | {"ctrlruntime"}) and module not in sys.stdlib_module_names
    }
    # walk_packages imports the packages it walks: those that are left out may fail, which it passes over.
    code = f"BLOCKED = {blocked!r}\nLEFT_OUT = {FOR_PEOPLE!r}\n{WITHOUT_EXTRAS}"
    assert {"cryptography", "click", "pytest", "hypothesis"} <= blocked

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_lowest_versions_are_those_of_pyproject():
    lowest = dict(each.split("==") for each in floors(PROJECT))

    assert lowest["aiohttp"] == "3.13.3"
    assert lowest["cryptography"] == "44.0.1"
    assert {normal(name) for name in lowest} >= {normal(each) for each in PROJECT["dependencies"]}


@pytest.mark.parametrize(
    ("requirements", "problem"),
    [
        (["a"], "'a'"),
        (["a>1"], "'a>1'"),
        (["a>=1,<2"], "'a>=1,<2'"),
        (["a>=1", "a>=2"], "a from 1 and from 2"),
    ],
)
def test_a_requirement_without_one_lowest_version_is_refused(requirements, problem):
    with pytest.raises(ValueError, match=re.escape(problem)):
        list(floors({"name": "me", "dependencies": requirements, "optional-dependencies": {}}))


def test_an_extra_that_names_others_of_the_package_adds_nothing():
    extras = {"one": ["b[x]>=2.0.1"], "two": ["me[one]"]}

    assert list(floors({"name": "me", "dependencies": ["a>=1"], "optional-dependencies": extras})) == [
        "a==1",
        "b==2.0.1",
    ]


def test_msgspec_reads_types_only_with_decoders_of_modules():
    # `decode(…, type=…)` prepares the type at its first call. Two threads that do this at once crash the process (msgspec 0.22).
    # A decoder that a module makes is ready when its import ends.
    typed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "ctrlruntime").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and any(keyword.arg == "type" for keyword in node.keywords)
        if ast.unparse(node.func).startswith("msgspec.")
    ]

    assert typed == []
