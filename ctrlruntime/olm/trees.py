"""Values of YAML and JSON that may be anything, read as what they should be."""

from __future__ import annotations

from typing import Any, cast

from ctrlruntime.generate.options import Document

__all__ = ["listed", "mapping", "maps"]


def mapping(value: Any) -> Document:
    """Return a map as it is, and an empty one for another type: other tools' files may contain anything."""
    return cast("Document", value) if isinstance(value, dict) else {}


def maps(value: Any) -> list[Document]:
    """Return the maps of a list; none for what is not a list."""
    return [each for each in listed(value) if isinstance(each, dict)]


def listed(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for another type."""
    items: list[Any] = value if isinstance(value, list) else []
    return items
