"""What a webhook server serves at a path: bytes of a review in, bytes of its answer out.

Admission, conversion and token authentication are endpoints. They know no HTTP, so a test or another server can call `answer`, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ctrlruntime.api.object import Object
from ctrlruntime.errors import CtrlError

__all__ = ["Endpoint", "EndpointKind", "NotReadyError"]

EndpointKind: TypeAlias = Literal["admission", "conversion", "token authentication"]

JSON = "application/json"


class NotReadyError(CtrlError):
    """A webhook cannot answer yet: what it reads has not arrived. The API server hears 503 and applies the failure policy."""


class Endpoint(Protocol):
    """Answers reviews. Whatever goes wrong stands in the answer; only NotReadyError is raised."""

    panics: int
    """Handlers that failed with what is not an error of theirs to raise."""

    @property
    def kind(self) -> EndpointKind: ...

    @property
    def body_limit(self) -> int:
        """Bytes a review may have."""
        ...

    @property
    def cached_kinds(self) -> Sequence[type[Object]]:
        """Kinds that must be in the cache before the first review is answered."""
        ...

    async def answer(self, body: bytes, *, content_type: str = JSON, timeout: float | None = None) -> bytes:
        """Return the answer to a review; `timeout`: seconds after which nobody waits for it any more."""
        ...

    def refuse(self, code: int, message: str) -> bytes:
        """Return the answer to a review that was not read."""
        ...


def content_type_error(content_type: str) -> str:
    """Return what is wrong with a content type; empty when nothing is."""
    if content_type.partition(";")[0].strip().lower() == JSON:
        return ""
    return f"the content type is {content_type!r}, and {JSON} is needed"
