"""`ctrl delete`: kinds and webhooks that `ctrl create` added are deleted from a project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ctrlruntime.cli.create import kind_options
from ctrlruntime.cli.go_flags import GoFlagsCommand
from ctrlruntime.cli.output import say, warn
from ctrlruntime.project.scaffold import Deletion, Removal, planned_deletion, without_api, without_webhook
from ctrlruntime.project.settings import find_project, read_settings

__all__ = ["delete"]

F = TypeVar("F", bound=Callable[..., Any])

_API_HELP = """Delete a version of a kind, with its controller, tests, sample and manifests.

    Delete its webhooks first. You are asked for confirmation if you changed a file that would be deleted. Clusters do not change.

    \b
    Examples:
      ctrl delete api --group webapp --version v1 --kind Guestbook
      ctrl delete api --group apps --version v1 --kind Deployment --external
    """

_WEBHOOK_HELP = """Delete webhooks of a kind, with their tests and manifests; without a flag, all webhooks of this version.

    You are asked for confirmation if you changed a file that would be deleted. If other webhooks remain, a file that you changed is kept.
    Clusters do not change.

    \b
    Examples:
      ctrl delete webhook --group webapp --version v1 --kind Guestbook
      ctrl delete webhook --group webapp --version v1 --kind Guestbook --defaulting
      ctrl delete webhook --group core --version v1 --kind Pod
    """


@click.group()
def delete() -> None:
    """Delete a kind or its webhooks from the project."""


def _options(command: F) -> F:
    for option in (
        click.option("--yes", "--skip-confirmation", "yes", is_flag=True, help="Do not ask for confirmation."),
        click.option(
            "--external", "--core", is_flag=True, help="The kind is built in or of another project; GROUP is its whole group."
        ),
    ):  # fmt: skip
        command = option(command)
    return kind_options(command)


@delete.command(cls=GoFlagsCommand, help=_API_HELP)
@_options
def api(*, group: str, version: str, kind: str, external: bool, yes: bool) -> None:
    folder = find_project(Path.cwd())
    removal = without_api(read_settings(folder), group, version, kind, is_external=external)
    deletion = _delete(folder, removal, yes=yes)
    _say_left(deletion, removal)
    resource = removal.resource
    crd = f"{resource.plural}.{resource.group}"
    if any(each.kind == kind and each.group == resource.group for each in removal.after.own_resources):
        say(f"The CRD {crd} no longer has {version}. Clusters change with the next `ctrl deploy` or `ctrl install`.")
    elif not resource.is_external:
        say(
            f"Clusters keep the CRD {crd}. `ctrl deploy` deletes a CRD that it created and that has no objects. "
            f"To delete it with all its objects, run: kubectl delete crd {crd}"
        )


@delete.command(cls=GoFlagsCommand, help=_WEBHOOK_HELP)
@_options
@click.option("--defaulting", is_flag=True, help="Delete the defaulting webhook.")
@click.option(
    "--programmatic-validation", "--validation", "validation", is_flag=True, help="Delete the validating webhook."
)
@click.option("--conversion", is_flag=True, help="Delete the conversion webhook.")
def webhook(
    *,
    group: str,
    version: str,
    kind: str,
    external: bool,
    yes: bool,
    defaulting: bool,
    validation: bool,
    conversion: bool,
) -> None:
    folder = find_project(Path.cwd())
    removal = without_webhook(
        read_settings(folder),
        group,
        version,
        kind,
        defaulting=defaulting,
        validation=validation,
        conversion=conversion,
        is_external=external,
    )
    deletion = _delete(folder, removal, yes=yes)
    _say_left(deletion, removal)
    if removal.resource.spokes and not any(each.spokes for each in removal.after.resources if each.kind == kind):
        when = f"Without the conversion in {deletion.kept[0]}, the" if deletion.kept else "The"
        say(f"{when} versions of {kind} are no longer converted. They must have the same fields, or values are lost.")
    say("Clusters change with the next `ctrl deploy`.")


def _delete(folder: Path, removal: Removal, *, yes: bool) -> Deletion:
    deletion = planned_deletion(folder, removal)
    if deletion.changed and not yes:
        say("these files have your changes, and will be deleted:", err=True)
        for path in deletion.changed:
            say(f"  {path}", err=True)
        click.confirm("Continue?", abort=True, err=True)
    for line in deletion.apply(warn):
        say(line)
    return deletion


def _say_left(deletion: Deletion, removal: Removal) -> None:
    """Say what the user has to do by hand."""
    for path in deletion.kept:
        warn(f"{path} has your changes, so it stays. Remove the deleted webhook from it, and run `ctrl manifests`")
    references = deletion.references(removal.after.package)
    if references:
        warn(f"deleted modules are still imported, in {', '.join(references)}. Remove these lines")
    say("")
