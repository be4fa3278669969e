"""`ctrl bundle compare`: what an upgrade from one bundle to the next breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from ctrlruntime.cli.changes import as_json, breaks, known_codes, print_changes
from ctrlruntime.cli.output import say
from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.upgrade import Code, given_objects
from ctrlruntime.olm.upgrade import compare as compare_bundles
from ctrlruntime.project.compatibility import Code as DefinitionCode

__all__ = ["compare"]

_HELP: Final = """Say what changes from the bundle OLD to the bundle NEW, and refuse what breaks those who upgrade.

    Both are folders. Looked at is what the Operator Lifecycle Manager looks at: whether it goes from one release to the other, whether every
    stored version stays in its definition, whether objects fit the new definitions; then what changes in the definitions, as `ctrl crd diff`
    says it, and what the operator may and needs. The examples of OLD stand for objects that exist; --object brings real ones.

    \b
    Examples:
      ctrl bundle compare released/bundle bundle
      ctrl bundle compare released/bundle bundle --stored v1 --allow version-not-served
      kubectl get kettles -A -o yaml | ctrl bundle compare released/bundle bundle --object -
    """


@click.command(help=_HELP)
@click.argument("old", metavar="OLD", type=click.Path(path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(path_type=Path))
@click.option(
    "--stored", multiple=True, metavar="[DEFINITION=]VERSION",
    help="Objects are stored in this version (status.storedVersions); may be given several times.  [default: the version OLD stores]",
)  # fmt: skip
@click.option(
    "--object", "files", multiple=True, metavar="FILE|-", help="Objects that exist; may be given several times."
)
@click.option(
    "--allow", "allowed", multiple=True, metavar="CODE",
    callback=lambda _, __, given: known_codes(given, [*DefinitionCode, *Code]),
    help="Let breaking changes of this code pass; may be given several times.",
)  # fmt: skip
@click.option("--json", "json_wanted", is_flag=True, help="Print the changes as JSON.")
def compare(
    *,
    old: Path,
    new: Path,
    stored: tuple[str, ...],
    files: tuple[str, ...],
    allowed: tuple[str, ...],
    json_wanted: bool,
) -> None:
    if files.count("-") > 1:
        raise click.UsageError("the standard input can be read once")
    found = compare_bundles(read_bundle(old), read_bundle(new), stored=stored, objects=given_objects(map(_read, files)))
    groups = [(each.name, each.findings) for each in found]
    if json_wanted:
        say(json.dumps(as_json(groups, allowed, name="object"), indent=2))
    else:
        print_changes(groups, allowed)
    if breaks(groups, allowed):
        click.get_current_context().exit(1)


def _read(name: str) -> tuple[str, str]:
    try:
        with click.open_file(name, encoding="utf-8") as file:
            return "standard input" if name == "-" else name, str(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(name, error) from error
