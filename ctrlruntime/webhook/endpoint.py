"""The endpoints of a webhook server: the bytes of a review in, the bytes of the response out.

Admission, conversion and token authentication are endpoints. They do not use HTTP, so a test or another server can call `answer` too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol, TypeAlias

from ctrlruntime.api.object import Object
from ctrlruntime.errors import CtrlError

__all__ = ["Endpoint", "EndpointKind", "HandlerTimeoutError", "NotReadyError"]

EndpointKind: TypeAlias = Literal["admission", "conversion", "token authentication"]

JSON = "application/json"


class NotReadyError(CtrlError):
    """A webhook cannot respond yet, because its cache has not synced.

    The response is a 503, and the failure policy applies.
    """

    code: ClassVar = 503
    reason: ClassVar = "ServiceUnavailable"


class HandlerTimeoutError(NotReadyError):
    """A handler did not decide in the time that the API server waits.

    The response is a 504, and the failure policy applies, as it does when the API server's own timeout ends the call.
    """

    code: ClassVar = 504
    reason: ClassVar = "Timeout"


class Endpoint(Protocol):
    """Responds to reviews.

    Every error becomes a response. Only NotReadyError is raised.
    """

    panics: int
    """The number of handlers that raised an unexpected error."""

    @property
    def kind(self) -> EndpointKind: ...

    @property
    def body_limit(self) -> int:
        """The maximum size of a review in bytes."""
        ...

    @property
    def cached_kinds(self) -> Sequence[type[Object]]:
        """Kinds that must have synced before the first review is handled."""
        ...

    async def answer(self, body: bytes, *, content_type: str = JSON, timeout: float | None = None) -> bytes:
        """Return the response to a review.

        Args:
            body: the JSON of the review.
            content_type: the Content-Type of the request.
            timeout: seconds after which the caller no longer waits.

        """
        ...

    def refuse(self, code: int, message: str) -> bytes:
        """Return the response to a review that was not read."""
        ...


def content_type_error(content_type: str) -> str:
    """Return the problem of a content type; empty if it is valid."""
    if content_type.partition(";")[0].strip().lower() == JSON:
        return ""
    return f"the content type is {content_type!r}, and {JSON} is needed"
