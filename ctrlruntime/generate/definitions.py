"""CustomResourceDefinitions read from files: the one reader for installing, comparing and importing them.

A definition is handed on as the server would take it: whole, of apiextensions.k8s.io/v1, and without nulls, which the server reads as
absent. Documents of other kinds are passed over, lists as kubectl prints them are opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import opened, read_documents, read_text
from ctrlruntime.generate.options import Document
from ctrlruntime.generate.shape import misshapen

__all__ = ["DefinitionSource", "definitions_in", "read_definitions"]

DefinitionSource: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]
"""A manifest as a tree, or the path of a file or folder of manifests."""

_KIND, _GROUP, _VERSION = "CustomResourceDefinition", "apiextensions.k8s.io", "apiextensions.k8s.io/v1"
_SUFFIXES: Final = {".json", ".yaml", ".yml"}
_NEEDED: Final = ("metadata.name", "spec.group", "spec.names.kind", "spec.names.plural", "spec.versions")
_VALUES: Final = {"default", "example", "enum"}
"""Keywords of a schema after which any value may follow, null too."""


def definitions_in(text: str, where: str) -> list[Document]:
    """Return the definitions in a text of YAML or JSON documents. Raises: ConfigError, which names `where`."""
    return list(_definitions(read_documents(text, where), where))


def read_definitions(source: DefinitionSource) -> list[Document]:
    """Return the definitions in a tree, a file, or the YAML and JSON files of a folder and the folders below it.

    There may be none. Raises: ConfigError for a path that is not there, a file that cannot be read, or a definition that is not whole.
    """
    if isinstance(source, Mapping):
        return list(_definitions([source], "a manifest"))
    path = Path(source)
    if not path.exists():
        raise ConfigError(f"cannot read CRDs from {path}: no such file or folder")
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    return [definition for file in files for definition in definitions_in(read_text(file), str(file))]


def _definitions(documents: Iterable[Any], where: str) -> Iterator[Document]:
    for document in opened(documents):
        if not isinstance(document, Mapping):
            continue
        document = cast("Mapping[str, Any]", document)
        group = str(document.get("apiVersion") or "").rpartition("/")[0]
        if document.get("kind") == _KIND and group in {"", _GROUP}:
            yield _whole(cast("Document", _without_nulls(document)), where)


def _without_nulls(tree: Any, *, is_named: bool = False) -> Any:
    """Return a copy without what is null. `is_named`: the keys are names that the user gave to fields, and no words of a schema."""
    if isinstance(tree, list):
        items: list[Any] = tree
        return [_without_nulls(one) for one in items]
    if not isinstance(tree, Mapping):
        return tree
    kept: Document = {}
    for key, one in cast("Mapping[str, Any]", tree).items():
        if key in _VALUES and not is_named:
            if one is not None or key != "enum":
                kept[key] = one
        elif one is not None:
            kept[key] = _without_nulls(one, is_named=key == "properties" and not is_named)
    return kept


def _whole(definition: Document, where: str) -> Document:
    """Refuse a CRD that is old or has no required field. The API server does all other checks."""
    name = _at(definition, "metadata.name")
    named = name or "a CRD"
    version = definition.get("apiVersion")
    if version != _VERSION:
        cause = f"the apiVersion {version}, which is not served since Kubernetes 1.22" if version else "no apiVersion"
        raise ConfigError(
            f"{where}: {named} has {cause}. Convert it to {_VERSION}, in which each version has its own schema.openAPIV3Schema. "
            f"A cluster that serves the kind prints it: kubectl get crd {name or 'NAME'} -o yaml"
        )
    missing = next((path for path in _NEEDED if not _at(definition, path)), None)
    if missing:
        raise ConfigError(f"{where}: {named} has no {missing}, which is required")
    versions: Any = definition["spec"]["versions"]
    is_list = isinstance(versions, list)
    if not is_list or not all(isinstance(one, Mapping) and _at(one, "name") for one in cast("list[Any]", versions)):
        raise ConfigError(f"{where}: a version in spec.versions of {named} has no name")
    if wrong := misshapen(definition):
        raise ConfigError(f"{where}: {named}: {wrong}")
    return definition


def _at(tree: Any, path: str) -> Any:
    for step in path.split("."):
        tree = cast("Mapping[str, Any]", tree).get(step) if isinstance(tree, Mapping) else None
    return tree
