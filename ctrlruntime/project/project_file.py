"""A kubebuilder PROJECT file (version 3): what a project in Go has, in the terms of our settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ctrlruntime.api.kind import guess_plural
from ctrlruntime.api.yaml_nodes import load
from ctrlruntime.errors import ConfigError
from ctrlruntime.project import names
from ctrlruntime.project.settings import PROJECT, Resource

__all__ = ["ProjectFile", "project_file", "read_project_file"]

_LARGEST: Final = 1024 * 1024
"""Bytes of a file; a thousand kinds need a quarter."""

_LAYOUT: Final = "go.kubebuilder.io/"
_KUBERNETES: Final = "k8s.io/api/"
"""The Go packages of built-in kinds; kubebuilder before 4.3 marks them by this path alone."""

_FIX: Final = "Correct the file, or restore it from version control"
_BY_HAND: Final = "Create a project with `ctrl init --domain example.com`, and add each kind with `ctrl import CRD.yaml --own -o FILE.py`"

_TEXT, _FLAG, _LIST, _MAP = (str, "text"), (bool, "true or false"), (list, "a list"), (dict, "a map")
_TOP: Final = {
    "projectName": _TEXT, "domain": _TEXT, "multigroup": _FLAG, "namespaced": _FLAG, "plugins": _MAP, "resources": _LIST,
}  # fmt: skip
_RESOURCE: Final = {
    "group": _TEXT, "domain": _TEXT, "version": _TEXT, "kind": _TEXT, "plural": _TEXT, "path": _TEXT, "core": _FLAG, "external": _FLAG,
    "controller": _FLAG, "controllers": _LIST, "api": _MAP, "webhooks": _MAP,
}  # fmt: skip
_API: Final = {"namespaced": _FLAG}
_WEBHOOKS: Final = {
    "defaulting": _FLAG, "validation": _FLAG, "conversion": _FLAG, "spoke": _LIST, "defaultingPath": _TEXT, "validationPath": _TEXT,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFile:
    """The content of a PROJECT file."""

    project_name: str = ""
    domain: str = ""
    namespaced: bool = False
    multigroup: bool = False
    resources: tuple[Resource, ...] = ()
    notes: tuple[str, ...] = ()
    """A line for each part of the file that has no counterpart here."""


def read_project_file(folder: Path) -> ProjectFile:
    """Return the PROJECT file of a folder, after which the project is named by default. Raises: ConfigError, of one line, with what to do."""
    path = folder / PROJECT
    if not path.is_file():
        raise ConfigError(f"{folder} has no file PROJECT. Pass the folder of a kubebuilder project")
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigError(
                f"{path} is larger than 1 MiB, so it is not kubebuilder's. Restore it from version control"
            )
        found = project_file(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(path, error) from error
    return replace(found, project_name=found.project_name or names.label(folder.resolve().name))


def project_file(text: str, where: str) -> ProjectFile:
    """Return the content of a PROJECT file; `where` is its path, for messages. Raises: ConfigError, of one line, with what to do."""
    import yaml

    try:
        tree = load(text)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{where} is not YAML: {' '.join(str(error).split())}. {_FIX}") from error
    if not isinstance(tree, Mapping) or "version" not in tree:
        raise ConfigError(f"{where} is not a PROJECT file of kubebuilder, because it has no version. {_FIX}")
    if str(tree["version"]) != "3":
        raise ConfigError(f"{where} has version {tree['version']!r:.40}, and only version 3 can be read. {_BY_HAND}")
    _check_layout(tree.get("layout"), where)
    _check(tree, _TOP, f"{where}: ")
    entries: list[Any] = tree.get("resources") or []
    resources = [_resource(entry, f"{where}: resources[{place}]") for place, entry in enumerate(entries)]
    return ProjectFile(
        project_name=tree.get("projectName") or "",
        domain=tree.get("domain") or "",
        namespaced=bool(tree.get("namespaced")),
        multigroup=bool(tree.get("multigroup")),
        resources=tuple(_with_spokes(resources, entries)),
        notes=tuple(_notes(tree, entries)),
    )


def _check_layout(layout: Any, where: str) -> None:
    layouts = layout if isinstance(layout, list) else [layout]
    if layout is not None and not any(isinstance(one, str) and one.startswith(_LAYOUT) for one in layouts):
        shown = ", ".join(f"{one!s:.60}" for one in layouts)
        raise ConfigError(f"{where} has the layout {shown!r}, and only {_LAYOUT}v4 can be taken over. {_BY_HAND}")


def _check(tree: Mapping[Any, Any], types: Mapping[str, tuple[type[Any], str]], where: str) -> None:
    for key, (wanted, word) in types.items():
        value = tree.get(key)
        if value is not None and not isinstance(value, wanted):
            raise ConfigError(f"{where}{key} must be {word}, not {value!r:.40}. {_FIX}")


def _resource(entry: Any, where: str) -> Resource:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where} must be a map, not {entry!r:.40}. {_FIX}")
    _check(entry, _RESOURCE, f"{where}.")
    if missing := next((key for key in ("version", "kind") if not entry.get(key)), None):
        raise ConfigError(f"{where} has no {missing}. {_FIX}")
    api, webhooks = (entry.get(key) or {} for key in ("api", "webhooks"))
    _check(api, _API, f"{where}.api.")
    _check(webhooks, _WEBHOOKS, f"{where}.webhooks.")
    kind = entry["kind"]
    is_external = bool(entry.get("core") or entry.get("external")) or (entry.get("path") or "").startswith(_KUBERNETES)
    resource = Resource(
        group=_group(entry, is_external=is_external),
        version=entry["version"],
        kind=kind,
        plural=entry.get("plural") or guess_plural(kind),
        # The file tells the scope of the project's own kinds alone, and leaves a false out.
        namespaced=is_external or not api or bool(api.get("namespaced")),
        is_external=is_external,
        controller=bool(entry.get("controller") or entry.get("controllers")),
        defaulting=bool(webhooks.get("defaulting")),
        validation=bool(webhooks.get("validation")),
        defaulting_path=webhooks.get("defaultingPath") or "",
        validation_path=webhooks.get("validationPath") or "",
        spokes=tuple(str(each) for each in webhooks.get("spoke") or ()),
    )
    try:
        names.resource(resource.group, (resource.version, *resource.spokes), kind, resource.plural)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}. Remove the entry from the file, and add this kind by hand") from error
    return resource


def _group(entry: Mapping[str, Any], *, is_external: bool) -> str:
    group, domain = entry.get("group") or "", entry.get("domain") or ""
    if is_external and group == "core":
        return ""
    return ".".join(part for part in (group, domain) if part)


def _with_spokes(resources: Sequence[Resource], entries: Sequence[Mapping[str, Any]]) -> Iterator[Resource]:
    """Yield the resources; kubebuilder before 4.4 names no spokes, so that the first version with a conversion is the hub of all others."""
    with_hub = {(each.group, each.kind) for each in resources if each.spokes}
    for resource, entry in zip(resources, entries, strict=True):
        key = (resource.group, resource.kind)
        if (entry.get("webhooks") or {}).get("conversion") and key not in with_hub:
            with_hub.add(key)
            others = (each.version for each in resources if (each.group, each.kind) == key)
            yield replace(resource, spokes=tuple(version for version in others if version != resource.version))
        else:
            yield resource


def _notes(tree: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        if len(entry.get("controllers") or ()) > 1:
            yield f"{entry['kind']} has {len(entry['controllers'])} controllers, and one is created. Add the others by hand"
    if tree.get("plugins"):
        yield f"these plugins of PROJECT are not taken over: {', '.join(map(str, tree['plugins']))}"
