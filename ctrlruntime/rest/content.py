"""Media types of the API."""

from __future__ import annotations

from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Exceptions of JSON decoding: invalid JSON, invalid text, or too many levels."""

JSON = "application/json"
METADATA_ITEM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def unreadable(error: Exception, body: bytes) -> str:
    """Return why a body cannot be decoded, without its content, which may be a Secret.

    For an HTML page, return that it is one.
    """
    what = "a page of HTML (is a proxy or a login in between?)" if body.lstrip()[:1] == b"<" else f"{len(body)} bytes"
    return f"{what}, {'nested too deeply' if isinstance(error, RecursionError) else error}"
