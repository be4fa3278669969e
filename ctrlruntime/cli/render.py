"""`ctrl render`: the objects of a kustomization, printed, written or compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ctrlruntime.cli.output import read_text, say, source_name
from ctrlruntime.project.generated import apply, changes
from ctrlruntime.project.kustomize import differences, read_documents, written
from ctrlruntime.project.kustomize import render as rendered
from ctrlruntime.project.kustomize.files import check_name

__all__ = ["render"]

_HELP = """Print the objects of a kustomization: what `kubectl kustomize FOLDER` prints, without kubectl.

    FOLDER must have a kustomization.yaml (default: config/default). Remote resources, Helm charts, plugins and vars are not supported: use
    kubectl for them.

    \b
    Examples:
      ctrl render
      ctrl render config/overlays/test --image registry.example.com/shop:v1 -o dist/install.yaml
      kubectl kustomize config/default | ctrl render --compare -
    """


@click.command(help=_HELP)
@click.argument("folder", default="config/default", metavar="[FOLDER]", type=click.Path(path_type=Path))
@click.option("--image", metavar="IMAGE", help="Image of the operator.  [default: the image in FOLDER]")
@click.option(
    "-o", "--output", metavar="FILE|DIR",
    help="File for all objects, or a folder (existing, or ending with /) with one file for each object.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.option(
    "--compare", "other", metavar="FILE|-",
    help="Print only a diff with the objects in FILE (- reads from standard input), and exit with 1 if they differ.",
)  # fmt: skip
def render(*, folder: Path, image: str | None, output: str | None, as_json: bool, other: str | None) -> None:
    if other is not None and (output is not None or as_json):
        raise click.UsageError("--compare cannot be used with --output or --json, because it writes nothing")
    objects = rendered(folder)
    if image is not None:
        from ctrlruntime.project.deployment import with_image

        objects = with_image(objects, image)
    if other is not None:
        _compare(objects, other)
    elif output is None:
        say(_text(objects, as_json=as_json), nl=False)
    else:
        _write(objects, output, as_json=as_json)


def _text(objects: Sequence[Mapping[str, Any]], *, as_json: bool) -> str:
    return json.dumps(objects, indent=2) + "\n" if as_json else written(objects)


def _compare(objects: Sequence[Mapping[str, Any]], other: str) -> None:
    given = [each for each in read_documents(read_text(other), source_name(other)) if isinstance(each, dict)]
    is_same = True
    for line in differences(given, objects, given_name=source_name(other)):
        is_same = False
        say(line, nl=False)
    if not is_same:
        click.get_current_context().exit(1)


def _write(objects: Sequence[Mapping[str, Any]], output: str, *, as_json: bool) -> None:
    path = Path(output)
    if path.is_dir() or output.endswith("/"):
        ending = "json" if as_json else "yaml"
        files = {path / f"{_file_name(each)}.{ending}": _one(each, as_json=as_json) for each in objects}
    else:
        files = {path: _text(objects, as_json=as_json)}
    apply(changes(files))
    say(f"{len(objects)} objects in {path}")


def _one(each: Mapping[str, Any], *, as_json: bool) -> str:
    return json.dumps(each, indent=2) + "\n" if as_json else written([each])


def _file_name(each: Mapping[str, Any]) -> str:
    """`group_version_kind_namespace_name` in lower case, without the parts that are missing."""
    metadata = each["metadata"]
    parts = (
        str(each.get("apiVersion") or "").replace("/", "_"),
        each["kind"],
        metadata.get("namespace"),
        metadata["name"],
    )
    name = "_".join(str(part).lower() for part in parts if part).replace("/", "_").replace(":", "-")
    check_name(f"{name}.yaml", f"{each['kind']} {str(metadata['name'])[:100]}")
    return name
