"""`ctrl bundle validate`: every check of a bundle, without a cluster or a registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ctrlruntime.cli.output import Coloured, say
from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from ctrlruntime.olm.finding import Finding

__all__ = ["validate"]

_HELP: Final = """Validate a bundle, without a cluster or a registry.

    DIR is its folder. The command checks its files, annotations and dependencies, every object with the rules of kube-apiserver, and the
    ClusterServiceVersion with the rules of the Operator Lifecycle Manager. Each finding is a line with the file, the object, the field, the
    problem and, in brackets, the code of the check. Codes do not change; docs/reference/bundle-checks.md lists them.

    Some checks are optional; --list-optional lists them.

    \b
    With -o json:
      {"passed": false,
       "outputs": [{"type": "error", "code": "csv-replaces", "checkType": "CSVFileNotValid", "message": …,
                    "file": …, "object": "ClusterServiceVersion/shop.v0.1.0", "path": "spec.replaces"}]}
    `type` is error or warning, and `checkType` the error type of operator-framework's validator.

    Exits with 1 if it finds an error, and with 0 if it finds only warnings.

    \b
    Examples:
      ctrl bundle validate
      ctrl bundle validate ./bundle --select-optional suite=operatorframework
      ctrl bundle validate --select-optional 'name in (capabilities, categories)'
      ctrl bundle validate --select-optional name=alpha-deprecated-apis --optional-values k8s-version=1.36
    """
_COLOURS: Final = {"error": "red", "warning": "yellow"}


def _pairs(_ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"expected NAME=VALUE, got {each!r}")
        pairs[name] = value
    return pairs


@click.command(help=_HELP)
@click.argument("folder", default="bundle", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option(
    "--select-optional",
    "selectors",
    multiple=True,
    metavar="LABELS",
    help="Also run the optional checks with these labels (name and suite). Can be repeated.",
)
@click.option("--list-optional", is_flag=True, help="List the optional checks, and validate nothing.")
@click.option(
    "--optional-values",
    "values",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Value for an optional check, such as k8s-version=1.36. Can be repeated.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(("text", "json", "json-alpha1")),
    default="text",
    show_default=True,
    help="Format of the findings; json-alpha1 is the name of json in operator-sdk.",
)
def validate(
    *, folder: Path, selectors: tuple[str, ...], list_optional: bool, values: dict[str, str], output: str
) -> None:
    from ctrlruntime.olm.bundle import read_bundle
    from ctrlruntime.olm.validation import validate as find

    is_json = output != "text"
    if list_optional:
        _list(is_json=is_json)
        return
    bundle = read_bundle(folder)
    try:
        findings = find(bundle, optional=selectors, values=values)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error
    errors = sum(finding.level == "error" for finding in findings)
    if is_json:
        document = {"passed": not errors, "outputs": [_document(finding) for finding in findings]}
        say(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for finding in findings:
            say(Coloured(finding.level.value, _COLOURS[finding.level.value]), f": {finding} [{finding.code}]")
        say(_closing(folder, errors, len(findings) - errors), err=True)
    if errors:
        click.get_current_context().exit(1)


def _list(*, is_json: bool) -> None:
    from ctrlruntime.olm.validation import OPTIONAL

    if is_json:
        listed = [{"name": each.name, "suite": each.suite, "summary": each.summary} for each in OPTIONAL]
        say(json.dumps(listed, indent=2))
        return
    width = max(len(each.name) for each in OPTIONAL)
    for each in OPTIONAL:
        suite = f" (suite={each.suite})" if each.suite else ""
        say(f"name={each.name:<{width}}  {each.summary}{suite}")


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "type": finding.level.value,
        "code": finding.code,
        "checkType": finding.check.type,
        "message": finding.text,
        "file": finding.file,
        "object": finding.object,
        "path": finding.path,
    }


def _closing(folder: Path, errors: int, warnings: int) -> str:
    if not errors and not warnings:
        return f"{folder} is valid"
    return f"{folder}: {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
