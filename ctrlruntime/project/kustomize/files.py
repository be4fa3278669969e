"""The files that a kustomization may read: those in its folder and below, as kustomize restricts it."""

from __future__ import annotations

from pathlib import Path

from ctrlruntime.errors import ConfigError

__all__ = ["read_bytes", "read_text"]


def read_bytes(folder: Path, name: str, where: str) -> bytes:
    """Return a file's content. Raises: ConfigError for one that is missing, unreadable, or outside of the folder."""
    path = folder / name
    if "://" in name:
        raise ConfigError(f"{where}: {name} is remote, and nothing is fetched here; `kubectl kustomize` can")
    if path.is_dir():
        raise ConfigError(f"{where}: {name} is a folder where a file is expected")
    if not path.is_file():
        raise ConfigError(f"{where}: {name} does not exist in {folder}")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{where}: {name} lies outside of {folder}; move it in, or make its folder a kustomization")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: {name} cannot be read: {error.strerror or error}") from error


def read_text(folder: Path, name: str, where: str) -> str:
    """Return a text file's content. Raises: ConfigError."""
    try:
        return read_bytes(folder, name, where).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {name} is no UTF-8 text: {error.reason}") from error
