"""The page of all checks, made from the validators. Write it with `python tests/olm/checks_page.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill

from ctrlruntime.olm.finding import Check
from ctrlruntime.olm.validation import ALWAYS, OPTIONAL, Validator

PAGE = Path(__file__).parents[2] / "docs" / "olm-checks.md"
INTRODUCTION = """\
# Checks of a bundle

`ctrl bundle validate` looks for what is listed here. A finding names its check by the code, which stays. An error is what OLM, a catalog or
kube-apiserver refuses, or what does not work when it is installed; the command exits with 1. A warning is what can be installed, and
somebody will miss something. `type` is the word operator-framework's own validator has for such findings; JSON has it as `checkType`.

The objects of a bundle, the Deployments, roles and webhooks that OLM makes out of a ClusterServiceVersion, and its examples are created in
the memory of an API server, which says what kube-apiserver 1.36 would say.

This page is made from the validators, and the test suite holds it to them.
"""


def page() -> str:
    """Return the page."""
    lines = [INTRODUCTION, "## Always", ""]
    for validator in ALWAYS:
        lines += [f"### {validator.summary}", "", *_table(validator.checks)]
    lines += ["## When they are selected", ""]
    lines += [
        "`--select-optional name=NAME` runs one of these, `suite=SUITE` all of a suite. `--list-optional` prints them.",
        "",
    ]
    homes: dict[str, str] = {}
    for validator in OPTIONAL:
        lines += [*_heading(validator), *_checks(validator, homes)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(validator: Validator) -> Iterator[str]:
    suite = f" In the suite `{validator.suite}`." if validator.suite else ""
    text = f"{validator.summary[:1].upper()}{validator.summary[1:]}.{suite}"
    yield from (f"### {validator.name}", "", fill(text, 140, break_on_hyphens=False, break_long_words=False), "")


def _checks(validator: Validator, homes: dict[str, str]) -> Iterator[str]:
    """Yield the table of the checks that no validator above has, and where the others are."""
    own = [check for check in validator.checks if check.code not in homes]
    others = list(dict.fromkeys(f"`{homes[check.code]}`" for check in validator.checks if check.code in homes))
    homes.update({check.code: validator.name for check in own})
    if own:
        yield from _table(own)
    if others:
        above = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
        yield f"{'It also has checks' if own else 'Its checks are'} listed at {above}."
        yield ""


def _table(checks: Iterable[Check]) -> Iterator[str]:
    yield "| code | level | type | what is wrong |"
    yield "|---|---|---|---|"
    for check in checks:
        yield f"| `{check.code}` | {check.level.value} | {check.type} | {check.summary} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
