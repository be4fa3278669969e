"""Writes the programs into a folder for KUBEBUILDER_ASSETS."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

from ctrlruntime.errors import ConfigError

_MARK: Final = "written by `python -m ctrlruntime.apiserver shim`"
_FOLDER: Final = Path(__file__).parent


def install(folder: str | os.PathLike[str]) -> list[Path]:
    """Write `kube-apiserver` and `etcd` into a folder, and a link to kubectl if it is on the PATH; return the names in the folder.

    The programs name this interpreter and this package by their paths; write them again after moving either. Earlier ones are
    replaced.

    Raises: ConfigError when the folder cannot be written to, or holds programs of that name that are not ours.
    """
    target = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay as they are written
    try:
        target.mkdir(parents=True, exist_ok=True)
        made = [
            # -P: the script's own folder must not be searched for modules.
            _write(target / "kube-apiserver", ["-P", str(_FOLDER / "kube_apiserver.py")]),
            _write(target / "etcd", ["-I", "-S", str(_FOLDER / "etcd.py")]),
        ]
        kubectl = _link(target / "kubectl")
    except OSError as error:
        raise ConfigError(f"cannot write the programs to {target}: {error.strerror}") from error
    return [*made, kubectl] if kubectl else made


def _write(path: Path, arguments: list[str]) -> Path:
    if path.is_symlink() or (path.exists() and _MARK.encode() not in path.read_bytes()[:500]):
        raise ConfigError(f"{path} exists, and was not written by this command. Use another folder, or delete it")
    command = shlex.join([sys.executable, *arguments])
    # A shell, because the first line of a script may be too short for an interpreter's path, and allows no second argument.
    text = f'#!/bin/sh\n# {path.name} of ctrlruntime, {_MARK}\nexec {command} "$@"\n'
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.chmod(0o755)
    temporary.replace(path)  # at once, since another test run may be starting it
    return path


def _link(path: Path) -> Path | None:
    """Link kubectl; one that is there stays."""
    if path.exists():
        return path
    found = shutil.which("kubectl")
    if found is None:
        return None
    path.unlink(missing_ok=True)  # a link to nothing
    path.symlink_to(os.path.abspath(found))  # noqa: PTH100 - as above
    return path
