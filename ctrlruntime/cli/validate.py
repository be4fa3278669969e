"""`ctrl validate`: manifests against the schemas of Kubernetes and of the definitions among them, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ctrlruntime.cli.output import read_text, say, source_name
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.manifest_files import manifest_files

__all__ = ["validate"]

_HELP = """Validate manifests as kube-apiserver 1.36 would, without a cluster: fields, types, values, CEL rules.

    FILE is YAML or JSON, a folder with such files, or - for standard input. Of a folder, the subfolders are read too. Hidden files, Helm
    charts, kustomizations and their patches are left out.

    An object of a custom kind is checked if its CustomResourceDefinition is among the files. Otherwise it is listed as not checked. Each
    problem is a line with the file, the object, the field and the cause. Exits with 1 if it finds a problem.

    \b
    Examples:
      ctrl render | ctrl validate -
      ctrl validate config
      ctrl validate config/crd/bases config/samples/webapp_v1_cart.yaml
    """


@click.command(help=_HELP)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--json", "as_json", is_flag=True, help="Print a JSON object with the problems and the unchecked objects."
)
def validate(*, files: tuple[str, ...], as_json: bool) -> None:
    from ctrlruntime.project.checking import check as check_texts  # it brings the embedded API server

    in_folders = _in_folders(files)
    named = [name for name in files if name == "-" or not Path(name).is_dir()]
    texts = [(source_name(name), read_text(name)) for name in dict.fromkeys([*named, *in_folders])]
    found = check_texts(texts, optional=in_folders)
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


def _in_folders(names: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for name in names:
        if name == "-" or not Path(name).is_dir():
            continue
        inside = manifest_files(Path(name))
        if not inside:
            raise ConfigError(f"no YAML or JSON files in {name}")
        found += map(str, inside)
    return found
