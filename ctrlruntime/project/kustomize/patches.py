"""Patches of a kustomization: strategic merge and JSON 6902, inline or from files, with and without a target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError, PatchError
from ctrlruntime.generate.documents import read_settings
from ctrlruntime.generate.options import Document
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.project.kustomize.files import read_objects, read_text
from ctrlruntime.project.kustomize.resources import Id, Kind, Resource, Resources
from ctrlruntime.project.kustomize.selecting import Selector
from ctrlruntime.project.kustomize.settings import Entry, read_selector
from ctrlruntime.project.kustomize.strategic import DELETED, strategic_merge

__all__ = ["apply_deprecated_json", "apply_deprecated_merges", "apply_patches"]

_FIELDS: Final = ("patch", "path", "target", "options")
_OPTIONS: Final = ("allowNameChange", "allowKindChange")


@dataclass(frozen=True, slots=True)
class _Patch:
    """One entry: operations, or documents to merge."""

    where: str
    target: Selector | None = None
    operations: list[Any] | None = None
    documents: tuple[Document, ...] = ()
    may_rename: bool = False
    may_change_kind: bool = False


def apply_patches(said: Entry, folder: Path, resources: Resources) -> None:
    """Apply `patches`. Raises: ConfigError."""
    for entry in said.entries("patches", _FIELDS):
        _apply(_read(entry, folder), resources)


def apply_deprecated_merges(said: Entry, folder: Path, resources: Resources) -> None:
    """Apply `patchesStrategicMerge`: paths, or patches as texts. Raises: ConfigError."""
    for at, text in enumerate(said.texts("patchesStrategicMerge")):
        where = f"{said.where}: patchesStrategicMerge[{at}]"
        inline = "\n" in text.strip() or text.lstrip().startswith("{")
        content = text if inline else read_text(folder, text, where)
        documents = read_objects(content, where if inline else str(folder / text))
        _apply(_Patch(where, documents=tuple(_checked(each, where) for each in documents)), resources)


def apply_deprecated_json(said: Entry, folder: Path, resources: Resources) -> None:
    """Apply `patchesJson6902`, which must find what they are for. Raises: ConfigError."""
    for entry in said.entries("patchesJson6902", _FIELDS):
        patch = _read(entry, folder)
        if patch.operations is None:
            raise ConfigError(f"{entry.where}: the patch must be a list of JSON patch operations")
        if patch.target is None or not patch.target.name:
            raise ConfigError(f"{entry.where}: the target requires a name")
        _apply(patch, resources)


def _read(entry: Entry, folder: Path) -> _Patch:
    path, inline = entry.text("path"), entry.text("patch")
    if bool(path) == bool(inline):
        raise ConfigError(
            f"{entry.where}: a patch requires either `path` or `patch`, but has {'both' if path else 'neither'}"
        )
    where = f"{entry.where} ({path})" if path else entry.where
    documents = _documents(read_text(folder, path, entry.where) if path else inline, where)
    target = read_selector(entry, "target")
    options = entry.entry("options", _OPTIONS) or Entry({}, where)
    if not documents:
        raise ConfigError(f"{where}: the patch is empty")
    if isinstance(documents[0], list):
        if target is None:
            raise ConfigError(f"{where}: a JSON patch requires a target. Add `target: {{kind: …, name: …}}`")
        return _Patch(where, target, documents[0])
    if len(documents) > 1 and target is not None:
        raise ConfigError(f"{where}: several patches cannot share a target. Write one entry for each")
    return _Patch(
        where,
        target,
        documents=tuple(_checked(each, where) for each in documents),
        may_rename=options.flag("allowNameChange"),
        may_change_kind=options.flag("allowKindChange"),
    )


def _documents(text: str, where: str) -> list[Any]:
    """The documents of a patch. What starts as a JSON list must be JSON: kustomize takes YAML's short lists for a mistake, too."""
    if not text.lstrip().startswith("["):
        documents = read_objects(text, where)
        return [read_settings(text, where)] if documents and isinstance(documents[0], list) else documents
    try:
        return [json.loads(text)]
    except ValueError as error:
        raise ConfigError(f"{where}: a patch that starts with '[' must be valid JSON: {error}") from error


def _checked(document: Any, where: str) -> Document:
    metadata: Any = document.get("metadata") if isinstance(document, dict) else None
    named = isinstance(metadata, dict) and metadata.get("name")
    if not isinstance(document, dict) or not document.get("kind") or not named:
        raise ConfigError(
            f"{where}: the patch must be a list of JSON patch operations, or an object with apiVersion, kind and metadata.name"
        )
    return document


def _apply(patch: _Patch, resources: Resources) -> None:
    if patch.operations is not None:
        for resource in _selected(patch, resources):
            _operate(patch, resource, resources)
        return
    for document in patch.documents:
        found = list(_selected(patch, resources)) if patch.target else [_named(patch, document, resources)]
        for resource in found:
            _merge(patch, document, resource, resources)


def _selected(patch: _Patch, resources: Resources) -> Iterator[Resource]:
    target = patch.target
    return (each for each in resources if target is not None and target.matches(each))


def _named(patch: _Patch, document: Document, resources: Resources) -> Resource:
    """The object that a patch without a target names."""
    metadata: Document = document["metadata"]
    kind = Kind.of(str(document.get("apiVersion") or ""), str(document["kind"]))
    wanted = Id(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))
    found = resources.where_ever(wanted.equals)
    if len(found) != 1:
        many = "no object" if not found else f"{len(found)} objects"
        raise ConfigError(
            f"{patch.where}: the patch is for {wanted} ({document.get('apiVersion')}), but matches {many}"
        )
    return found[0]


def _merge(patch: _Patch, document: Document, resource: Resource, resources: Resources) -> None:
    try:
        merged = strategic_merge(resource.tree, document, resource.kind)
    except ConfigError as error:
        raise ConfigError(f"{patch.where}: {resource.id}: {error}") from error
    if merged is DELETED or not merged:
        resources.remove(resource)
        return
    _replace(patch, resource, merged)


def _replace(patch: _Patch, resource: Resource, tree: Document) -> None:
    """Take the patched tree; a strategic merge keeps name and kind unless it may change them."""
    before = resource.id
    api_version, kind = resource.tree.get("apiVersion"), resource.tree.get("kind")
    metadata: Document = tree.setdefault("metadata", {})
    if not patch.may_rename:
        metadata["name"] = before.name
        if before.namespace or not metadata.get("namespace"):
            metadata["namespace"] = before.namespace
    if not metadata.get("namespace"):
        metadata.pop("namespace", None)
    if not patch.may_change_kind:
        tree["apiVersion"], tree["kind"] = api_version, kind
    if patch.may_rename or patch.may_change_kind:
        resource.remember()
    resource.tree = tree


def _operate(patch: _Patch, resource: Resource, resources: Resources) -> None:
    try:
        tree: Any = apply_json_patch(resource.tree, patch.operations or ())
    except PatchError as error:
        raise ConfigError(f"{patch.where}: {resource.id}: {error}") from error
    if not isinstance(tree, dict) or not tree.get("kind") or not (tree.get("metadata") or {}).get("name"):
        raise ConfigError(f"{patch.where}: the patch removes the kind or the name of {resource.id}")
    resource.remember()
    resource.tree = tree
    resources.check_unique(resource, patch.where)
