"""The rules of `ctrl init` and `ctrl create api`: what may be added to a project, as settings before and after.

This module reads and writes no files. Each function raises a ConfigError, of one line, for an invalid addition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Final

from ctrlruntime.api.kind import guess_plural
from ctrlruntime.errors import ConfigError
from ctrlruntime.project import names
from ctrlruntime.project.scaffold.lookup import Addition, addition, builtin, find, from_flag, full_group, is_builtin
from ctrlruntime.project.settings import Resource, Settings

__all__ = ["LICENSES", "Container", "new_project", "refuse_clash", "with_api"]

LICENSES: Final = ("apache2", "none")

_IMAGE: Final = re.compile(r"[a-z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The image that an operator is made for, and how it is run."""

    image: str
    command: tuple[str, ...] = ()
    port: int = 0
    run_as_user: int = 0


def new_project(
    folder: Path,
    *,
    domain: str,
    project_name: str = "",
    package: str = "",
    image: str = "",
    owner: str = "",
    license: str = "none",
    namespaced: bool = False,
    multigroup: bool = False,
) -> Settings:
    """Return the settings of a new project in `folder`; names that are left out follow from the folder's."""
    name = from_flag("--project-name", names.project_name, project_name or names.label(folder.absolute().name))
    if "\n" in owner or '"' in owner:
        raise ConfigError(f"the owner {owner!r} must be one line without double quotes. Give another --owner")
    return Settings(
        project_name=name,
        package=from_flag("--package", names.package, package or name.replace("-", "_")),
        domain=from_flag("--domain", names.domain, domain),
        image=_image(image) if image else f"{name}:latest",
        namespaced=namespaced,
        multigroup=multigroup,
        owner=owner,
        license=license,
        scaffold_version=version_of("ctrlruntime"),
    )


def with_api(
    settings: Settings,
    group: str,
    version: str,
    kind: str,
    *,
    plural: str = "",
    namespaced: bool = True,
    resource: bool = True,
    controller: bool | None = None,
    is_external: bool = False,
    imported: Resource | None = None,
    container: Container | None = None,
    fleet: bool = False,
    force: bool = False,
) -> Addition:
    """Return what a kind, or a controller for one, adds.

    `container` and `fleet` make a complete controller: one that runs an image, or one for several clusters. Without `resource`, the kind must
    exist in the project or in Kubernetes. `controller` None: create one, unless another version has it. `imported` is an external kind with a
    class in the package.
    """
    from_flag("--version", names.version, version)
    from_flag("--kind", names.kind, kind)
    if (flag := _complete(container, fleet=fleet)) and (is_external or not resource):
        raise ConfigError(f"{flag} cannot be used with --external or --no-resource, because it creates a kind")
    known = find(settings, group, version, kind, is_external=False)
    if is_external or (not resource and known is None):
        return _with_external(settings, group, version, kind, imported, controller=controller)
    if not resource:
        assert known is not None, "else it were external"
        return _with_controller(settings, known, force=force)
    if group == "core":
        raise ConfigError(
            f"core is the group of built-in kinds. Add --external for a controller of {kind}, or give another --group"
        )
    if known is not None and not force:
        raise ConfigError(
            f"{kind} {known.group}/{version} is already in this project. Use --force to overwrite its files"
        )
    made = _new(
        settings,
        group,
        version,
        kind,
        plural,
        namespaced=namespaced,
        controller=controller,
        container=container,
        fleet=fleet,
    )
    if known is not None:  # its webhooks stay, and it is stored as it was
        kept = {name: getattr(known, name) for name in ("storage", "defaulting", "validation", "spokes")}
        made = replace(made, **kept)
    return addition(settings, made, "api", "controller" if made.controller else "api")


# Kinds of the project


def _new(
    settings: Settings,
    group: str,
    version: str,
    kind: str,
    plural: str,
    *,
    namespaced: bool,
    controller: bool | None,
    container: Container | None,
    fleet: bool,
) -> Resource:
    full = full_group(settings, group)
    others = [
        each for each in settings.own_resources if (each.group, each.kind) == (full, kind) and each.version != version
    ]
    for other in others:
        if other.namespaced != namespaced:
            scope = "namespaced" if other.namespaced else "cluster-scoped"
            raise ConfigError(
                f"{kind} is {scope} in version {other.version}, and all versions of a kind must have the same scope. Add --{scope}"
            )
        if plural and other.plural != plural:
            raise ConfigError(
                f"{kind} has the plural {other.plural} in version {other.version}, and all versions must have the same. Leave out --plural"
            )
    chosen = from_flag("--plural", names.plural, plural or (others[0].plural if others else guess_plural(kind)))
    refuse_clash(settings, full, kind, chosen)
    has_controller = any(each.controller for each in others)
    if controller and has_controller:
        other = next(each for each in others if each.controller)
        raise ConfigError(f"{kind} already has a controller, for version {other.version}. Add --no-controller")
    resource = Resource(
        group=full,
        version=version,
        kind=kind,
        plural=chosen,
        namespaced=namespaced,
        storage=not any(each.storage for each in others),
        controller=not has_controller if controller is None else controller,
        fleet=fleet,
    )
    if flag := _complete(container, fleet=fleet):
        _refuse_incomplete(resource, flag)
    return resource if container is None else _running(resource, container)


def _complete(container: Container | None, *, fleet: bool) -> str:
    """Return the flag that creates a complete controller; empty without one."""
    return "--fleet" if fleet else "" if container is None else "--image"


def _refuse_incomplete(resource: Resource, flag: str) -> None:
    if not resource.controller:
        raise ConfigError(f"{flag} cannot be used with --no-controller, because it creates a controller")
    if not resource.namespaced:
        made = "ConfigMap" if resource.fleet else "Deployment"
        raise ConfigError(
            f"{flag} cannot be used with --cluster-scoped, because it creates a {made} in the namespace of each object"
        )


def _running(resource: Resource, container: Container) -> Resource:
    if not 0 <= container.port <= 65535:
        raise ConfigError(f"--image-container-port must be from 1 to 65535, not {container.port}")
    if container.run_as_user < 0:
        raise ConfigError(
            f"--run-as-user must be the numeric ID of a user other than root, not {container.run_as_user}"
        )
    return replace(
        resource,
        image=_image(container.image),
        image_container_command=container.command,
        image_container_port=container.port,
        run_as_user=container.run_as_user,
    )


def _with_controller(settings: Settings, known: Resource, *, force: bool) -> Addition:
    if known.controller and not force:
        raise ConfigError(f"{known.kind} already has a controller. Use --force to overwrite its files")
    return addition(settings, replace(known, controller=True), "controller")


def refuse_clash(settings: Settings, group: str, kind: str, plural: str) -> None:
    """Refuse what two kinds cannot share: a name in one API group, or a module."""
    for each in settings.resources:
        if each.group == group and not each.is_external and each.kind != kind and plural == each.plural:
            raise ConfigError(f"{each.kind} already has the plural {plural} in {group}. Give another --plural")
        is_same_place = each.group == group or not settings.multigroup
        if is_same_place and each.kind.lower() == kind.lower() and (each.group, each.kind) != (group, kind):
            raise ConfigError(
                f"{kind} would have the same modules as {each.kind} {each.group or 'core'}/{each.version}. Give another --kind"
                + ("" if each.group == group else ", or create the project with `ctrl init --multigroup`")
            )


# Kinds of Kubernetes


def _with_external(
    settings: Settings,
    group: str,
    version: str,
    kind: str,
    imported: Resource | None,
    *,
    controller: bool | None,
) -> Addition:
    known = find(settings, group, version, kind, is_external=True) or imported
    if known is None and not is_builtin(group, version, kind):
        raise ConfigError(
            f"{group}/{version} {kind} is neither in this project nor built in. For a kind of another project, pass the file of its CRD "
            "in --external-api-path"
        )
    if controller is False:
        raise ConfigError(f"nothing to create: {kind} exists, and --no-controller skips its controller")
    known = known or builtin(group, version, kind)
    if known.controller:
        raise ConfigError(f"{kind} already has a controller")
    refuse_clash(settings, known.group, kind, known.plural)
    return addition(settings, replace(known, controller=True), "controller")


def _image(image: str) -> str:
    if not _IMAGE.fullmatch(image):
        raise ConfigError(f"the image {image!r} is not valid. Use a reference such as registry.example.com/shop:v1")
    return image
