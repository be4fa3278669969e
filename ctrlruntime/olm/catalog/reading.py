"""A catalog in files: blobs, which are documents with a schema. Problems are collected, not raised."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents, read_text
from ctrlruntime.olm.bundle import SUFFIXES

__all__ = ["BUNDLE", "CHANNEL", "DEPRECATIONS", "PACKAGE", "Blob", "Catalog", "blobs_in", "read_catalog"]

PACKAGE: Final = "olm.package"
CHANNEL: Final = "olm.channel"
BUNDLE: Final = "olm.bundle"
DEPRECATIONS: Final = "olm.deprecations"


@dataclass(frozen=True, slots=True)
class Blob:
    """A document of a catalog, as it was written."""

    file: str
    document: Mapping[str, Any]

    def text(self, field: str) -> str:
        """Return a field; empty if it is missing or not a string."""
        value = self.document.get(field)
        return value if isinstance(value, str) else ""

    def maps(self, field: str) -> list[Mapping[str, Any]]:
        """Return the maps in a list; another value becomes an empty map, so that places stay."""
        value = self.document.get(field)
        items: list[Any] = value if isinstance(value, list) else []
        return [cast("Mapping[str, Any]", item) if isinstance(item, dict) else {} for item in items]

    @property
    def schema(self) -> str:
        return self.text("schema")

    @property
    def name(self) -> str:
        return self.text("name")

    @property
    def package(self) -> str:
        """The name of its package; for a package, its own name."""
        return self.name if self.schema == PACKAGE else self.text("package")

    def __str__(self) -> str:
        own = "" if self.schema == PACKAGE else self.name
        return "/".join(part for part in (self.schema, self.package, own) if part)


@dataclass(frozen=True, slots=True)
class Catalog:
    blobs: tuple[Blob, ...]

    def of_schema(self, schema: str, package: str | None = None) -> list[Blob]:
        """Return the blobs of a schema, all or those of a package."""
        return [each for each in self.blobs if each.schema == schema and package in {None, each.package}]


def read_catalog(path: Path) -> Catalog:
    """Return the blobs of a file, or of all YAML and JSON files below a folder.

    Raises: ConfigError for a path that does not exist, a file that is not YAML or JSON, or a catalog without a blob.
    """
    if not path.exists():
        raise ConfigError(
            f"file or folder {path} does not exist. Create a catalog with `ctrl catalog BUNDLE... > {path}`"
        )
    files = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES) if path.is_dir() else [path]
    return blobs_in((str(each), read_text(each)) for each in files)


def blobs_in(texts: Iterable[tuple[str, str]]) -> Catalog:
    """Return the blobs of texts, given with the names of their files. Raises: ConfigError."""
    blobs = tuple(
        Blob(file, cast("Mapping[str, Any]", tree) if isinstance(tree, dict) else {})
        for file, text in texts
        for tree in _trees(text, file)
    )
    if not blobs:
        raise ConfigError("the catalog is empty: no document in any YAML or JSON file")
    return Catalog(blobs)


def _trees(text: str, file: str) -> list[Any]:
    """The documents of a text: YAML, or JSON objects that follow each other with nothing between, as `-o json` prints them."""
    if text.lstrip().startswith("{"):
        try:
            return list(_stream(text))
        except ValueError:
            pass  # flow style; or it is neither, which is an error below
    return read_documents(text, file)


def _stream(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        tree, at = decoder.raw_decode(text, at)
        yield tree
