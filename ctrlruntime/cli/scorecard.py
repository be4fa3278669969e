"""`ctrl scorecard`: the scorecard's tests of a bundle, without a cluster."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import click

from ctrlruntime.cli.output import Coloured, say
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.scorecard import (
    Outcome,
    State,
    configuration_of,
    documents,
    junit,
    read_configuration,
    run,
    selected,
)
from ctrlruntime.selector import LabelSelector, parse_labels

__all__ = ["scorecard"]

_HELP: Final = """Run the scorecard's tests of a bundle, without a cluster.

    BUNDLE is its folder. The tests are those of its tests/scorecard/config.yaml. The six tests of scorecard-test
    run locally. Tests of other images need a cluster, and are listed as not run. Exits with 1 if a test fails or has an error.

    \b
    Examples:
      ctrl scorecard
      ctrl scorecard ./bundle -l suite=olm -o json
      ctrl scorecard -l 'test in (basic-check-spec-test, olm-spec-descriptors-test)'
    """
_COLOURS: Final = {State.PASS: "green", State.FAIL: "red", State.ERROR: "red", State.NOT_RUN: "yellow"}
_COUNTED: Final = {State.PASS: "passed", State.FAIL: "failed", State.ERROR: "with errors", State.NOT_RUN: "not run"}


def _selector(_ctx: click.Context, _param: click.Parameter, text: str) -> LabelSelector:
    try:
        return parse_labels(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(help=_HELP)
@click.argument("bundle", default="bundle", metavar="[BUNDLE]", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Choice(("text", "json", "xunit")), default="text", show_default=True,
    help="Format: text lines, a TestList as JSON, or JUnit XML.",
)  # fmt: skip
@click.option(
    "-l", "--selector", default="", metavar="LABELS", callback=_selector, help="Run the tests with these labels."
)
@click.option(
    "-c", "--config", type=click.Path(path_type=Path), help="Configuration file.  [default: that of the bundle]"
)
@click.option("-L", "--list", "only_list", is_flag=True, help="List the tests without running them.")
def scorecard(
    *,
    bundle: Path,
    output: Literal["text", "json", "xunit"],
    selector: LabelSelector,
    config: Path | None,
    only_list: bool,
) -> None:
    found = read_bundle(bundle)
    tests = selected(read_configuration(config) if config else configuration_of(found), selector)
    if not tests:
        raise ConfigError(f"no test has the labels {selector}. List the tests with ctrl scorecard --list")
    outcomes = [Outcome(test) for test in tests] if only_list else run(found, tests)
    match output:
        case "json":
            say(json.dumps(documents(outcomes), indent=2))
        case "xunit":
            say(junit(outcomes), nl=False)
        case "text":
            _print(outcomes)
    if any(each.is_bad for each in outcomes):
        click.get_current_context().exit(1)


def _print(outcomes: Sequence[Outcome]) -> None:
    counts: Counter[State] = Counter()
    width = max(len(each.test.name) for each in outcomes)
    for each in outcomes:
        if each.state is None:
            labels = ",".join(f"{key}={value}" for key, value in sorted(each.test.labels.items()))
            say(f"{each.test.name:<{width}}  {labels}".rstrip())
            continue
        counts[each.state] += 1
        say(f"{each.test.name:<{width}}  ", Coloured(each.state.value, _COLOURS[each.state]))
        # The log of a test that ran has nothing that a person needs.
        lines = [each.log] if each.state is State.NOT_RUN else []
        lines += [*each.errors, *(f"suggestion: {text}" for text in each.suggestions)]
        for text in lines:
            say(f"  {text}")
    if counts:
        said = ", ".join(f"{counts[state]} {word}" for state, word in _COUNTED.items() if counts[state])
        say(f"{len(outcomes)} test{'' if len(outcomes) == 1 else 's'}: {said}")
