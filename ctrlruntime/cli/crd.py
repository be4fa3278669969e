"""`ctrl crd`: definitions of kinds as files. `ctrl crd diff` says what a change of one breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ctrlruntime.cli.changes import as_json as changes_as_json
from ctrlruntime.cli.changes import breaks, known_codes, print_changes
from ctrlruntime.cli.connection import package_here
from ctrlruntime.cli.output import read_text, say, source_name, warn
from ctrlruntime.errors import ConfigError, GenerateError
from ctrlruntime.generate.definitions import definitions_in, read_definitions
from ctrlruntime.project.compatibility import Code, compare_all
from ctrlruntime.project.manifests import Choice, manifests
from ctrlruntime.project.package import load

__all__ = ["crd"]

_DIFF_HELP = """Compare CRDs, and fail on changes that break existing objects or clients.

    OLD and NEW are files or folders of CustomResourceDefinitions, or - for standard input. Without NEW, OLD is compared with the classes of
    the project, or of --module MODULE. If OLD comes from the cluster, its status.storedVersions is used too:

    \b
      kubectl get crd websites.docs.example.com -o yaml | ctrl crd diff -
      ctrl crd diff released/crd --module shop
      ctrl crd diff released/crd config/crd

    Changes are breaking (exit code 1), risky or harmless. Allow an intended breaking change with its code:

    \b
      ctrl crd diff released/crd config/crd --allow field-removed --allow enum-value-removed
    """


@click.group()
def crd() -> None:
    """Compare CRDs."""


@crd.command(help=_DIFF_HELP)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="[NEW]", required=False)
@click.option("--module", metavar="MODULE", help="Compare with the classes of this package.  [default: the project's]")
@click.option(
    "--allow",
    "allowed",
    multiple=True,
    metavar="CODE",
    callback=lambda _, __, given: known_codes(given, Code),
    help="Allow breaking changes with this code. Can be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def diff(*, old: str, new: str | None, module: str | None, allowed: tuple[str, ...], as_json: bool) -> None:
    if new is not None and module is not None:
        raise click.UsageError("use NEW or --module MODULE, not both")
    if old == new == "-":
        raise click.UsageError("only one of OLD and NEW can be standard input")
    if new is None and module is None:
        module = package_here()
        if module is None:
            raise click.UsageError("this folder is not in a project. Pass NEW or --module MODULE")
    before = _read(old)
    after = _read(new) if new is not None else _generated(str(module))
    groups = [(each.name, each.findings) for each in compare_all(before, after)]
    if as_json:
        say(json.dumps(changes_as_json(groups, allowed, name="definition"), indent=2))
    else:
        print_changes(groups, allowed)
    if breaks(groups, allowed):
        click.get_current_context().exit(1)


def _read(source: str) -> Sequence[Mapping[str, Any]]:
    where = source_name(source)
    found = definitions_in(read_text(source), where) if source == "-" else read_definitions(Path(source))
    if not found:
        raise ConfigError(f"no CustomResourceDefinition in {where}")
    return found


def _generated(module: str) -> Sequence[Mapping[str, Any]]:
    made = manifests(load(module), choice=Choice(rbac=False, webhook=False), warn=warn).definitions
    if not made:
        raise GenerateError(f"module {module} defines no kinds")
    return made
