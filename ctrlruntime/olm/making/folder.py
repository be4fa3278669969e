"""The output folder of a bundle: existing content must be a bundle, or the start of one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.olm.bundle import MANIFESTS, METADATA, Bundle
from ctrlruntime.project.kustomize.settings import FILES as KUSTOMIZATIONS

__all__ = ["refuse_foreign"]

_PARTS: Final = frozenset({MANIFESTS, METADATA, "tests"})


def refuse_foreign(folder: Path, existing: Bundle | None) -> None:
    """Raise ConfigError for a folder with other content than a bundle, and for a name that is not valid in a Dockerfile."""
    name = folder.resolve().name
    if not name.isprintable():
        raise ConfigError(
            f"cannot write the bundle to {name!r}: the name is not valid in a Dockerfile. Use another --output-dir"
        )
    if existing is None or existing.annotations is not None or existing.csvs:
        return
    found = _foreign(folder)
    if found:
        raise ConfigError(
            f"cannot write the bundle to {folder}: it is not a bundle, and contains {found}. Use an empty or a new --output-dir"
        )


def _foreign(folder: Path) -> str:
    """Return the first name in the folder that is not part of a bundle; empty when there is none."""
    names = sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    trees = [f"{MANIFESTS}/{name}" for name in KUSTOMIZATIONS if (folder / MANIFESTS / name).exists()]
    return next(iter([*(name for name in names if name not in _PARTS), *trees]), "")
