"""What `ctrl init` and `ctrl create` do in a folder: find new files, write them, and update `config/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.project.config import first_files
from ctrlruntime.project.config.refresh import CONFIG
from ctrlruntime.project.scaffold.files import kind_files, scaffold_files, with_packages
from ctrlruntime.project.scaffold.lookup import Addition
from ctrlruntime.project.scaffold.writing import Written, existing, refresh, refuse_existing, staged
from ctrlruntime.project.settings import PYPROJECT, Settings, has_table, write_settings
from ctrlruntime.project.upgrade import RECORD, record

__all__ = ["Added", "add", "begin"]


@dataclass(frozen=True, slots=True)
class Added:
    """What was written: the files, and the changes of `ctrl manifests` in `config/`."""

    files: list[Written]
    config: list[str]


def begin(
    folder: Path,
    settings: Settings,
    *,
    warn: Callable[[str], None],
    license_text: str = "",
    modules: Mapping[str, str] | None = None,
    force: bool = False,
) -> Added:
    """Create a project in a folder, which need not exist. `modules` are more modules of the package, by path.

    Raises: ConfigError if the folder is a project, if files would be overwritten, or if a file cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"cannot create the project {folder}: it is a file. Use another name")
    if folder.is_dir() and has_table(folder):
        raise ConfigError(f"{folder.absolute()} is already a project. Use `ctrl create` or `ctrl edit`")
    scaffold = scaffold_files(settings) | _config_files(settings)
    files = dict(sorted((with_packages(modules or {}) | scaffold).items()))
    if license_text:
        files["LICENSE"] = license_text
    files[PYPROJECT] = write_settings(files[PYPROJECT], settings)
    if not force:
        refuse_existing(folder, files)
    return _write(folder, files | {RECORD: record(settings, scaffold)}, warn)


def add(folder: Path, addition: Addition, *, warn: Callable[[str], None], force: bool = False) -> Added:
    """Write the files of an addition to a project.

    Raises: ConfigError if files would be overwritten, if a file cannot be written, or if `ctrl manifests` would fail afterwards.
    """
    pyproject = folder / PYPROJECT
    settings = addition.settings
    if not folder.joinpath(*settings.package.split(".")).is_dir() and settings.source_dir == ".":
        raise ConfigError(
            f"{folder} has no package {settings.package}. If it is in another folder, set "
            f"source-dir in [tool.ctrlruntime] of {PYPROJECT}"
        )
    wanted = kind_files(settings, addition.resource, addition.parts) | with_packages(addition.files)
    # The empty __init__.py of a package that is there stays as it is.
    files = {path: text for path, text in wanted.items() if text or not existing(folder, [path])}
    if not force:
        refuse_existing(folder, files)
    files |= {path: text for path, text in _config_files(settings).items() if not existing(folder, [path])}
    given = read_text(folder / RECORD) if (folder / RECORD).is_file() else ""
    texts = {RECORD: record(settings, files, earlier=given), PYPROJECT: write_settings(read_text(pyproject), settings)}
    return _write(folder, files | texts, warn)


def _write(folder: Path, files: Mapping[str, str], warn: Callable[[str], None]) -> Added:
    with staged(folder, files) as written:
        return Added(written, refresh(folder, warn))


def _config_files(settings: Settings) -> dict[str, str]:
    return {f"{CONFIG}/{path}": text for path, text in first_files(settings).items()}
