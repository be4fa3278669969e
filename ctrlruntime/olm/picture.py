"""Pictures that consoles show for an operator: their media types, and the content that identifies each type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["MEDIA_TYPES", "is_picture", "media_type_of"]

# What a picture of each media type begins with; text may have a declaration and comments before its first element.
_BEGINNINGS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/svg+xml": (),
}

MEDIA_TYPES: Final = tuple(_BEGINNINGS)


def is_picture(data: bytes, media_type: str) -> bool:
    """Tell whether the data is a picture of this type, which is one of `MEDIA_TYPES`."""
    beginnings = _BEGINNINGS[media_type]
    return data.startswith(beginnings) if beginnings else b"<svg" in data


def media_type_of(data: bytes) -> str:
    """Return the media type of the data, one of `MEDIA_TYPES`; empty for another type."""
    return next((each for each in MEDIA_TYPES if is_picture(data, each)), "")
