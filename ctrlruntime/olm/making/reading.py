"""Reads the user's files as text; a file that cannot be read is a clear error."""

from __future__ import annotations

from pathlib import Path

from ctrlruntime.errors import ConfigError

__all__ = ["read_text"]


def read_text(path: Path) -> str:
    """Return the text of a file, without a byte order mark. Raises: ConfigError, which names the file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError.unreadable(path, error) from error
