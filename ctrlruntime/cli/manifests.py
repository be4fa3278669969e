"""`ctrl manifests`: the files that follow from a package, or from a project with its settings, written or checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from ctrlruntime.cli.output import say, warn
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Options
from ctrlruntime.generate.rbac import ROLE_NAME
from ctrlruntime.project.generated import Refresh, changes
from ctrlruntime.project.manifests import CRD_FOLDER, Choice
from ctrlruntime.project.manifests import manifests as manifests_of
from ctrlruntime.project.package import load

__all__ = ["manifests"]

_HELP = """Generate the manifests of an operator from its classes, @ctrl.rbac and setup(mgr).

    In a project (a folder that `ctrl init` created, or a folder below it), the command writes the whole kustomize tree config/, as set in
    [tool.ctrlruntime]. The files that you edit (config/manager, config/samples, config/manifests/bases) are created if missing and never
    changed. Generated files are marked in their first line, and are deleted when their source no longer exists. Remove the first line of a
    file to keep your own version.

    With --module, the command writes these files for any package:

    \b
      DIR/crd/bases/GROUP_PLURAL.yaml
      DIR/rbac/role.yaml
      DIR/webhook/manifests.yaml

    --crd, --rbac and --webhook select some of them. MODULE is imported with its submodules. Kinds are the ctrl.Object classes defined there.
    Permissions come from @ctrl.rbac on classes, functions and methods, and from the controllers that the function setup(mgr) builds, if it
    exists. The manager is not started.

    \b
    Examples:
      ctrl manifests
      ctrl manifests --check
      ctrl manifests --module shop.operator --output-dir deploy
    """
_OF_MODULE: Final = ("folder", "crd", "rbac", "webhook", "role_name", "namespaces")
"""Options that are settings in a project."""


@click.command(help=_HELP)
@click.option("--module", metavar="MODULE", help="Dotted name of the operator's package.  [default: the project's]")
@click.option(
    "--project", "project", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the project.  [default: the current folder, or the nearest parent that is a project]",
)  # fmt: skip
@click.option(
    "--output-dir", "folder", default="config", show_default=True, metavar="DIR",
    type=click.Path(path_type=Path), help="With --module: folder of the files.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; print a diff of stale files, and exit with 1 if there are any."
)
@click.option("--diff", is_flag=True, help="Write nothing; print a diff of the changes.")
@click.option("--crd", is_flag=True, help="With --module: generate CRDs.")
@click.option("--rbac", is_flag=True, help="With --module: generate roles.")
@click.option("--webhook", is_flag=True, help="With --module: generate webhook configurations.")
@click.option(
    "--role-name", default=ROLE_NAME, show_default=True, metavar="NAME", help="With --module: name of the roles."
)
@click.option(
    "--namespace", "namespaces", multiple=True, metavar="NAME",
    help="With --module: restrict the permissions of controllers to a namespace, with a Role. Rules of @ctrl.rbac do not change. "
    "Can be repeated.",
)  # fmt: skip
@click.option(
    "--max-description", type=click.IntRange(min=0), metavar="N",
    help="Maximum bytes of a description; 0 omits descriptions.",
)  # fmt: skip
def manifests(
    *,
    module: str | None,
    project: Path | None,
    folder: Path,
    check: bool,
    diff: bool,
    crd: bool,
    rbac: bool,
    webhook: bool,
    role_name: str,
    namespaces: tuple[str, ...],
    max_description: int | None,
) -> None:
    options = Options(max_description=max_description)
    if module is None:
        _refuse_options_of_module()
        _of_project(project, options, check=check, diff=diff)
        return
    if project is not None:
        raise click.UsageError("use --module or --project, not both: the settings of a project have its package")
    some = crd or rbac or webhook
    choice = Choice(crd=crd or not some, rbac=rbac or not some, webhook=webhook or not some)
    made = manifests_of(
        load(module), choice=choice, role_name=role_name, options=options, namespaces=namespaces, warn=warn
    )
    files = made.files()
    if not files:
        warn(f"module {module} defines no kinds, permissions or webhooks, so no manifests are generated")
    if folder.is_file():
        raise ConfigError(f"cannot write manifests to {folder}: it is a file. Use a folder")
    paths = {folder / name: text for name, text in files.items()}
    found = Refresh(folder=folder, files=len(paths), changes=changes(paths))
    if choice.crd:
        for path in sorted({*(folder / CRD_FOLDER).glob("*.yaml")} - {*paths}):
            warn(f"{path} was not generated from {module}. Delete it if its class no longer exists")
    _finish(found, check=check, diff=diff)


def _refuse_options_of_module() -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _OF_MODULE and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"{parameter.opts[0]} requires --module. In a project, edit [tool.ctrlruntime] of pyproject.toml"
            )


def _of_project(folder: Path | None, options: Options, *, check: bool, diff: bool) -> None:
    from ctrlruntime.project.config import refresh
    from ctrlruntime.project.settings import find_project, read_settings

    # Relative to here, as a person would name the files.
    root = folder if folder is not None else Path(os.path.relpath(find_project(Path.cwd())))
    _finish(refresh(root, read_settings(root), options=options, warn=warn), check=check, diff=diff)


def _finish(found: Refresh, *, check: bool, diff: bool) -> None:
    if not check and not diff:
        found.apply()
        for line in found.report():
            say(line)
        return
    for text in found.diffs():
        say(text, nl=False)
    if found.changes and check:
        command = click.get_current_context().command_path
        say(f"error: stale: {', '.join(map(str, found.stale))}. Run {command} without --check", err=True)
        click.get_current_context().exit(1)
