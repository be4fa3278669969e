"""Checks without a cluster: Python, the project, its manifests, its memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ctrlruntime.errors import CtrlError
from ctrlruntime.field import Quantity
from ctrlruntime.project.doctor.check import Check, Subject, failed, fine, warned
from ctrlruntime.project.package import with_source
from ctrlruntime.project.upgrade import order

__all__ = ["bytes_of", "local_checks", "mebibytes"]

_OLDEST: Final = (3, 11)
_PATIENCE: Final = 60.0  # seconds for a program of ours to end
_TIGHT: Final = 0.6  # of the memory limit, before any cache is filled


def local_checks(subject: Subject) -> Iterator[Check]:
    """Yield the checks, one as soon as it is done."""
    yield _python()
    yield _library(subject)
    yield _package(subject)
    yield _manifests(subject)
    yield _memory(subject)


def _python() -> Check:
    text = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST:
        return failed("python", text, f"Use {'.'.join(map(str, _OLDEST))} or later")
    return fine("python", text)


def _library(subject: Subject) -> Check:
    try:
        here = version("ctrlruntime")
    except PackageNotFoundError:
        return warned("ctrlruntime", "the version is unknown", "Install ctrlruntime with pip")
    made_by = subject.settings.scaffold_version
    if made_by and made_by != here:
        is_newer = order(made_by) > order(here)
        advice = f"Install ctrlruntime {made_by} or later" if is_newer else "Run `ctrl upgrade`"
        return warned("ctrlruntime", f"{here} is installed, but the project was created by {made_by}", advice)
    return fine("ctrlruntime", here)


def _package(subject: Subject) -> Check:
    name = subject.settings.package
    folder = subject.settings.source_in(subject.folder).joinpath(*name.split("."))
    if not folder.is_dir():
        text = f"the folder of the package {name} does not exist"
        return failed("package", text, "Set package and source-dir in [tool.ctrlruntime], or restore the folder")
    if not (folder / "__main__.py").is_file():
        text = f"{name} has no __main__.py, which `ctrl run` and the image start"
        return failed("package", text, "Restore it, or copy that of a new project (`ctrl init`)")
    return fine("package", f"{name} can be started")


def _manifests(subject: Subject) -> Check:
    from ctrlruntime.project.config import refresh

    try:
        stale = refresh(subject.folder, subject.settings, warn=lambda _text: None).stale
    except CtrlError as error:
        return failed("manifests", str(error), "Fix the package")
    if stale:
        more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
        return warned("manifests", f"stale: {', '.join(map(str, stale[:3]))}{more}", "Run `ctrl manifests`")
    return fine("manifests", "up to date with the code")


def _memory(subject: Subject) -> Check:
    command = [sys.executable, "-m", "ctrlruntime.project.doctor.idle", subject.settings.package]
    environ = with_source(os.environ, subject.folder, subject.settings)
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, cwd=subject.folder, env=environ, capture_output=True, text=True, check=False, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        return warned(
            "memory", f"cannot build the operator within {_PATIENCE:g} s", "Check what its modules do on import"
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        return warned("memory", f"cannot build the operator: {last}", "Run `ctrl manifests`")
    used = int(done.stdout.split()[-1])
    text = f"{mebibytes(used)} for an idle operator, before caches"
    limit = _limit(subject)
    if limit is None:
        return fine("memory", text)
    text = f"{text}; the limit is {mebibytes(limit)}"
    if used > limit * _TIGHT:
        return warned("memory", text, "Raise resources.limits.memory in config/manager/manager.yaml")
    return fine("memory", text)


def _limit(subject: Subject) -> float | None:
    limits = (subject.container.get("resources") or {}).get("limits") or {}
    return bytes_of(str(limits["memory"])) if "memory" in limits else None


def bytes_of(quantity: str) -> float:
    """Return the number of a memory quantity."""
    return float(Quantity(quantity))


def mebibytes(count: float) -> str:
    return f"{count / 2**20:.0f} MiB"
