"""The files that a kustomization may read: those in its folder and below, as kustomize restricts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents

__all__ = ["check_name", "read_bytes", "read_objects", "read_text"]

_LONGEST_NAME: Final = 255
"""Bytes of one name on the file systems of Linux and macOS."""
_TEXT: Final = "tag:yaml.org,2002:str"


def read_bytes(folder: Path, name: str, where: str) -> bytes:
    """Return a file's content. Raises: ConfigError for one that is missing, unreadable, or outside of the folder."""
    path = folder / name
    if "://" in name:
        raise ConfigError(f"{where}: {name} is remote, which is not supported. Use `kubectl kustomize`")
    check_name(name, where)
    try:
        if path.is_dir():
            raise ConfigError(f"{where}: {name} is a folder where a file is expected")
        if not path.is_file():
            raise ConfigError(f"{where}: {name} does not exist in {folder}")
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(f"{where}: {name} is outside {folder}. Move it, or make its folder a kustomization")
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{where}: cannot read {name}: {error.strerror or error}") from error


def read_objects(text: str, where: str) -> list[Any]:
    """Return the objects of a text. Their annotations keep the text of the file: `1.10` stays so. Raises: ConfigError."""
    return read_documents(text, where, _keep_annotations)


def _keep_annotations(node: Any) -> None:
    fields = _fields(node)
    for item in fields["items"].value if _is(fields.get("items"), "sequence") else ():
        _keep_annotations(item)
    for value in _fields(_fields(fields.get("metadata")).get("annotations")).values():
        if _is(value, "scalar"):
            value.tag = _TEXT


def _fields(node: Any) -> dict[str, Any]:
    return {str(key.value): value for key, value in node.value} if _is(node, "mapping") else {}


def _is(node: Any, kind: str) -> bool:
    return node is not None and node.id == kind


def check_name(name: str, where: str) -> None:
    """Refuse what can name no file, before a system call fails with it. Raises: ConfigError."""
    is_text = name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)
    if "\0" in name or not is_text or any(len(os.fsencode(part)) > _LONGEST_NAME for part in name.split("/")):
        raise ConfigError(f"{where}: {name[:100]!r} is not a valid file name")


def read_text(folder: Path, name: str, where: str) -> str:
    """Return a text file's content. Raises: ConfigError."""
    try:
        return read_bytes(folder, name, where).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: {name} is not UTF-8 text: {error.reason}") from error
