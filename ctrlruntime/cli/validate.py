"""`ctrl validate`: manifests against the schemas of Kubernetes and of the definitions among them, without a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from ctrlruntime.cli.output import read_text, say, source_name
from ctrlruntime.errors import ConfigError

__all__ = ["validate"]

_HELP = """Validate manifests as kube-apiserver 1.36 would, without a cluster: fields, types, values, CEL rules.

    FILE is YAML or JSON, a folder with such files, or - for standard input. An object of a custom kind is checked if its
    CustomResourceDefinition is among the files. Otherwise it is listed as not checked. Each problem is a line with the file, the object, the
    field and the cause. Exits with 1 if it finds a problem.

    \b
    Examples:
      ctrl render | ctrl validate -
      ctrl validate config/crd/bases config/samples/webapp_v1_cart.yaml
    """


@click.command(help=_HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object with the problems and the unchecked objects."
)
def validate(*, files: tuple[str, ...], as_json: bool) -> None:
    from ctrlruntime.project.checking import check as check_texts  # it brings the embedded API server

    found = check_texts(list(_texts(files)))
    if as_json:
        lists = {"problems": found.problems, "notChecked": found.skipped}
        shown = {name: [each.document() for each in several] for name, several in lists.items()}
        say(json.dumps({"checked": found.objects, **shown}, indent=2))
    else:
        for problem in found.problems:
            say(str(problem))
        for skipped in found.skipped:
            say(f"not checked: {skipped}", err=True)
        say(f"{_count(found.objects, 'object')} checked, {_count(len(found.problems), 'problem')}", err=True)
    if found.problems:
        click.get_current_context().exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _texts(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name in names:
        folder = Path(name)
        if name == "-" or not folder.is_dir():
            yield source_name(name), read_text(name)
            continue
        inside = sorted(path for path in folder.iterdir() if path.suffix in {".yaml", ".yml", ".json"})
        inside = [path for path in inside if path.stem != "kustomization"]  # it is for kustomize, and no object
        if not inside:
            raise ConfigError(f"no YAML or JSON files in {name}")
        yield from ((str(path), read_text(str(path))) for path in inside)
