"""The page of all checks, made from the validators. Write it with `python tests/olm/checks_page.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill

from ctrlruntime.olm.finding import Check
from ctrlruntime.olm.validation import ALWAYS, OPTIONAL, Validator

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bundle-checks.md"
INTRODUCTION = """\
# Checks of a bundle

`ctrl bundle validate` runs these checks. Each finding has the code of its check, and codes do not change. An error means that OLM, a catalog or
kube-apiserver rejects the bundle, or that the operator does not work after its installation. The command then exits with 1. A warning means that the
bundle can be installed, but something recommended is missing. `type` is the name of such findings in operator-framework's own validator; in JSON
it is `checkType`.

The checks create all objects in an API server in memory, which rejects what kube-apiserver 1.36 would reject. These are the objects of the bundle
and its examples. They include the Deployments, roles and webhooks that OLM creates from the ClusterServiceVersion.

This page is generated from the validators, and the test suite checks it.
"""


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION, "## Always", ""]
    for validator in ALWAYS:
        lines += [f"### {validator.summary}", "", *_table(validator.checks)]
    lines += ["## Optional checks", ""]
    lines += [
        "Select one with `--select-optional name=NAME`, or all checks of a suite with `suite=SUITE`. `--list-optional` lists them.",
        "",
    ]
    listed: dict[Check, str] = {}
    for validator in OPTIONAL:
        lines += _heading(validator)
        # The checks of another validator are not repeated.
        if validator.checks[0] in listed:
            lines += [f"Its checks are listed at `{listed[validator.checks[0]]}`.", ""]
        else:
            lines += _table(validator.checks)
        listed |= dict.fromkeys(validator.checks, validator.name)
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(validator: Validator) -> Iterator[str]:
    suite = f" In the suite `{validator.suite}`." if validator.suite else ""
    text = f"{validator.summary[:1].upper()}{validator.summary[1:]}.{suite}"
    yield from (f"### {validator.name}", "", fill(text, 140, break_on_hyphens=False, break_long_words=False), "")


def _table(checks: Iterable[Check]) -> Iterator[str]:
    yield "| code | level | type | what is wrong |"
    yield "|---|---|---|---|"
    for check in checks:
        yield f"| `{check.code}` | {check.level.value} | {check.type} | {check.summary} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
