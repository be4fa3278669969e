"""The rules of `ctrl create webhook`: which kinds may get which webhooks. This module reads and writes no files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ctrlruntime.errors import ConfigError
from ctrlruntime.project import names
from ctrlruntime.project.scaffold.lookup import Addition, addition, builtin, find, from_flag, is_builtin
from ctrlruntime.project.settings import Resource, Settings

__all__ = ["with_webhook"]


def with_webhook(
    settings: Settings,
    group: str,
    version: str,
    kind: str,
    *,
    defaulting: bool = False,
    validation: bool = False,
    conversion: bool = False,
    is_external: bool = False,
    spokes: Sequence[str] = (),
) -> Addition:
    """Return what webhooks for a kind of the project or of Kubernetes add. `spokes` are converted through `version`.

    `is_external`: `group` is the whole group of a built-in kind, and not one of the project. The group `core` always is.
    """
    from_flag("--version", names.version, version)
    from_flag("--kind", names.kind, kind)
    if not (defaulting or validation or conversion):
        raise ConfigError("no webhook to create. Add --defaulting, --validation or --conversion")
    found = find(settings, group, version, kind, is_external=True if is_external or group == "core" else None)
    if found is None and is_builtin(group, version, kind) and (is_external or group == "core"):
        found = builtin(group, version, kind)
    if found is None:
        built_in = ", or add --external for the built-in kind" if is_builtin(group, version, kind) else ""
        raise ConfigError(
            f"this project has no {kind} {group}/{version}. Run `ctrl create api --group {group} --version {version} --kind {kind}`{built_in}"
        )
    hub_of = _spokes(settings, found, spokes) if conversion or spokes else found.spokes
    with_them = replace(
        found,
        defaulting=defaulting or found.defaulting,
        validation=validation or found.validation,
        spokes=hub_of,
    )
    return addition(settings, with_them, "webhook")


def _spokes(settings: Settings, hub: Resource, spokes: Sequence[str]) -> tuple[str, ...]:
    if hub.is_external:
        raise ConfigError(f"cannot convert {hub.kind}: it is not a kind of this project. Leave out --conversion")
    others = {each.version for each in settings.own_resources if (each.group, each.kind) == (hub.group, hub.kind)} - {
        hub.version
    }
    if not spokes:
        if not others:
            raise ConfigError(
                f"{hub.kind} has only the version {hub.version}. Add another with `ctrl create api` first"
            )
        raise ConfigError(f"no version to convert to {hub.version}. Add --spoke {','.join(sorted(others))}")
    for spoke in spokes:
        if spoke == hub.version:
            raise ConfigError(f"--spoke {spoke} is the hub. Pass only other versions")
        if spoke not in others:
            raise ConfigError(f"{hub.kind} has no version {spoke}. Add it with `ctrl create api` first")
    for each in settings.own_resources:
        if (each.group, each.kind) == (hub.group, hub.kind) and each.spokes and each.version != hub.version:
            raise ConfigError(
                f"{hub.kind} already has the hub {each.version}, and a kind has one hub. Use --version {each.version}. To make {hub.version} "
                f"the hub, first run `ctrl delete webhook --group {hub.group} --version {each.version} --kind {hub.kind} --conversion`"
            )
    return tuple(dict.fromkeys((*hub.spokes, *spokes)))
