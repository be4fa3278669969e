"""`ctrl create`: kinds, controllers and webhooks are added to a project."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ctrlruntime.cli.go_flags import GoFlagsCommand
from ctrlruntime.cli.init import show
from ctrlruntime.cli.output import say, warn
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.package import make_importable
from ctrlruntime.project.scaffold import (
    Addition,
    Container,
    add,
    from_file,
    from_module,
    is_builtin,
    with_api,
    with_webhook,
)
from ctrlruntime.project.settings import Resource, Settings, find_project, read_settings

__all__ = ["create", "kind_options"]

F = TypeVar("F", bound=Callable[..., Any])

_API_HELP = """Add a kind: a class, a controller and a passing test.

    The command creates new files, and updates pyproject.toml and the generated files in config/. Your own files do not change. The API group
    is GROUP.DOMAIN, with the project's domain. If the kind exists in another version, this adds a version, and the first version remains the
    stored one.

    \b
    Examples:
      ctrl create api --group webapp --version v1 --kind Guestbook
      ctrl create api --group cache --version v1alpha1 --kind Memcached \\
          --image memcached:1.6 --image-container-port 11211 --run-as-user 1001
      ctrl create api --group webapp --version v1 --kind Guestbook --fleet
      ctrl create api --group apps --version v1 --kind Deployment --external
      ctrl create api --group cert-manager.io --version v1 --kind Certificate --external --external-api-path certificates.yaml

    With --image, the controller is complete: it creates a Deployment of the image for each object, sets a condition, records events and
    cleans up with a finalizer. With --fleet as well: it creates a ConfigMap in each cluster of `ctrl run --clusters PATH` for each object.
    """

_WEBHOOK_HELP = """Add webhooks for a kind of the project or a built-in kind.

    \b
    Examples:
      ctrl create webhook --group webapp --version v1 --kind Guestbook --defaulting --validation
      ctrl create webhook --group webapp --version v1 --kind Guestbook --conversion --spoke v1alpha1
      ctrl create webhook --group core --version v1 --kind Pod --defaulting
      ctrl create webhook --group apps --version v1 --kind Deployment --external --validation
    """


@click.group()
def create() -> None:
    """Add a kind, its controller or its webhooks to the project."""


def kind_options(command: F) -> F:
    """Add the options that name a version of a kind."""
    for option in (
        click.option("--kind", required=True, metavar="KIND", help="Kind in PascalCase, like Guestbook."),
        click.option("--version", required=True, metavar="VERSION", help="API version, like v1, v1alpha1 or v2beta3."),
        click.option("--group", required=True, metavar="GROUP", help="API group, without the project's domain."),
    ):
        command = option(command)
    return command


_force = click.option("--force", is_flag=True, help="Overwrite existing files.")


@create.command(cls=GoFlagsCommand, help=_API_HELP)
@kind_options
@_force
@click.option(
    "--plural", default="", metavar="NAME", help="Plural name of the resource.  [default: derived from the kind]"
)
@click.option("--namespaced/--cluster-scoped", default=True, show_default=True, help="Scope of the kind.")
@click.option("--resource/--no-resource", default=True, show_default=True, help="Create the class of the kind.")
@click.option(
    "--controller/--no-controller",
    default=None,
    help="Create a controller.  [default: controller, if no version of the kind has one]",
)
@click.option(
    "--external",
    "--core",
    is_flag=True,
    help="Create a controller for a built-in kind, or for a kind of another project.",
)
@click.option(
    "--external-api-path",
    default="",
    metavar="PATH",
    help="File of the external kind's CRD, or the module in your package that has its class.",
)
@click.option(
    "--external-api-domain", default="", metavar="DOMAIN", help="Domain of the external kind's group, such as io."
)
@click.option("--fleet", is_flag=True, help="Create a controller that copies each object to several clusters.")
@click.option("--image", default="", metavar="IMAGE", help="Create a controller that runs this image.")
@click.option(
    "--image-container-command",
    default="",
    metavar="COMMAND",
    help="Command of the container: words, or a comma-separated list.",
)
@click.option(
    "--image-container-port",
    metavar="PORT",
    type=click.IntRange(1, 65535),
    help="Port of the container.",
)
@click.option(
    "--run-as-user",
    metavar="UID",
    type=click.IntRange(min=1),
    help="Numeric user ID of the container, other than root.",
)
def api(
    *,
    group: str,
    version: str,
    kind: str,
    force: bool,
    plural: str,
    namespaced: bool,
    resource: bool,
    controller: bool | None,
    external: bool,
    external_api_path: str,
    external_api_domain: str,
    fleet: bool,
    image: str,
    image_container_command: str,
    image_container_port: int | None,
    run_as_user: int | None,
) -> None:
    if not image and (image_container_command or image_container_port or run_as_user):
        raise click.UsageError("--image-container-command, --image-container-port and --run-as-user require --image")
    if not resource and controller is False:
        raise click.UsageError("--no-resource and --no-controller together create nothing")
    if fleet and image:
        raise click.UsageError("--fleet cannot be used with --image, because each creates a controller")
    if (external_api_path or external_api_domain) and not external:
        raise click.UsageError("--external-api-path and --external-api-domain require --external")
    folder = find_project(Path.cwd())
    before = read_settings(folder)
    if external_api_domain:
        group = f"{group}.{external_api_domain}"
    imported, files = _imported(folder, before, external_api_path, group, version, kind)
    addition = with_api(
        before,
        group,
        version,
        kind,
        plural=plural,
        namespaced=namespaced,
        resource=resource,
        controller=controller,
        is_external=external,
        imported=imported,
        container=_container(image, image_container_command, image_container_port, run_as_user),
        fleet=fleet,
        force=force,
    )
    _write(folder, replace(addition, files=files), force=force)
    if not external and is_builtin(group, version, kind):
        say(
            f"{kind} {addition.resource.group}/{version} is a new kind. For a controller of the built-in {group}/{version}, use --external"
        )
    for line in _about_versions(addition):
        say(line)
    say(f"\nNext:{_next_for_api(addition)}\n  ctrl manifests\n  pytest")


@create.command(cls=GoFlagsCommand, help=_WEBHOOK_HELP)
@kind_options
@_force
@click.option("--defaulting", is_flag=True, help="Create a defaulting webhook.")
@click.option(
    "--programmatic-validation", "--validation", "validation", is_flag=True, help="Create a validating webhook."
)
@click.option("--conversion", is_flag=True, help="Create a conversion webhook with --version as the hub.")
@click.option(
    "--spoke",
    "spokes",
    multiple=True,
    metavar="VERSION[,VERSION]",
    help="With --conversion: versions to convert. Can be repeated.",
)
@click.option(
    "--external", "--core", is_flag=True, help="The kind is built in or of another project; GROUP is its whole group."
)
def webhook(
    *,
    group: str,
    version: str,
    kind: str,
    force: bool,
    defaulting: bool,
    validation: bool,
    conversion: bool,
    spokes: tuple[str, ...],
    external: bool,
) -> None:
    if spokes and not conversion:
        raise click.UsageError("--spoke requires --conversion")
    folder = find_project(Path.cwd())
    settings = read_settings(folder)
    addition = with_webhook(
        settings,
        group,
        version,
        kind,
        defaulting=defaulting,
        validation=validation,
        conversion=conversion,
        is_external=external,
        spokes=[spoke.strip() for text in spokes for spoke in text.split(",") if spoke.strip()],
    )
    _write(folder, addition, force=force)
    for line in _about_conversion(addition):
        say(line)
    say(f"\nNext: implement the webhooks in {addition.settings.package}/webhooks\n  ctrl manifests\n  pytest")


def _imported(
    folder: Path, settings: Settings, path: str, group: str, version: str, kind: str
) -> tuple[Resource | None, dict[str, str]]:
    """Return the external kind at --external-api-path, and the module with its class if that is generated."""
    if not path:
        return None, {}
    if Path(path).suffix in {".yaml", ".yml", ".json"}:
        return from_file(settings, Path(path), group, version, kind, warn=warn)
    make_importable(folder, settings)
    return from_module(settings, path, group, version, kind), {}


def _container(image: str, command: str, port: int | None, user: int | None) -> Container | None:
    if not image:
        return None
    try:
        command.encode()  # an argument may hold bytes that are not text, and no file of the project can
        words = command.split(",") if "," in command else shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"cannot split --image-container-command {command!r} into words: {error}") from error
    return Container(image=image, command=tuple(words), port=port or 0, run_as_user=user or 0)


def _write(folder: Path, addition: Addition, *, force: bool) -> None:
    show(add(folder, addition, warn=warn, force=force), _shown(folder))


def _shown(folder: Path) -> Path:
    """The folder as the reader's paths begin: nothing where it is the current one."""
    return Path() if folder == Path.cwd() else folder


def _next_for_api(addition: Addition) -> str:
    resource, package = addition.resource, addition.settings.package
    if resource.image:
        about = f" {resource.kind} runs {resource.image}"
        return about + ("" if resource.run_as_user else ". Its container must not run as root: see --run-as-user")
    if resource.fleet:
        return f" {resource.kind} has a ConfigMap in each cluster of `ctrl run --clusters PATH`"
    if resource.is_external:
        return f" implement the controller of {resource.kind} in {package}/controllers"
    return f" add the fields of {resource.kind} in {package}/api" + (
        f", and implement its controller in {package}/controllers" if resource.controller else ""
    )


def _about_versions(addition: Addition) -> list[str]:
    resource = addition.resource
    others = [
        each
        for each in addition.settings.own_resources
        if (each.group, each.kind) == (resource.group, resource.kind) and each.version != resource.version
    ]
    if not others or resource.is_external:
        return []
    stored = next((each.version for each in others if each.storage), others[0].version)
    hub, spoke = sorted((stored, resource.version), key=lambda version: version != stored)
    command = f"ctrl create webhook --group {resource.group} --version {hub} --kind {resource.kind} --conversion --spoke {spoke}"
    return [
        f"{resource.kind} is stored in {stored}. To store it in {resource.version}, move `storage=True` to that class.",
        f"If the fields differ, run: {command}",
    ]


def _about_conversion(addition: Addition) -> list[str]:
    resource = addition.resource
    if not resource.spokes or resource.storage:
        return []
    place = "to that class, and `storage = true` in pyproject.toml to that version, so that no values are lost."
    return [f"{resource.kind} is converted through {resource.version}. Move `storage=True` {place}"]
