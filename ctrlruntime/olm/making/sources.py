"""The sources of a bundle: the base, the other objects, the scorecard's configuration, and the classes.

They come from a rendered project, or from the objects of another tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import opened, read_documents, read_text
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.bundle import SUFFIXES
from ctrlruntime.olm.release import package_of
from ctrlruntime.project.config import CONFIG, refresh
from ctrlruntime.project.config.olm import base_file
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.kustomize.settings import FILES as KUSTOMIZATIONS
from ctrlruntime.project.manifests import recorded
from ctrlruntime.project.package import load, make_importable
from ctrlruntime.project.settings import Settings

__all__ = ["MANIFESTS_FOLDER", "Material", "of_folder", "of_project", "of_text", "read_base", "with_classes"]

MANIFESTS_FOLDER: Final = f"{CONFIG}/manifests"

_CSV: Final = ("operators.coreos.com", "ClusterServiceVersion")
_SCORECARD: Final = ("scorecard.operatorframework.io", "Configuration")
_SCORECARD_FOLDER: Final = f"{CONFIG}/scorecard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The sources of a bundle, except for its name and version."""

    base: Document
    origin: str
    """Where the base can be changed, for messages."""

    objects: tuple[Document, ...]
    is_given: bool = False
    """The objects are input of the user, and not rendered from a project."""

    stale: tuple[Path, ...] = ()
    """Files of the project's `config/` that do not match its classes and settings."""

    scorecard: Document | None = None
    kinds: tuple[type[Object], ...] = ()
    owns: Mapping[GroupVersionKind, Sequence[GroupVersionKind]] = field(
        default_factory=dict[GroupVersionKind, Sequence[GroupVersionKind]]
    )

    @property
    def name(self) -> str:
        """The name of the package, from the name of the base: `shop` for `shop.v0.0.0`."""
        return package_of(str(self.base["metadata"]["name"]))


def of_project(folder: Path, settings: Settings, *, warn: Warn) -> Material:
    """Return the sources in the project in `folder`: its `config/manifests`, rendered, and its classes. `warn` is called for a stale tree.

    Raises: ConfigError for a tree that cannot be rendered, or without a base; GenerateError for a package that cannot be loaded.
    """
    stale = refresh(folder, settings, warn=_ignore).stale
    base = folder / MANIFESTS_FOLDER / base_file(settings)
    if not base.is_file():
        raise ConfigError(f"base {base} does not exist. Create one with `ctrl generate kustomize-manifests`")
    _refuse_base(base)
    if stale:
        names = ", ".join(str(path) for path in stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
        warn(f"{names}: stale, but the bundle is created from these files. Run `ctrl manifests` first")
    found = _material(render(folder / MANIFESTS_FOLDER), MANIFESTS_FOLDER, None)
    _tell_of_scorecard(folder, found, warn)
    return with_classes(replace(found, origin=str(base), stale=tuple(stale), is_given=False), folder, settings)


def _refuse_base(base: Path) -> None:
    """Raise ConfigError for a base without a ClusterServiceVersion."""
    found = [each for each in opened(_read(base)) if isinstance(each, dict)]
    if not any(cast("Document", each).get("kind") == _CSV[1] for each in found):
        what = "is not a ClusterServiceVersion" if found else "is empty"
        raise ConfigError(f"{base} {what}. Delete it, and run `ctrl generate kustomize-manifests`")


def _tell_of_scorecard(folder: Path, found: Material, warn: Warn) -> None:
    if found.scorecard is None and (folder / _SCORECARD_FOLDER).is_dir():
        warn(
            f"{folder / MANIFESTS_FOLDER} renders no {_SCORECARD[1]} of the scorecard, so the bundle has no tests for "
            f"`ctrl scorecard`. See {folder / _SCORECARD_FOLDER}"
        )


def of_folder(folder: Path, *, base: Document | None = None, origin: str = "") -> Material:
    """Return the sources below a folder: rendered if it has a kustomization, otherwise the objects of all YAML and JSON files.

    `base` is used if the file is missing, and `origin` names its source. Raises: ConfigError.
    """
    if not folder.is_dir():
        raise ConfigError(f"folder {folder} does not exist. Use a folder with the operator's manifests")
    if any((folder / name).is_file() for name in KUSTOMIZATIONS):
        return _material(render(folder), str(folder), base, origin)
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return _material([each for file in files for each in _objects(_read(file), str(file))], str(folder), base, origin)


def of_text(text: str, where: str, *, base: Document | None = None, origin: str = "") -> Material:
    """Return the sources in a text; `base` and `origin` as for a folder. Raises: ConfigError, which names `where`."""
    trees = read_documents(text.removeprefix("\ufeff"), where)
    if not trees:
        raise ConfigError(f"{where} is empty. Add the operator's manifests")
    return _material(trees, where, base, origin)


def read_base(path: Path) -> Document:
    """Return the base in a file. Raises: ConfigError for a file without exactly one ClusterServiceVersion."""
    found = [each for each in _objects(_read(path), str(path)) if _key(each) == _CSV]
    if len(found) != 1:
        raise ConfigError(f"{path} must have one ClusterServiceVersion, and has {len(found)}")
    return found[0]


def with_classes(material: Material, folder: Path, settings: Settings) -> Material:
    """Return the material with the kinds of a project's package, and the kinds that each of them owns. Raises: GenerateError."""
    make_importable(folder, settings)
    package = load(settings.package)
    watches = recorded(package).declarations.watches
    owns: dict[GroupVersionKind, list[GroupVersionKind]] = {}
    for reconciled in (watch for watch in watches if watch.reason == "for"):
        of_kind = owns.setdefault(kind_of(reconciled.kind).gvk, [])
        for watch in watches:
            gvk = kind_of(watch.kind).gvk
            if watch.controller == reconciled.controller and watch.reason == "owns" and gvk not in of_kind:
                of_kind.append(gvk)
    return replace(material, kinds=package.kinds, owns=owns)


def _material(trees: Iterable[Any], where: str, base: Document | None, origin: str = "") -> Material:
    objects = _objects(trees, where)
    bases = [each for each in objects if _key(each) == _CSV]
    scorecards = [each for each in objects if _key(each) == _SCORECARD]
    for kind, several in (("ClusterServiceVersions", bases), ("configurations of the scorecard", scorecards)):
        if len(several) > 1:
            names = ", ".join(str(each["metadata"]["name"]) for each in several)
            raise ConfigError(f"{where} has several {kind} ({names}), but a bundle has one. Remove the others")
    if base is None and not bases:
        raise ConfigError(f"{where} has no ClusterServiceVersion. Pass the file of one with --base")
    start = bases[0] if base is None else base
    if not isinstance(start.get("spec"), dict):
        raise ConfigError(f"{where}: the ClusterServiceVersion {start['metadata']['name']} has no spec. Add one")
    return Material(
        base=start,
        origin=where if base is None else origin or where,
        is_given=True,
        objects=tuple(each for each in objects if _key(each) not in {_CSV, _SCORECARD}),
        scorecard=scorecards[0] if scorecards else None,
    )


def _objects(trees: Iterable[Any], where: str) -> list[Document]:
    found: list[Document] = []
    for tree in opened(trees):
        metadata = tree.get("metadata") if isinstance(tree, dict) else None
        texts = (
            (tree.get("apiVersion"), tree.get("kind"), metadata.get("name")) if isinstance(metadata, dict) else ("",)
        )
        if not all(isinstance(text, str) and text for text in texts):
            raise ConfigError(
                f"{where} has a document that is not an object: apiVersion, kind or metadata.name is missing"
            )
        found.append(cast("Document", tree))
    return found


def _key(each: Document) -> tuple[str, str]:
    return str(each["apiVersion"]).rpartition("/")[0], str(each["kind"])


def _read(path: Path) -> list[Any]:
    return read_documents(read_text(path), str(path))


def _ignore(_text: str) -> None:
    """`ctrl manifests` prints these."""
