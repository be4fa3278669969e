"""A project's `config/` brought up to date: what would be written, what is left from before, and the change itself."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.options import Options, Warn, warn
from ctrlruntime.project.config.files import derived_files, first_files, sample_files
from ctrlruntime.project.config.layout import DERIVED_MARK, SERVICE
from ctrlruntime.project.config.samples import SAMPLES, added_samples
from ctrlruntime.project.config.scopes import kept_to
from ctrlruntime.project.manifests import Manifests, manifests
from ctrlruntime.project.package import load, make_importable
from ctrlruntime.project.settings import Settings
from ctrlruntime.project.staging import staged
from ctrlruntime.project.tree import Change, Tree

__all__ = ["CONFIG", "Refresh", "made_by", "refresh"]

CONFIG: Final = "config"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """What is not as it should be in a tree."""

    tree: Tree
    files: int
    """How many files the tree has."""

    changes: list[Change]
    leftovers: list[Path]
    """Files that were generated earlier and no longer are."""

    @property
    def stale(self) -> list[Path]:
        return sorted([*(change.path for change in self.changes), *self.leftovers])

    def diffs(self) -> Iterator[str]:
        """Yield a unified diff for each file."""
        for change in self.changes:
            yield change.diff()
        for path in self.leftovers:
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            yield "".join(difflib.unified_diff(lines, [], fromfile=str(path), tofile="/dev/null"))

    def lines(self) -> Iterator[str]:
        """Yield what was done, or would be, a line for each file."""
        for change in self.changes:
            yield f"{'created' if change.before is None else 'changed'} {change.path}"
        for path in self.leftovers:
            yield f"removed {path}"

    def apply(self) -> None:
        """Write what changes and remove what is left. Raises: ConfigError for a file that cannot be written or removed."""
        with staged({change.path: change.after for change in self.changes}):
            for path in self.leftovers:
                try:
                    path.unlink()
                    if not any(path.parent.iterdir()):
                        path.parent.rmdir()
                except OSError as error:
                    raise ConfigError(f"cannot delete {path}: {error.strerror or error}") from error


def refresh(folder: Path, settings: Settings, *, options: Options | None = None, warn: Warn = warn) -> Refresh:
    """Return how `config/` of the project in `folder` differs from what its settings and its package say; nothing is written.

    Files that belong to a person are among the changes only where they are missing. Raises: GenerateError, of one line, for a package
    that cannot be loaded or has no manifests; ConfigError for a file that cannot be read.
    """
    made = made_by(folder, settings, options=options, warn=warn)
    tree = Tree(folder / CONFIG)
    samples = added_samples(tree.folder / SAMPLES, settings, made, scaffolded=sample_files(settings), warn=warn)
    files = derived_files(settings, made, added_samples=samples)
    firsts = first_files(settings)
    missing = {name: text for name, text in firsts.items() if not (tree.folder / name).exists()}
    return Refresh(
        tree=tree,
        files=len(files) + len(firsts),
        changes=tree.changes(files | missing),
        leftovers=[path for path in _marked(tree.folder) if str(path.relative_to(tree.folder)) not in files],
    )


def made_by(folder: Path, settings: Settings, *, options: Options | None = None, warn: Warn = warn) -> Manifests:
    """Return the manifests of the package of the project in `folder`, as the tree wants them."""
    make_importable(folder, settings)
    package = load(settings.package)
    namespaces: tuple[str, ...] = ()
    if settings.namespaced:
        namespaces = (settings.namespace,)
        package = replace(package, rules=tuple(kept_to(settings, package)))
    return manifests(package, options=options, service=SERVICE, namespaces=namespaces, warn=warn)


def _marked(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.yaml")):
        try:
            with path.open(encoding="utf-8") as file:
                if file.readline() == DERIVED_MARK:
                    yield path
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError.unreadable(path, error) from error
