"""`ctrl manifests`: the files that follow from a package, written or checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ctrlruntime.generate.options import Options
from ctrlruntime.generate.rbac import ROLE_NAME
from ctrlruntime.project.manifests import CRD_FOLDER, Choice
from ctrlruntime.project.manifests import manifests as manifests_of
from ctrlruntime.project.package import load
from ctrlruntime.project.tree import Change, Tree

__all__ = ["manifests"]

_HELP = """Write the manifests of an operator: what its classes, its @ctrl.rbac and its setup(mgr) say.

    MODULE is imported with its submodules. Kinds are the ctrl.Object classes defined there; permissions come from @ctrl.rbac over
    classes, functions and methods, and from what the function setup(mgr), if there is one, builds with the manager it is given (which
    never starts). The files are

    \b
      DIR/crd/bases/GROUP_PLURAL.yaml
      DIR/rbac/role.yaml
      DIR/webhook/manifests.yaml

    Without --crd, --rbac and --webhook all three kinds of files are made.
    """


@click.command(help=_HELP)
@click.option("--module", required=True, metavar="MODULE", help="Dotted name of the operator's package.")
@click.option(
    "--output-dir", "folder", default="config", show_default=True, metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path), help="Where the files are.",
)  # fmt: skip
@click.option(
    "--check", is_flag=True, help="Write nothing; print what is stale as a diff and exit with 1 if anything is."
)
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option("--crd", is_flag=True, help="Definitions.")
@click.option("--rbac", is_flag=True, help="Roles.")
@click.option("--webhook", is_flag=True, help="Webhook configurations.")
@click.option("--role-name", default=ROLE_NAME, show_default=True, metavar="NAME", help="Name of the roles.")
@click.option(
    "--namespace", "namespaces", multiple=True, metavar="NAME",
    help="Keep the operator to a namespace (again for each): what it needs there becomes a Role, not a ClusterRole.",
)  # fmt: skip
@click.option(
    "--max-description", type=click.IntRange(min=0), metavar="N",
    help="Cut descriptions after N bytes; 0 leaves them out.",
)  # fmt: skip
def manifests(
    *,
    module: str,
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
    some = crd or rbac or webhook
    choice = Choice(crd=crd or not some, rbac=rbac or not some, webhook=webhook or not some)
    package = load(module)
    made = manifests_of(
        package,
        choice=choice,
        role_name=role_name,
        options=Options(max_description=max_description),
        namespaces=namespaces,
        warn=_warn,
    )
    files = made.files()
    if not files:
        _warn(f"{module} declares no kinds, permissions or webhooks: nothing to write")
    tree = Tree(folder)
    changes = tree.changes(files)
    if choice.crd:
        for path in tree.leftovers(files, [CRD_FOLDER]):
            _warn(f"{path} does not come from {module}; remove it if it is a definition of yours that is gone")
    if check or diff:
        _show(changes, fail=check)
        return
    tree.write(changes)
    for change in changes:
        click.echo(f"{'created' if change.before is None else 'changed'} {change.path}")
    if files and not changes:
        click.echo(f"{len(files)} file{'s' if len(files) > 1 else ''} in {folder}: up to date")


def _show(changes: Sequence[Change], *, fail: bool) -> None:
    for change in changes:
        click.echo(change.diff(), nl=False)
    if changes and fail:
        command = click.get_current_context().command_path
        names = ", ".join(str(change.path) for change in changes)
        click.echo(f"error: stale: {names}; run {command} without --check", err=True)
        click.get_current_context().exit(1)


def _warn(text: str) -> None:
    click.echo(f"warning: {text}", err=True)
