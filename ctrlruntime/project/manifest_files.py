"""The manifests in a folder and the folders below it, as `ctrl validate` reads them: files whose documents are whole objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.generate.documents import read_documents, read_text

__all__ = ["manifest_files"]

_SUFFIXES: Final = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_OF_OBJECTS: Final = ("resources", "bases", "components")
"""The fields of a kustomization that name files of whole objects, and folders."""


def manifest_files(folder: Path) -> list[Path]:
    """Return the YAML and JSON files in a folder and its subfolders, sorted.

    These are left out: hidden files and folders, charts of Helm, kustomizations, and the patches and other files that a kustomization
    names outside `resources`. Raises: ConfigError for a kustomization that cannot be read.
    """
    found, named = [], set[Path]()
    for each in _folders(folder):
        inside = sorted(path for path in each.iterdir() if path.is_file() and not path.name.startswith("."))
        found += [path for path in inside if path.suffix in _SUFFIXES and path.name not in _KUSTOMIZATIONS]
        for path in inside:
            if path.name in _KUSTOMIZATIONS:
                named |= _named(path)
    return sorted(path for path in found if path.resolve() not in named)


def _folders(folder: Path) -> Iterator[Path]:
    yield folder
    for below in sorted(folder.iterdir()):
        # A link could lead back up. Templates of a chart are not YAML.
        is_searched = below.is_dir() and not below.name.startswith(".") and not below.is_symlink()
        if is_searched and not (below / "Chart.yaml").is_file():
            yield from _folders(below)


def _named(kustomization: Path) -> set[Path]:
    """Return the files that a kustomization names as patches, replacements, configurations or values."""
    text = read_text(kustomization)
    texts: set[str] = set()
    objects: set[str] = set()
    for document in read_documents(text, str(kustomization)):
        if isinstance(document, Mapping):
            for key, value in cast("Mapping[str, Any]", document).items():
                (objects if key in _OF_OBJECTS else texts).update(_texts(value))
    names = {text.rpartition("=")[2] for text in texts if "\n" not in text} - objects  # KEY=FILE of a generator
    return {(kustomization.parent / name).resolve() for name in names if name.endswith(_SUFFIXES)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, Any]", value).values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
