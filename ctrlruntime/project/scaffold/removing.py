"""What `ctrl delete` does: which kinds and webhooks may be deleted from a project, and which of its files go with them.

A file goes if the settings before the deletion have it and those after it do not. `RECORD` has the text that each file was created with:
a file that differs from it has changes of the user.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.project import staging
from ctrlruntime.project.config import first_files
from ctrlruntime.project.config.refresh import CONFIG
from ctrlruntime.project.scaffold.files import kind_files, parts_of, scaffold_files, with_packages
from ctrlruntime.project.scaffold.lookup import find
from ctrlruntime.project.scaffold.writing import refresh
from ctrlruntime.project.settings import PYPROJECT, Resource, Settings, write_settings
from ctrlruntime.project.upgrade import RECORD, record, recorded

__all__ = ["Deletion", "Removal", "planned_deletion", "without_api", "without_webhook"]

_INIT: Final = "__init__.py"
_CACHE: Final = "__pycache__"


@dataclass(frozen=True, slots=True)
class Removal:
    """What is deleted from a project: its settings before and after, and the kind with what it had."""

    before: Settings
    after: Settings
    resource: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A deletion that is worked out and not made. Paths are relative to the project."""

    folder: Path
    removed: Sequence[str]
    """The files to delete."""

    changed: Sequence[str]
    """Those of them that have changes of the user."""

    kept: Sequence[str]
    """Files that should be generated again without what is deleted, and have changes of the user."""

    texts: Mapping[str, str]
    """The files to write: generated again, pyproject.toml and the record."""

    def apply(self, warn: Callable[[str], None]) -> list[str]:
        """Delete and write the files, update `config/`, and return a line for each file.

        Raises: ConfigError if a file cannot be deleted or written, or if `ctrl manifests` would fail; then no file is changed.
        """
        texts: dict[str, str | None] = {**dict.fromkeys(self.removed), **self.texts}
        with staging.staged({self.folder / path: text for path, text in texts.items()}):
            lines = refresh(self.folder, warn)
        for parent in {(self.folder / path).parent for path in self.removed}:
            with contextlib.suppress(OSError):  # an empty folder changes nothing
                self._tidy(parent)
        own = [f"changed {path}" for path in self.texts if path != RECORD]
        return [*(f"removed {path}" for path in self.removed), *own, *lines]

    def references(self, package: str) -> list[str]:
        """Return the places, as `PATH:LINE`, that still import a module that was deleted."""
        gone = {path.removesuffix(".py").replace("/", ".") for path in self.removed}
        root = package.partition(".")[0]
        files = (file for name in (root, "tests") for file in sorted((self.folder / name).rglob("*.py")))
        return [f"{file.relative_to(self.folder)}:{line}" for file in files for line in _imports(file, gone)]

    def _tidy(self, parent: Path) -> None:
        """Delete the folders in which nothing is left but what Python compiled."""
        while parent != self.folder and parent.is_dir() and {each.name for each in parent.iterdir()} <= {_CACHE}:
            shutil.rmtree(parent)
            parent = parent.parent


def _imports(file: Path, modules: Collection[str]) -> Iterator[int]:
    """Yield the lines of a file that import one of these modules."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # it cannot be searched
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found = {each.name for each in names}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found = {module, *(f"{module}.{each.name}" for each in names)}
            case _:
                continue
        if not found.isdisjoint(modules):
            yield node.lineno


# What may be deleted


def without_api(settings: Settings, group: str, version: str, kind: str, *, is_external: bool = False) -> Removal:
    """Return what it is to delete a version of a kind with its controller.

    Raises: ConfigError for a kind that the project does not have, that has webhooks, or that other versions of the kind need.
    """
    found = _found(settings, group, version, kind, is_external=is_external)
    name = f"{kind} {found.group or 'core'}/{version}"
    command = _command(group, found)
    if found.has_webhook:
        raise ConfigError(f"cannot delete {name}: it has webhooks. Run `{command}` first")
    others = [each for each in _versions(settings, found) if each.version != version]
    for other in others:
        if other.spokes == (version,):
            raise ConfigError(
                f"cannot delete {name}: {other.version} converts it. Run `{_command(group, other)} --conversion` first"
            )
        if version in other.spokes:
            raise ConfigError(
                f"cannot delete {name}: {other.version} converts it. Remove it from the conversion in {settings.package}/webhooks and "
                f"from the spokes of {other.version} in {PYPROJECT} first"
            )
    if others and (found.storage or found.controller):
        raise ConfigError(
            f"cannot delete {name}: its other versions need it. First move `storage=True` to another class, let the controller use that "
            f"class, and move storage and controller to its entry in {PYPROJECT}. Run `ctrl storage migrate` after the next deployment"
        )
    return Removal(settings, settings.without_resource(found), found)


def without_webhook(
    settings: Settings,
    group: str,
    version: str,
    kind: str,
    *,
    defaulting: bool = False,
    validation: bool = False,
    conversion: bool = False,
    is_external: bool = False,
) -> Removal:
    """Return what it is to delete these webhooks of a kind; without any, all that it has. Raises: ConfigError for one it does not have."""
    found = _found(settings, group, version, kind, is_external=is_external)
    has = {"defaulting": found.defaulting, "validation": found.validation, "conversion": bool(found.spokes)}
    wanted = {"defaulting": defaulting, "validation": validation, "conversion": conversion}
    missing = [name for name in has if wanted[name] and not has[name]]
    if missing or not found.has_webhook:
        there = ", ".join(name for name in has if has[name]) or "none"
        name = f"{missing[0]} webhook" if missing else "webhooks"
        raise ConfigError(f"{kind} {found.group or 'core'}/{version} has no {name} to delete. Its webhooks: {there}")
    gone = wanted if any(wanted.values()) else has
    rest = replace(
        found,
        defaulting=found.defaulting and not gone["defaulting"],
        validation=found.validation and not gone["validation"],
        spokes=() if gone["conversion"] else found.spokes,
    )
    # A kind of Kubernetes came into the settings with its first webhook.
    is_used = rest.has_webhook or rest.controller or not rest.is_external
    return Removal(settings, settings.with_resource(rest) if is_used else settings.without_resource(rest), found)


def _found(settings: Settings, group: str, version: str, kind: str, *, is_external: bool) -> Resource:
    found = find(settings, group, version, kind, is_external=True if is_external or group == "core" else None)
    if found is None:
        has = ", ".join(f"{each.kind} {each.group or 'core'}/{each.version}" for each in settings.resources)
        raise ConfigError(f"this project has no {kind} {group}/{version}. It has {has or 'no kinds'}")
    return found


def _versions(settings: Settings, of: Resource) -> list[Resource]:
    key = (of.group, of.kind, of.is_external)
    return [each for each in settings.resources if (each.group, each.kind, each.is_external) == key]


def _command(group: str, of: Resource) -> str:
    external = " --external" if of.is_external and of.group else ""
    return f"ctrl delete webhook --group {group} --version {of.version} --kind {of.kind}{external}"


# Files


def planned_deletion(folder: Path, removal: Removal) -> Deletion:
    """Return what a deletion does to the files of the project in `folder`; nothing is changed.

    Raises: ConfigError for a project with code in another folder, and for a file that cannot be read.
    """
    settings = removal.after
    if PurePath(settings.source_dir) != PurePath():
        raise ConfigError(
            f"cannot delete files: the source-dir of this project is {settings.source_dir!r}. Delete the code by hand, remove the kind from "
            f"{PYPROJECT}, and run `ctrl manifests`"
        )
    given = read_text(folder / RECORD) if (folder / RECORD).is_file() else ""
    was = recorded(given) if given else {}
    before = _files(removal.before, removal.resource, was)
    after = _files(settings, removal.resource, was) | scaffold_files(replace(settings, resources=()))
    there = {path: _text(folder, path) for path in before if os.path.lexists(folder / path)}
    gone = _without_used_packages(folder, [path for path in there if path not in after], was)
    again = [path for path in there if path in after and after[path] != before[path]]
    new = {path: after[path] for path in again if there[path] == was.get(path)}
    pyproject = read_text(folder / PYPROJECT)
    texts = {
        **{path: text for path, text in new.items() if text != there[path]},
        PYPROJECT: write_settings(pyproject, settings),
        **({RECORD: record(settings, new, earlier=given, without=gone)} if given else {}),
    }
    return Deletion(
        folder=folder,
        removed=gone,
        changed=[path for path in gone if there[path] != was.get(path)],
        kept=[path for path in again if path not in new],
        texts=texts,
    )


def _files(settings: Settings, of: Resource, was: Collection[str]) -> dict[str, str]:
    """Return the files of all versions of a kind. A generated module of an imported class is among them, with an empty text."""
    files: dict[str, str] = {}
    for each in _versions(settings, of):
        files |= kind_files(settings, each, parts_of(each))
        module = f"{each.python_class.rpartition('.')[0].replace('.', '/')}.py"
        if module in was:
            files |= with_packages({module: ""})
    return files | {f"{CONFIG}/{path}": text for path, text in first_files(settings).items()}


def _text(folder: Path, path: str) -> str:
    if (folder / path).is_symlink():
        raise ConfigError(f"{folder / path} is a link. Delete the link by hand, and run this again")
    return read_text(folder / path)


def _without_used_packages(folder: Path, paths: Iterable[str], was: Mapping[str, str]) -> list[str]:
    """Return the paths without each `__init__.py` of a package that has more modules, or that ctrl did not create."""
    gone = set(paths)
    for path in sorted(gone, key=lambda path: -path.count("/")):
        if PurePath(path).name == _INIT and (path not in was or any(_others(folder, path, gone))):
            gone.remove(path)
    return sorted(gone)


def _others(folder: Path, path: str, gone: Iterable[str]) -> Iterator[Path]:
    mine = {folder / each for each in gone}
    for file in (folder / path).parent.rglob("*"):
        if file not in mine and not file.is_dir() and _CACHE not in file.parts:
            yield file
