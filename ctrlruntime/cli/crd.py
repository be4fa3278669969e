"""`ctrl crd`: definitions of kinds as files. `ctrl crd diff` says what a change of one breaks."""

from __future__ import annotations

import difflib
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.generate.definitions import definitions_in, read_definitions
from ctrlruntime.project.compatibility import Code, Comparison, Finding, Level, compare_all
from ctrlruntime.project.manifests import Choice, manifests
from ctrlruntime.project.package import load

__all__ = ["crd"]

_ALLOWED: Final = "allowed"
_COLORS: Final[Mapping[str, str]] = {"breaking": "red", "risky": "yellow", "harmless": "green"}
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

    Changes are breaking (exit code 1), risky or harmless. A breaking change that is meant is let through by its code, and is printed as
    allowed:

    \b
      ctrl crd diff released/crd config/crd --allow field-removed --allow enum-value-removed
    """


@click.group()
def crd() -> None:
    """Look at what changes in definitions."""


@crd.command(help=_DIFF_HELP)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@click.option("--module", metavar="MODULE", help="Compare with the classes of this package.")
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="CODE",
    callback=lambda _, __, codes: _known(codes),
    help="Let breaking changes of this code pass; may be given several times.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def diff(*, old: str, new: str | None, module: str | None, allowed: tuple[str, ...], as_json: bool) -> None:
    if (new is None) == (module is None):
        raise click.UsageError("give NEW or --module MODULE, one of them")
    if old == new == "-":
        raise click.UsageError("only one of OLD and NEW can be the standard input")
    before = _read(old)
    after = _read(new) if new is not None else _generated(str(module))
    comparisons = compare_all(before, after)
    if as_json:
        findings = [_as_json(each.name, one, allowed) for each in comparisons for one in each.findings]
        click.echo(json.dumps(findings, indent=2))
    else:
        _print(comparisons, allowed)
    if any(one.level is Level.BREAKING and one.code not in allowed for each in comparisons for one in each.findings):
        click.get_current_context().exit(1)


def _known(codes: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes:
        if code not in set(Code):
            near = difflib.get_close_matches(code, Code, n=1)
            hint = f"did you mean {near[0]}?" if near else "take one that the command prints, such as field-removed"
            raise click.BadParameter(f"there is no code {code!r}; {hint}", param_hint="--allow")
    return codes


def _read(source: str) -> Sequence[Mapping[str, Any]]:
    where = "the standard input" if source == "-" else source
    found = definitions_in(sys.stdin.read(), where) if source == "-" else read_definitions(Path(source))
    if not found:
        raise ConfigError(f"there is no CustomResourceDefinition in {where}")
    return found


def _generated(module: str) -> Sequence[Mapping[str, Any]]:
    made = manifests(load(module), choice=Choice(rbac=False, webhook=False)).definitions
    if not made:
        raise GenerateError(f"{module} declares no kinds")
    return made


def _as_json(definition: str, finding: Finding, allowed: Collection[str]) -> Mapping[str, Any]:
    return {
        "definition": definition,
        "code": finding.code,
        "level": finding.level,
        "allowed": finding.code in allowed,
        "version": finding.version,
        "path": finding.path,
        "was": finding.was,
        "now": finding.now,
        "text": finding.text,
        "refuses": finding.refuses,
    }


def _print(comparisons: Iterable[Comparison], allowed: Collection[str]) -> None:
    counts: Counter[str] = Counter()
    for comparison in comparisons:
        if comparison.findings:
            click.echo(comparison.name)
        for finding in comparison.findings:
            word = _ALLOWED if finding.level is Level.BREAKING and finding.code in allowed else finding.level.value
            counts[word] += 1
            _print_finding(finding, word)
    said = [
        f"{counts[word]} {word}" for word in (Level.BREAKING, _ALLOWED, Level.RISKY, Level.HARMLESS) if counts[word]
    ]
    click.echo(", ".join(said) or "no changes")


def _print_finding(finding: Finding, word: str) -> None:
    level = click.style(f"{word:<8}", fg=_COLORS.get(word))
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
