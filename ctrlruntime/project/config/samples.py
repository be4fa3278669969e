"""The samples that a person adds to `config/samples`: which of them are in its kustomization.

A file is, if it is in the folder itself and each of its documents is an object of a kind of the project. To keep one out, move it to a
subfolder or comment out its text. Other files are not the project's business: a Secret, say, would become part of the bundle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import opened, read_documents, read_text
from ctrlruntime.generate.options import Warn
from ctrlruntime.project.config.layout import KUSTOMIZATION
from ctrlruntime.project.manifests import Manifests
from ctrlruntime.project.settings import Settings

__all__ = ["SAMPLES", "added_samples"]

SAMPLES: Final = "samples"
_SUFFIXES: Final = {".yaml", ".yml", ".json"}

_Key = tuple[str, str, str, str]
"""Group, kind, namespace and name."""


def added_samples(
    folder: Path, settings: Settings, made: Manifests, *, scaffolded: Collection[str], warn: Warn
) -> list[str]:
    """Return the names of the added samples in `folder`, sorted. `scaffolded` are the names of the other samples.

    `warn` takes a line for each file that cannot be read, or has an object that another sample has. Raises: ConfigError.
    """
    if not folder.is_dir():
        return []
    kinds = {(each["spec"]["group"], each["spec"]["names"]["kind"]) for each in made.definitions}
    kinds |= {(each.group, each.kind) for each in settings.own_resources}
    seen: dict[_Key, str] = {}
    added: list[str] = []
    files = [path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.name != KUSTOMIZATION]
    # Scaffolded ones first: of two files with one object they stay.
    for path in sorted(files, key=lambda path: (path.name not in scaffolded, path.name)):
        keys = _keys(path, warn)
        if not keys or not all(key is not None and key[:2] in kinds for key in keys):
            continue
        found = [cast("_Key", key) for key in keys]
        if path.name not in scaffolded:
            if other := next((seen[key] for key in found if key in seen), None):
                warn(f"{path} is not in {KUSTOMIZATION}: {other} has an object of the same name. Change metadata.name")
                continue
            added.append(path.name)
        seen.update(dict.fromkeys(found, path.name))
    return added


def _keys(path: Path, warn: Warn) -> list[_Key | None]:
    """Return the key of each document, None for what is not a whole object."""
    text = read_text(path)
    try:
        return [_key(each) for each in opened(read_documents(text, str(path)))]
    except ConfigError as error:
        warn(str(error))
        return []


def _key(document: Any) -> _Key | None:
    if not isinstance(document, Mapping):
        return None
    tree = cast("Mapping[str, Any]", document)
    metadata = tree.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        return None
    version, kind = str(tree.get("apiVersion") or ""), str(tree.get("kind") or "")
    return version.rpartition("/")[0], kind, str(metadata.get("namespace") or ""), str(metadata["name"])
