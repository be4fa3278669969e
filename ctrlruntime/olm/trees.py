"""Reads YAML and JSON values of any type as the expected type."""

from __future__ import annotations

from typing import Any, cast

from ctrlruntime.generate.options import Document

__all__ = ["listed", "mapping", "maps"]


def mapping(value: Any) -> Document:
    """Return a map unchanged, and an empty one for another type: files of other tools may contain anything."""
    return cast("Document", value) if isinstance(value, dict) else {}


def maps(value: Any) -> list[Document]:
    """Return the maps of a list; an empty list for another type."""
    return [each for each in listed(value) if isinstance(each, dict)]


def listed(value: Any) -> list[Any]:
    """Return a list unchanged, and an empty one for another type."""
    items: list[Any] = value if isinstance(value, list) else []
    return items
