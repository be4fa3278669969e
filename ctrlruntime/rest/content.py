"""Media types of the API, by what is asked for or sent."""

from __future__ import annotations

from typing import Final

import msgspec

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON may raise: it is none, its text is none, or it is nested too deeply."""

JSON = "application/json"
METADATA_ITEM = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def unreadable(error: Exception, body: bytes) -> str:
    """Say why a body cannot be read, without what it holds, which may be a Secret; of a page for people, what it is."""
    what = "a page of HTML (is a proxy or a login in between?)" if body.lstrip()[:1] == b"<" else f"{len(body)} bytes"
    return f"{what}, {'nested too deeply' if isinstance(error, RecursionError) else error}"
