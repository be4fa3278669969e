"""`ctrl bundle compare`: what an upgrade from one bundle to the next breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import click

from ctrlruntime.cli.changes import as_json, breaks, known_codes, print_changes
from ctrlruntime.cli.output import read_text, say, source_name
from ctrlruntime.olm.bundle import read_bundle
from ctrlruntime.olm.upgrade import Code, given_objects
from ctrlruntime.olm.upgrade import compare as compare_bundles
from ctrlruntime.project.compatibility import Code as DefinitionCode

__all__ = ["compare"]

_HELP: Final = """Compare two bundles, and fail if the upgrade from OLD to NEW breaks users.

    OLD and NEW are folders. The checks are those of the Operator Lifecycle Manager: an upgrade path from OLD to NEW, every stored version
    still in its CRD, and existing objects valid in the new CRDs. Then it lists the changes of the CRDs, as `ctrl crd diff` does, and of the
    operator's permissions and requirements. The examples of OLD are checked as existing objects; add real ones with --object.

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
    "--stored", multiple=True, metavar="[CRD=]VERSION",
    help="Version in status.storedVersions of the CRDs in the cluster, or of one CRD. Can be repeated.  [default: the storage version of OLD]",
)  # fmt: skip
@click.option(
    "--object",
    "files",
    multiple=True,
    metavar="FILE|-",
    help="File with existing objects; - reads from standard input. Can be repeated.",
)
@click.option(
    "--allow", "allowed", multiple=True, metavar="CODE",
    callback=lambda _, __, given: known_codes(given, [*DefinitionCode, *Code]),
    help="Allow breaking changes with this code. Can be repeated.",
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
        raise click.UsageError("standard input can be read only once")
    objects = given_objects((source_name(file), read_text(file)) for file in files)
    found = compare_bundles(read_bundle(old), read_bundle(new), stored=stored, objects=objects)
    groups = [(each.name, each.findings) for each in found]
    if json_wanted:
        say(json.dumps(as_json(groups, allowed, name="object"), indent=2))
    else:
        print_changes(groups, allowed)
    if breaks(groups, allowed):
        click.get_current_context().exit(1)
