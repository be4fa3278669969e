"""Kinds by the names a command is given: those of the project, and those of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import kind_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.project import names
from ctrlruntime.project.scaffold.files import Part
from ctrlruntime.project.settings import Resource, Settings
from ctrlruntime.scheme import Scheme

__all__ = ["Addition", "addition", "builtin", "find", "from_flag", "full_group", "is_builtin"]


@dataclass(frozen=True, slots=True)
class Addition:
    """What is added to a project: the settings with it, the kind, and which parts of it are new."""

    settings: Settings
    resource: Resource
    parts: frozenset[Part]
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """More files by their path, such as the module of an imported class."""


def addition(settings: Settings, resource: Resource, *parts: Part) -> Addition:
    """Return the addition of these parts of a kind."""
    return Addition(settings.with_resource(resource), resource, frozenset(parts))


def builtin(group: str, version: str, kind: str) -> Resource:
    """Return a kind of Kubernetes, as a project has it when it adds to it."""
    info = kind_of(Scheme().class_for(builtin_name(group, version, kind)))
    return Resource(
        group=info.group,
        version=version,
        kind=kind,
        plural=info.plural,
        namespaced=info.scope == "Namespaced",
        is_external=True,
    )


def is_builtin(group: str, version: str, kind: str) -> bool:
    """Say whether a kind is one of Kubernetes. The core group is `core`."""
    return Scheme().knows(builtin_name(group, version, kind))


def builtin_name(group: str, version: str, kind: str) -> GroupVersionKind:
    return GroupVersionKind("" if group == "core" else group, version, kind)


def find(
    settings: Settings, group: str, version: str, kind: str, *, is_external: bool | None = None
) -> Resource | None:
    """Return a version of a kind in the settings, or None. `is_external` None: its own first, then one of another project."""
    own, foreign = full_group(settings, group), builtin_name(group, version, kind).group
    for each in sorted(settings.resources, key=lambda one: one.is_external):
        if is_external is not None and each.is_external != is_external:
            continue
        wanted = foreign if each.is_external else own
        if (each.group, each.version, each.kind) == (wanted, version, kind):
            return each
    return None


def full_group(settings: Settings, group: str) -> str:
    """Return a group with the project's domain, which it may have already. Raises: ConfigError for an invalid group."""
    from_flag("--group", names.group, group)
    is_full = group == settings.domain or group.endswith(f".{settings.domain}")
    return group if is_full else from_flag("--group", names.group, f"{group}.{settings.domain}")


def from_flag(flag: str, rule: Callable[[str], str], name: str) -> str:
    """Return a name by a rule of `names`. Raises: ConfigError, with the flag that sets the name."""
    try:
        return rule(name)
    except ConfigError as error:
        raise ConfigError(f"{error}. Give another {flag}") from error
