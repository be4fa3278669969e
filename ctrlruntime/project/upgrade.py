"""The scaffold of a project, brought to a newer version by a three-way merge of each file.

A merge needs the originally generated text. The old version could generate it again, as in kubebuilder, but it would have to be installed for
every upgrade, and the settings may have changed since. So a project stores the generated texts in one file of about ten kilobytes,
`.ctrlruntime/scaffold.json`, which belongs in version control. `record` returns its text; `plan` merges in memory; `apply` writes everything
or nothing.

The record is the base of merges, and does not say whose a file is: all files of the scaffold belong to the user. The generated files below
`config/` are not part of it: `ctrl manifests` writes them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final, cast

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.settings import PYPROJECT, Settings, write_settings
from ctrlruntime.project.staging import write

__all__ = ["RECORD", "Outcome", "Step", "Upgrade", "apply", "check_work_tree", "order", "plan", "record", "recorded"]

RECORD: Final = ".ctrlruntime/scaffold.json"
"""The record of the scaffold's files, relative to the project."""


class Outcome(StrEnum):
    """What happens to a file."""

    UNCHANGED = "unchanged"
    """The scaffold says of it what it said before, or what the file says already."""

    ADDED = "added"
    UPDATED = "updated"
    """Not edited: it is replaced."""

    MERGED = "merged"
    CONFLICT = "conflict"
    """The same lines changed on both sides: both are between <<<<<<< and >>>>>>>."""

    KEPT = "kept"
    """It is not changed, or not created; `Step.note` has the reason."""


@dataclass(frozen=True, slots=True)
class Step:
    """The change of one file. `before` and `after` are its texts; None without one."""

    path: str
    outcome: Outcome
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A plan: a step for each file, sorted by path."""

    folder: Path
    was: str
    now: str
    steps: tuple[Step, ...]
    texts: Mapping[str, str]
    """The texts to write: the changed files, and the new record."""

    @property
    def conflicts(self) -> Sequence[Step]:
        return [step for step in self.steps if step.outcome is Outcome.CONFLICT]


def record(
    settings: Settings, files: Mapping[str, str], *, earlier: str = "", without: Collection[str] = frozenset()
) -> str:
    """Return the text of `RECORD` for files that were just scaffolded (path below the project's folder -> text).

    `earlier` is the text it has: what is said there of other files stays, except of those in `without`. Raises: ConfigError when that is
    not a record.
    """
    known = recorded(earlier) if earlier else {}
    texts = {path: text for path, text in {**known, **files}.items() if path not in without}
    return _record(settings.scaffold_version or version("ctrlruntime"), texts)


def recorded(text: str) -> dict[str, str]:
    """Return the originally generated text of each file, by its path, from the text of `RECORD`. Raises: ConfigError for another text."""
    return _texts(text, RECORD)


def plan(folder: Path, settings: Settings, files: Mapping[str, str], to: str) -> Upgrade:
    """Return the upgrade of the project in `folder` to the scaffold of version `to`, which is `files`.

    Raises: ConfigError for a project without a record, of a newer version, or with a file that cannot be read.
    """
    was = settings.scaffold_version or _recorded_version(folder)
    if order(was) > order(to):
        raise ConfigError(
            f"cannot upgrade: the project was created by ctrlruntime {was}, which is newer than {to}. Install {was} or newer"
        )
    if (known := _read(folder / RECORD)) is None:
        raise ConfigError(f"{folder / RECORD}, the record of the scaffold, is missing. Restore it from version control")
    given = _texts(known, str(folder / RECORD))
    merge = _Merge(folder, settings, was, to)
    steps = tuple(merge.step(path, given.get(path), files.get(path)) for path in sorted({*given, *files}))
    # A file of the user's where the scaffold now has one is not called given: there is nothing to merge with next time either.
    theirs = {step.path for step in steps if step.outcome is Outcome.KEPT and step.path not in given}
    new = _record(to, {path: text for path, text in files.items() if path not in theirs})
    texts = {step.path: step.after for step in steps if step.after is not None and step.after != step.before}
    return Upgrade(folder, was, to, steps, texts if new == known else {**texts, RECORD: new})


def apply(upgrade: Upgrade) -> None:
    """Write what was planned. Raises: ConfigError when a file cannot be written; then all are as they were."""
    write({upgrade.folder / path: text for path, text in upgrade.texts.items()})


def check_work_tree(folder: Path, *, force: bool = False) -> None:
    """Raise ConfigError if an upgrade could not be reviewed or reverted: uncommitted changes, or no git.

    `force` lets a folder pass that is not in git; it does not let uncommitted changes pass.
    """
    asked = _run("rev-parse", "--is-inside-work-tree", cwd=folder)
    if asked.returncode:
        said = asked.stderr.decode(errors="replace").strip().partition("\n")[0]
        if "not a git repository" not in said:  # it is one, and git does not like it
            raise ConfigError(f"cannot read the git state of {folder}: {said}")
        if not force:
            raise ConfigError(
                f"{folder} is not in a git repository, so you could not review or revert the upgrade. Use --force to continue"
            )
        return
    changed = (_git(folder, "status", "--porcelain", "--", ".") or "").splitlines()
    if _git(folder, "ls-files", "--error-unmatch", "--", PYPROJECT) is None:
        changed = changed or [f"?? {PYPROJECT}"]  # the whole folder is ignored
    if changed:
        paths = ", ".join(line[3:] for line in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ConfigError(f"the work tree has uncommitted changes ({paths}{more}). Commit or stash them first")


class _Merge:
    """Decides what happens to each file of a project."""

    def __init__(self, folder: Path, settings: Settings, was: str, now: str) -> None:
        self._folder = folder
        self._settings = settings
        self._versions = (was, now)

    def step(self, path: str, given: str | None, new: str | None) -> Step:
        """Take a file by its text then, its text now, and what stands in the project."""
        file = self._folder / path
        if file.is_symlink():
            return Step(path, Outcome.KEPT, None, None, "it is a link")
        mine = _read(file)
        if path == PYPROJECT and mine is not None:
            return self._pyproject(mine, given, new)
        return self._decide(path, given, mine, new)

    def _decide(self, path: str, given: str | None, mine: str | None, new: str | None) -> Step:
        if new is None:
            return Step(path, Outcome.KEPT, mine, mine, "it is no longer scaffolded")
        if mine is None:
            if given is None:
                return Step(path, Outcome.ADDED, None, new)
            return Step(path, Outcome.KEPT, None, None, "you deleted it")
        if new in {mine, given}:
            return Step(path, Outcome.UNCHANGED, mine, mine)
        if given is None:
            return Step(path, Outcome.KEPT, mine, mine, "you created it, and the scaffold now has a file of that name")
        if mine == given:
            return Step(path, Outcome.UPDATED, mine, new)
        text, conflicts = _merged(mine, given, new, self._versions)
        if not conflicts and text == mine:
            return Step(path, Outcome.UNCHANGED, mine, mine)
        note = f"{conflicts} place{'s' if conflicts > 1 else ''}" if conflicts else ""
        return Step(path, Outcome.CONFLICT if conflicts else Outcome.MERGED, mine, text, note)

    def _pyproject(self, mine: str, given: str | None, new: str | None) -> Step:
        """Our table is the same on both sides of the merge, so that the one that stands there stays; the version is set at the end."""
        sides = (None if text is None else write_settings(text, self._settings) for text in (given, new))
        step = self._decide(PYPROJECT, next(sides), mine, next(sides))
        now = replace(self._settings, scaffold_version=self._versions[1])
        if step.outcome is Outcome.CONFLICT:
            said = re.compile(r'(?m)^(\s*scaffold-version\s*=\s*)"[^"\n]*"')
            return replace(step, after=said.sub(rf'\g<1>"{now.scaffold_version}"', step.after or mine))
        after = write_settings(step.after or mine, now)
        changed = Outcome.MERGED if step.outcome is Outcome.UNCHANGED and after != mine else step.outcome
        return replace(step, outcome=changed, after=after)


def _merged(mine: str, given: str, new: str, versions: tuple[str, str]) -> tuple[str, int]:
    """Return the text of a merge, and how many places of it are in conflict."""
    labels = ("yours", *(f"scaffold of {one}" for one in versions))
    with tempfile.TemporaryDirectory(prefix="ctrl-upgrade-") as folder:
        for name, text in zip(("mine", "given", "new"), (mine, given, new), strict=True):
            Path(folder, name).write_bytes(text.encode())
        said = [part for label in labels for part in ("-L", label)]
        done = _run("merge-file", "-p", *said, "mine", "given", "new", cwd=Path(folder))
    if done.returncode < 0 or done.returncode > 127:
        raise ConfigError(f"git merge-file failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(), done.returncode


def _record(version: str, files: Mapping[str, str]) -> str:
    # A line for each line of a text: a change of one is then seen, and merged, by git.
    lines = {path: text.splitlines(keepends=True) for path, text in sorted(files.items())}
    return json.dumps({"version": version, "files": lines}, indent=1, ensure_ascii=False) + "\n"


def _recorded(text: str, where: str) -> Mapping[str, Any]:
    try:
        tree: Any = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{where} is not JSON: {error}. Restore it from version control") from error
    known = cast("Mapping[str, Any]", tree) if isinstance(tree, dict) else {}
    if not isinstance(known.get("files"), dict):
        raise ConfigError(f"{where} is not a record of a scaffold. Restore it from version control")
    return known


def _texts(text: str, where: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path, lines in _recorded(text, where)["files"].items():
        pure = PurePosixPath(path)
        parts: list[Any] = lines if isinstance(lines, list) else [None]
        if not all(isinstance(one, str) for one in parts) or pure.is_absolute() or ".." in pure.parts:
            raise ConfigError(f"{where} has an invalid entry for {path}. Restore it from version control")
        texts[path] = "".join(parts)
    return texts


def _recorded_version(folder: Path) -> str:
    text = _read(folder / RECORD)
    return str(_recorded(text, str(folder / RECORD)).get("version") or "") if text is not None else ""


def order(version: str) -> tuple[int, ...]:
    """Return a version as numbers, to compare it with others."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", version, maxsplit=1)[0]))


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {path}: it is not UTF-8 text") from error


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints, None when it fails."""
    done = _run("-c", "core.quotePath=off", *arguments, cwd=folder)
    return None if done.returncode else done.stdout.decode(errors="replace")


def _run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(  # noqa: S603 - what is run is written above
            ["git", *arguments],  # noqa: S607 - git, as it is found
            cwd=cwd,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},  # its words are looked at
        )
    except FileNotFoundError as error:
        raise ConfigError("git is not installed, but the upgrade requires it for merging. Install git") from error
