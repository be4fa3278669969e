"""The token authentication webhook: the API server sends a bearer token in a TokenReview."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.api.object import Object
from ctrlruntime.errors import CtrlError
from ctrlruntime.rest.content import UNREADABLE
from ctrlruntime.webhook.endpoint import JSON, EndpointKind, content_type_error
from ctrlruntime.webhook.request import UserInfo

__all__ = ["TokenAuthentication", "TokenRequest", "TokenResponse", "authenticated", "unauthenticated"]

BODY_LIMIT: Final = 1024 * 1024

_VERSIONS: Final = ("authentication.k8s.io/v1", "authentication.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A token, and the audiences it is for (none: the API server itself)."""

    token: str
    audiences: Sequence[str] = ()

    def __repr__(self) -> str:
        return "TokenRequest(…)"


@dataclass(frozen=True, slots=True)
class TokenResponse:
    """The user of the token and its audiences, or the reason for a rejection."""

    authenticated: bool
    user: UserInfo | None = None
    audiences: Sequence[str] = ()
    error: str = ""


TokenHandler: TypeAlias = Callable[[TokenRequest], Awaitable[TokenResponse]]


def authenticated(user: UserInfo, audiences: Sequence[str] = ()) -> TokenResponse:
    """Return a response with the user of the token."""
    return TokenResponse(True, user, audiences)


def unauthenticated(error: str = "") -> TokenResponse:
    """Return a response that rejects the token; `error` is for the API server's log."""
    return TokenResponse(False, None, (), error)


class TokenAuthentication:
    """Responds to TokenReviews with an async function.

    The function takes a TokenRequest and returns a TokenResponse.
    """

    kind: EndpointKind = "token authentication"
    body_limit: int = BODY_LIMIT
    cached_kinds: Sequence[type[Object]] = ()

    def __init__(self, handler: TokenHandler) -> None:
        self._handler = handler
        self.panics = 0
        self._log = log.get_logger("authentication")

    async def answer(self, body: bytes, *, content_type: str = JSON, timeout: float | None = None) -> bytes:
        """Return the response to a review, in its own version."""
        if problem := content_type_error(content_type):
            return self.refuse(400, problem)
        try:
            review = _decode(body)
        except UNREADABLE:
            return self.refuse(400, "the body is not a TokenReview")  # what is wrong with it might show the token
        if review.kind != "TokenReview" or review.api_version not in _VERSIONS:
            return self.refuse(
                400,
                f"the body is a {review.api_version!r} {review.kind!r}, and a TokenReview of {' or '.join(_VERSIONS)} is needed",
            )
        if not review.spec.token:
            return _write(review.api_version, review.metadata, unauthenticated("the token is empty"))
        response = await self._guarded(TokenRequest(review.spec.token, review.spec.audiences), timeout)
        return _write(review.api_version, review.metadata, response)

    def refuse(self, code: int, message: str) -> bytes:
        return _write(_VERSIONS[0], {}, unauthenticated(message))

    async def _guarded(self, request: TokenRequest, timeout: float | None) -> TokenResponse:
        try:
            async with asyncio.timeout(timeout):
                return await self._handler(request)
        except TimeoutError as error:
            self._log.warning("token review failed", error=log.describe(error))
            return unauthenticated("the webhook did not decide in time")
        except CtrlError as error:
            self._log.warning("token review failed", error=log.describe(error))
            return _failed(error)
        except Exception as error:  # noqa: BLE001 - a defect of the handler authenticates nobody
            self.panics += 1
            self._log.error("handler raised an unexpected exception", error=log.describe(error), exc_info=error)
            return _failed(error)


def _failed(error: Exception) -> TokenResponse:
    return unauthenticated(f"the webhook failed on this request ({type(error).__name__}); its log says why")


class _Spec(msgspec.Struct, frozen=True):
    token: str = ""
    audiences: tuple[str, ...] = ()


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, Any] = {}
    spec: _Spec = _Spec()


_decode = msgspec.json.Decoder(_Review).decode


def _write(api_version: str, metadata: dict[str, Any], response: TokenResponse) -> bytes:
    status: dict[str, Any] = {"authenticated": response.authenticated}
    if response.authenticated and response.user is not None:
        status["user"] = response.user
    if response.audiences:
        status["audiences"] = list(response.audiences)
    if response.error:
        status["error"] = response.error
    return msgspec.json.encode(
        {"kind": "TokenReview", "apiVersion": api_version, "metadata": metadata, "spec": {}, "status": status}
    )
