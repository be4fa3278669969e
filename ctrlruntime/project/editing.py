"""A change of a project's settings: pyproject.toml and the tree that follows from it, both or neither."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.generate.options import Warn, warn
from ctrlruntime.project.config import refresh
from ctrlruntime.project.generated import Change, Refresh
from ctrlruntime.project.settings import (
    PYPROJECT,
    Settings,
    check_replicas,
    contradiction,
    read_settings,
    write_settings,
)

__all__ = ["edit"]


def edit(folder: Path, wanted: Settings, *, warn: Warn = warn) -> Refresh:
    """Return the changes that give the project in `folder` other settings; nothing is written.

    Raises: ConfigError for settings that contradict each other or the existing classes; GenerateError for a package that cannot be
    loaded.
    """
    present = read_settings(folder)
    _refuse_moves(present, wanted)
    _refuse_contradictions(wanted)
    path = folder / PYPROJECT
    before = read_text(path) if path.exists() else ""
    after = write_settings(before, wanted)
    tree = refresh(folder, wanted, warn=warn)
    return tree if after == before else replace(tree, changes=[Change(path, before, after), *tree.changes])


def _refuse_moves(present: Settings, wanted: Settings) -> None:
    kinds = sorted({each.kind for each in present.own_resources})
    if present.multigroup == wanted.multigroup or not kinds:
        return
    package = present.package
    places = f"{package}/api/VERSION", f"{package}/api/GROUP/VERSION"
    old, new = places if wanted.multigroup else places[::-1]
    said = str(wanted.multigroup).lower()
    raise ConfigError(
        f"cannot change multigroup: it sets the folders of classes, and {', '.join(kinds)} must be moved by hand. "
        f"Move {old} to {new}, correct the imports, set multigroup = {said} in {PYPROJECT}, then run `ctrl manifests`"
    )


def _refuse_contradictions(wanted: Settings) -> None:
    check_replicas(wanted.replicas, "--replicas")
    if found := contradiction(wanted):
        raise ConfigError(f"{found.text}. {found.by_flag}")
    if not wanted.image or any(letter.isspace() for letter in wanted.image) or wanted.image.startswith((":", "@")):
        raise ConfigError(f"the image {wanted.image!r} is not valid. Use REGISTRY/NAME:TAG")
