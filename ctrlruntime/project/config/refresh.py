"""A project's `config/` brought up to date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from ctrlruntime.generate.options import Options, Warn, warn
from ctrlruntime.project.config.files import derived_files, first_files, sample_files
from ctrlruntime.project.config.layout import DERIVED_MARK, SERVICE
from ctrlruntime.project.config.samples import SAMPLES, added_samples
from ctrlruntime.project.config.scopes import kept_to
from ctrlruntime.project.generated import Refresh, refreshed
from ctrlruntime.project.manifests import Manifests, manifests
from ctrlruntime.project.package import load, make_importable
from ctrlruntime.project.settings import Settings

__all__ = ["CONFIG", "made_by", "refresh"]

CONFIG: Final = "config"


def refresh(folder: Path, settings: Settings, *, options: Options | None = None, warn: Warn = warn) -> Refresh:
    """Return how `config/` of the project in `folder` differs from its settings and its package; nothing is written.

    `warn` is also called for each file that the user keeps, although it is generated. Raises: GenerateError, of one line, for a package that
    cannot be loaded or has no manifests; ConfigError for a file that cannot be read.
    """
    made = made_by(folder, settings, options=options, warn=warn)
    if settings.sharding and not made.is_sharded:
        warn(
            "sharding is on, but no controller has sharded=True, so one replica reconciles everything. Add "
            ".with_options(sharded=True) to a controller, and sharding=ctrl.Sharding(…) to new_manager"
        )
    config = folder / CONFIG
    samples = added_samples(config / SAMPLES, settings, made, scaffolded=sample_files(settings), warn=warn)
    files = derived_files(settings, made, added_samples=samples) | first_files(settings)
    found = refreshed(config, {config / name: text for name, text in files.items()}, mark=DERIVED_MARK)
    for note in found.notes():
        warn(note)
    return found


def made_by(folder: Path, settings: Settings, *, options: Options | None = None, warn: Warn = warn) -> Manifests:
    """Return the manifests of the package of the project in `folder`, as the tree wants them."""
    make_importable(folder, settings)
    package = load(settings.package)
    namespaces: tuple[str, ...] = ()
    if settings.namespaced:
        namespaces = (settings.namespace,)
        package = replace(package, rules=tuple(kept_to(settings, package)))
    return manifests(package, options=options, service=SERVICE, namespaces=namespaces, warn=warn)
