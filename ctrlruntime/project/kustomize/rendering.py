"""A kustomization and all it is made of, rendered: the objects of `kubectl kustomize`, without kubectl.

A folder's objects are gathered first (files, other folders, generators, components), then changed in kustomize's order. Hashes of content and
references between objects come last, once, when all names are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import plain
from ctrlruntime.generate.options import Document
from ctrlruntime.project.kustomize.configuration import Configuration, with_files
from ctrlruntime.project.kustomize.files import check_name, read_objects, read_text
from ctrlruntime.project.kustomize.generators import generated, hashed
from ctrlruntime.project.kustomize.order import in_order
from ctrlruntime.project.kustomize.patches import apply_deprecated_json, apply_deprecated_merges, apply_patches
from ctrlruntime.project.kustomize.references import follow_references
from ctrlruntime.project.kustomize.replacements import apply_replacements
from ctrlruntime.project.kustomize.resources import Resource, Resources
from ctrlruntime.project.kustomize.settings import Entry, is_kustomization, read_kustomization
from ctrlruntime.project.kustomize.transformers import add_marks, rename, set_images, set_namespace, set_replicas

__all__ = ["render"]

_LOCAL: Final = "config.kubernetes.io/local-config"
_REMOTE: Final = ("://", "?ref=", "git@", "github.com/", "github.com:")


def render(folder: Path) -> list[Mapping[str, Any]]:
    """Return the objects of the kustomization in a folder, in the order `kubectl kustomize` prints them.

    Raises: ConfigError, of one line, for what is missing, contradictory, or left to `kubectl kustomize` (remote resources, Helm charts,
    plugins, `vars`, `openapi`).
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder. Use one with a kustomization.yaml")
    said = read_kustomization(folder)
    gathered = _Gathered()
    _gather(folder, said, gathered, (folder.resolve(),))
    _add_hashes(gathered.resources)
    follow_references(gathered.resources, gathered.configuration.references)
    return [_finished(each) for each in _sorted(said, gathered.resources) if not _is_local(each)]


@dataclass(slots=True)
class _Gathered:
    """The objects so far, and where to look in them."""

    resources: Resources = field(default_factory=Resources)
    configuration: Configuration = field(default_factory=Configuration)


def _gather(folder: Path, said: Entry, into: _Gathered, inside: tuple[Path, ...]) -> None:
    """Add what a kustomization lists, and change all that is there; `inside` are the folders on the way."""
    for name in (*said.texts("resources"), *said.texts("bases")):
        _resource(folder, name, said, into, inside)
    into.configuration = with_files(into.configuration, said, folder)
    for made in generated(said, folder):
        into.resources.absorb(made)
    for name in said.texts("components"):
        base = _base(folder, name, said, inside)
        _gather(base, _read(base, said, "Component"), into, (*inside, base.resolve()))
    _transform(folder, said, into)
    _apply_transformers(folder, said, into, inside)


def _resource(
    folder: Path, name: str, said: Entry, into: _Gathered, inside: tuple[Path, ...], field: str = "resources"
) -> None:
    where = f"{said.where}: {field}"
    check_name(name, where)
    path = folder / name
    if not path.exists():
        if any(sign in name for sign in _REMOTE):
            raise ConfigError(
                f"{where}: {name} is remote, and `ctrl render` reads only local files. Use `kubectl kustomize`"
            )
        raise ConfigError(f"{where}: {name} does not exist in {folder}")
    if path.is_file():
        for each in _objects(read_objects(read_text(folder, name, where), str(path)), path):
            into.resources.append(each)
        return
    base = _base(folder, name, said, inside)
    below = _Gathered()
    _gather(base, _read(base, said, "Kustomization"), below, (*inside, base.resolve()))
    for each in below.resources:
        into.resources.append(each)
    into.configuration = into.configuration.joined(below.configuration)


def _base(folder: Path, name: str, said: Entry, inside: tuple[Path, ...]) -> Path:
    """The folder of another kustomization. Raises: ConfigError for none, and for one that this one is part of."""
    check_name(name, said.where)
    base = folder / name
    if not base.is_dir() and any(sign in name for sign in _REMOTE):
        raise ConfigError(
            f"{said.where}: {name} is remote, and `ctrl render` reads only local files. Use `kubectl kustomize`"
        )
    if not base.is_dir():
        raise ConfigError(f"{said.where}: {name} is not a folder in {folder}")
    if any(each.is_relative_to(base.resolve()) for each in inside):
        raise ConfigError(f"{said.where}: {name} is a cycle: it contains {folder}")
    if not is_kustomization(base):
        raise ConfigError(f"{said.where}: {name} has no kustomization.yaml. List its files, or add one")
    return base


def _read(base: Path, said: Entry, kind: str) -> Entry:
    found = read_kustomization(base)
    if found.text("kind", "Kustomization") != kind:
        wanted = "components" if kind != "Component" else "resources"
        raise ConfigError(f"{said.where}: {found.where} is not a {kind}. List its folder under {wanted}")
    return found


def _objects(documents: Iterable[Any], path: Path) -> Iterator[Resource]:
    for document in documents:
        if document == {}:
            continue
        if not isinstance(document, dict):
            raise ConfigError(f"{path}: a document must be a map with apiVersion, kind and metadata.name")
        if str(document.get("kind") or "").endswith("List") and isinstance(document.get("items"), list):
            yield from _objects(document["items"], path)
        else:
            yield Resource(_checked(document, path), str(path))


def _checked(document: Document, path: Path) -> Document:
    metadata: Any = document.get("metadata")
    if not document.get("kind") or not isinstance(document["kind"], str):
        raise ConfigError(f"{path}: an object has no kind")
    if not isinstance(metadata, dict) or not metadata.get("name") or isinstance(metadata["name"], dict | list):
        raise ConfigError(f"{path}: {document['kind']} has no metadata.name")
    for part in ("labels", "annotations"):
        if not isinstance(metadata.get(part) or {}, dict):
            raise ConfigError(f"{path}: {document['kind']} {metadata['name']}: metadata.{part} must be a map")
    return document


def _transform(folder: Path, said: Entry, into: _Gathered) -> None:
    resources, configuration = into.resources, into.configuration
    apply_deprecated_merges(said, folder, resources)
    apply_patches(said, folder, resources)
    set_namespace(said, configuration, resources)
    rename(said, configuration, resources)
    add_marks(said, configuration, resources)
    apply_deprecated_json(said, folder, resources)
    set_replicas(said, configuration, resources)
    set_images(said, configuration, resources)
    apply_replacements(said, folder, resources)


def _apply_transformers(folder: Path, said: Entry, into: _Gathered, inside: tuple[Path, ...]) -> None:
    """Apply the transformers under `transformers`, each an object with its settings; kustomize runs them after its own.

    Raises: ConfigError for any except the ReplacementTransformer. The others do the same as a field of a kustomization, or are plugins.
    """
    given = _Gathered()
    for name in said.texts("transformers"):
        _resource(folder, name, said, given, inside, field="transformers")
    for each in given.resources:
        where = f"{each.origin}: {each.id}"
        if (each.tree.get("apiVersion"), each.tree["kind"]) != ("builtin", "ReplacementTransformer"):
            raise ConfigError(f"{where} is not supported as a transformer. Use `kubectl kustomize`")
        settings = {"replacements": each.tree.get("replacements")}
        apply_replacements(Entry(settings, where), folder, into.resources)


def _add_hashes(resources: Resources) -> None:
    for each in resources:
        if each.needs_hash:
            each.remember()
            each.metadata["name"] = f"{each.name}-{hashed(each)}"


def _sorted(said: Entry, resources: Resources) -> list[Resource]:
    options = said.entry("sortOptions", ("order", "legacySortOptions"))
    if options is None:
        return in_order(resources)
    legacy = options.entry("legacySortOptions", ("orderFirst", "orderLast"))
    order = options.text("order")
    if order not in {"fifo", "legacy"}:
        raise ConfigError(f"{options.where}: order must be fifo or legacy, not {order!r}")
    if order == "fifo":
        return list(resources)
    if legacy is None:
        return in_order(resources)
    return in_order(resources, tuple(legacy.texts("orderFirst")), tuple(legacy.texts("orderLast")))


def _finished(resource: Resource) -> Document:
    """The object, with annotations that are texts, as kustomize writes them. Without any, it has no such field."""
    annotations: Any = resource.metadata.get("annotations")
    if annotations:
        texts = {key: "null" if value is None else plain(value) for key, value in annotations.items()}
        resource.metadata["annotations"] = texts
    else:
        resource.metadata.pop("annotations", None)
    return resource.tree


def _is_local(resource: Resource) -> bool:
    """Tell whether an object is a setting of tools, which is not for the cluster."""
    return str((resource.metadata.get("annotations") or {}).get(_LOCAL, "false")) != "false"
