"""`ctrl crd`: definitions of kinds as files. `ctrl crd diff` says what a change of one breaks."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.project.compatibility import (
    Comparison,
    Finding,
    Level,
    compare_all,
    definitions_in,
    read_definitions,
)
from ctrlruntime.project.manifests import Choice, manifests
from ctrlruntime.project.package import load

__all__ = ["crd"]

_COLORS: Final = {Level.BREAKING: "red", Level.RISKY: "yellow", Level.HARMLESS: "green"}
_REFUSES: Final = {
    "": "",
    "new values": " Who holds such a value keeps it until it is changed (Kubernetes 1.30 on).",
    "updates": " Updates of existing objects are refused, too.",
}
_WIDEST: Final = 60
"""Characters of a value that are printed; --json has the rest."""

_DIFF_HELP = """Say what changes from OLD to NEW, and refuse what breaks objects or clients.

    OLD and NEW are files or folders of CustomResourceDefinitions, or - for the standard input. In the place of NEW, --module MODULE takes the
    classes of a package. With OLD from the cluster, its status.storedVersions is known, too:

    \b
      kubectl get crd websites.docs.example.com -o yaml | ctrl crd diff - --module shop
      ctrl crd diff released/crd config/crd

    Changes are breaking (exit code 1), risky or harmless.
    """


@click.group()
def crd() -> None:
    """Look at what changes in definitions."""


@crd.command(help=_DIFF_HELP)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@click.option("--module", metavar="MODULE", help="Compare with the classes of this package.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def diff(*, old: str, new: str | None, module: str | None, as_json: bool) -> None:
    if (new is None) == (module is None):
        raise click.UsageError("give NEW or --module MODULE, one of them")
    if old == new == "-":
        raise click.UsageError("only one of OLD and NEW can be the standard input")
    before = _read(old)
    after = _read(new) if new is not None else _generated(str(module))
    comparisons = compare_all(before, after)
    if as_json:
        click.echo(json.dumps([_as_json(each.name, one) for each in comparisons for one in each.findings], indent=2))
    else:
        _print(comparisons)
    if any(one.level is Level.BREAKING for each in comparisons for one in each.findings):
        click.get_current_context().exit(1)


def _read(source: str) -> Sequence[Mapping[str, Any]]:
    if source != "-":
        return read_definitions(Path(source))
    found = definitions_in(sys.stdin.read(), "the standard input")
    if not found:
        raise ConfigError("there is no CustomResourceDefinition in the standard input")
    return found


def _generated(module: str) -> Sequence[Mapping[str, Any]]:
    made = manifests(load(module), choice=Choice(rbac=False, webhook=False)).definitions
    if not made:
        raise GenerateError(f"{module} declares no kinds")
    return made


def _as_json(definition: str, finding: Finding) -> Mapping[str, Any]:
    return {
        "definition": definition,
        "code": finding.code,
        "level": finding.level,
        "version": finding.version,
        "path": finding.path,
        "was": finding.was,
        "now": finding.now,
        "text": finding.text,
        "refuses": finding.refuses,
    }


def _print(comparisons: Iterable[Comparison]) -> None:
    counts: Counter[Level] = Counter()
    for comparison in comparisons:
        if comparison.findings:
            click.echo(comparison.name)
        for finding in comparison.findings:
            counts[finding.level] += 1
            _print_finding(finding)
    click.echo(", ".join(f"{counts[level]} {level}" for level in Level if counts[level]) or "no changes")


def _print_finding(finding: Finding) -> None:
    level = click.style(f"{finding.level:<8}", fg=_COLORS[finding.level])
    place = " ".join(part for part in (finding.version, finding.path) if part)
    click.echo(f"  {level}  {finding.code}{' at ' if place else ''}{place}{_change(finding)}")
    click.echo(f"            {finding.text}.{_REFUSES[finding.refuses]}")


def _change(finding: Finding) -> str:
    if finding.was is None and finding.now is None:
        return ""
    return f": {_value(finding.was)} -> {_value(finding.now)}"


def _value(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
