"""Objects in manifests, such as the samples of a project, for tests."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from ctrlruntime.api.object import Unstructured

__all__ = ["read_objects"]


def read_objects(file: str | PathLike[str]) -> list[Unstructured]:
    """Return the objects in a YAML or JSON file.

    Raises: ConfigError if the file cannot be read, or a document is not an object.
    """
    # pytest loads this package for its plugin in every run.
    from ctrlruntime.api.object import Unstructured
    from ctrlruntime.generate.documents import opened, read_documents, read_text

    path = Path(file)
    text = read_text(path)
    found: list[Unstructured] = []
    for document in opened(read_documents(text, str(path))):
        if not isinstance(document, dict) or not document.get("apiVersion") or not document.get("kind"):
            raise ConfigError(f"{path} has a document without apiVersion and kind, which is not an object")
        found.append(Unstructured.from_dict(document))
    return found
