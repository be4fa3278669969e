"""Every error this package raises, as one tree.

```text
CtrlError
├── APIStatusError              the server answered with a failure; carries the Status
│   ├── BadRequest  Unauthorized  Forbidden  NotFound  MethodNotAllowed  NotAcceptable  UnsupportedMediaType
│   ├── AlreadyExists  Conflict  Gone  Expired  Invalid  RequestEntityTooLarge  TooManyRequests
│   └── InternalError  ServerTimeout  Timeout  ServiceUnavailable  StoreReadError  UnknownReason
├── TransportError              no complete answer came
│   ├── RequestTimeoutError
│   └── AnswerTooLargeError
├── ConfigError                 a kubeconfig, flag or option that cannot be used
│   └── NoConfigError
├── NotRegisteredError  NoMatchError  DecodeError  PatchError
├── GenerateError               a class that cannot become a manifest
├── CacheError: CacheNotStartedError  CacheSyncTimeoutError  NotCachedError (ObjectNotCachedError  NamespaceNotCachedError: NotFound, too)
├── LeaderElectionLostError  FencedError
├── AlreadyOwnedError  TerminalError
```

There is one class for each StatusReason of the API (k8s.io/apimachinery/pkg/apis/meta/v1/types.go) and it has the reason's name.
Catch the class; there are no `is_not_found(error)` functions.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self, cast

__all__ = [
    "TRANSIENT_ERRORS",
    "APIStatusError",
    "AlreadyExists",
    "AlreadyOwnedError",
    "AnswerTooLargeError",
    "BadRequest",
    "CacheError",
    "CacheNotStartedError",
    "CacheSyncTimeoutError",
    "ConfigError",
    "Conflict",
    "CtrlError",
    "DecodeError",
    "Expired",
    "FencedError",
    "Forbidden",
    "GenerateError",
    "Gone",
    "InternalError",
    "Invalid",
    "LeaderElectionLostError",
    "MethodNotAllowed",
    "NamespaceNotCachedError",
    "NoConfigError",
    "NoMatchError",
    "NotAcceptable",
    "NotCachedError",
    "NotFound",
    "NotRegisteredError",
    "ObjectNotCachedError",
    "PatchError",
    "RequestEntityTooLarge",
    "RequestTimeoutError",
    "ServerTimeout",
    "ServiceUnavailable",
    "StaleReadError",
    "StatusCause",
    "StoreReadError",
    "TerminalError",
    "Timeout",
    "TooManyRequests",
    "TransportError",
    "Unauthorized",
    "UnknownReason",
    "UnsupportedMediaType",
]


class CtrlError(Exception):
    """The root of all errors raised by ctrlruntime."""


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One reason for a failure: a machine-readable `reason`, a `message`, and the `field` it concerns (a JSON path)."""

    reason: str = ""
    message: str = ""
    field: str = ""


class APIStatusError(CtrlError):
    """The API server answered with a failure; `status` is the body of kind Status it sent (or one made from a bare answer)."""

    reason: ClassVar[str] = ""
    code: int

    is_answer = False
    """Whether an API server sent it as an answer to this process, and no code of this process made it."""

    _by_reason: ClassVar[dict[str, type[APIStatusError]]] = {}
    _by_code: ClassVar[dict[int, type[APIStatusError]]] = {}
    default_code: ClassVar[int] = 500

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.reason = cls.__name__
        APIStatusError._by_reason[cls.reason] = cls
        APIStatusError._by_code.setdefault(cls.default_code, cls)

    def __init__(
        self,
        message: str = "",
        *,
        status: Mapping[str, Any] | None = None,
        code: int | None = None,
        retry_after: float | None = None,
        causes: Sequence[StatusCause] = (),
        details: Mapping[str, Any] | None = None,
    ) -> None:
        if status is None:
            body: dict[str, Any] = {**(details or {})}
            if causes:
                body["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
            if retry_after is not None:
                body["retryAfterSeconds"] = int(retry_after)
            status = {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Failure",
                "message": message,
                "reason": self.reason,
                "details": body,
                "code": code or self.default_code,
            }
        self.status: Mapping[str, Any] = status
        self.code = code or _whole(status.get("code")) or self.default_code
        self._retry_after = retry_after
        super().__init__(message or str(status.get("message", "")) or self.reason)

    @property
    def message(self) -> str:
        return str(self)

    @property
    def details(self) -> Mapping[str, Any]:
        details = self.status.get("details")
        return cast("Mapping[str, Any]", details) if isinstance(details, Mapping) else {}

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """What exactly was wrong, field by field; empty when the server did not say."""
        causes: Any = self.details.get("causes")
        listed = [each for each in causes if isinstance(each, Mapping)] if isinstance(causes, list | tuple) else ()
        return tuple(
            StatusCause(*(str(each.get(name) or "") for name in ("reason", "message", "field"))) for each in listed
        )

    @property
    def retry_after(self) -> float | None:
        """Seconds the server asks to wait (Retry-After header, else `details.retryAfterSeconds`), or None."""
        if self._retry_after is not None:
            return self._retry_after
        seconds = _whole(self.details.get("retryAfterSeconds"))
        return float(seconds) if seconds else None

    @staticmethod
    def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> APIStatusError:
        """Return the exception for a Status body: by its reason, else by its code."""
        reason, code = str(status.get("reason") or ""), _whole(status.get("code")) or 500
        text = str(status.get("message") or "")
        if len(text) > _LONGEST_MESSAGE:  # it goes into logs and Events; `status` has all of it
            text = f"{text[:_LONGEST_MESSAGE]}… ({len(text)} characters)"
        cls = APIStatusError._by_reason.get(reason) or APIStatusError._by_code.get(code, UnknownReason)
        return cls(text, status=status, code=code, retry_after=retry_after)

    @staticmethod
    def from_response(code: int, body: bytes, *, retry_after: float | None = None) -> APIStatusError:
        """Return the exception for an HTTP answer, whether its body is a Status, other text or nothing."""
        status: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            status = json.loads(body)
        if not (isinstance(status, dict) and cast("dict[str, Any]", status).get("kind") == "Status"):
            text = body[:2048].decode("utf-8", "replace").strip()
            cls = APIStatusError._by_code.get(code, UnknownReason)
            error = cls(f"the server answered {code}: {text or 'no body'}", code=code, retry_after=retry_after)
        else:
            found = cast("dict[str, Any]", status)
            error = APIStatusError.from_status(
                {**found, "code": _whole(found.get("code")) or code}, retry_after=retry_after
            )
        error.is_answer = True
        return error


_LONGEST_MESSAGE: Final = 16 * 1024
"""Characters of what the server says that are in the text of an error."""


def _whole(value: object) -> int:
    """Return a number of a Status; 0 for what is none or as large as none of them is: a server may send anything."""
    return value if isinstance(value, int) and 0 < value < 2**31 else 0


class BadRequest(APIStatusError):
    """400: the server did not understand the request."""

    default_code = 400


class Unauthorized(APIStatusError):
    """401: the credential is missing, wrong or expired."""

    default_code = 401

    def __str__(self) -> str:
        text = super().__str__()
        if text != self.reason:
            return text
        # The server says no more than the one word; the log of who reads it should.
        return (
            "Unauthorized: the API server does not accept the credential, which is missing, wrong or expired; "
            "check the user in the kubeconfig, or log in again"
        )


class Forbidden(APIStatusError):
    """403: the caller lacks the permission; the message names verb, resource and scope."""

    default_code = 403


class NotFound(APIStatusError):
    """404: there is no such object, or no such resource."""

    default_code = 404


class MethodNotAllowed(APIStatusError):
    """405: the resource does not support the verb."""

    default_code = 405


class NotAcceptable(APIStatusError):
    """406: the server has none of the representations asked for."""

    default_code = 406


class Conflict(APIStatusError):
    """409: the object changed since it was read, or another field manager owns a field (see `causes`)."""

    default_code = 409


class AlreadyExists(APIStatusError):
    """409: an object of that name exists."""

    default_code = 409


class Expired(APIStatusError):
    """410: the resourceVersion or continue token is too old; list again."""

    default_code = 410


class Gone(APIStatusError):
    """410: the older reason for what `Expired` says today."""

    default_code = 410


class RequestEntityTooLarge(APIStatusError):
    """413: the body is over the server's limit."""

    default_code = 413


class UnsupportedMediaType(APIStatusError):
    """415: the server cannot read this content type."""

    default_code = 415


class Invalid(APIStatusError):
    """422: the object does not pass validation; `causes` lists the fields."""

    default_code = 422


class TooManyRequests(APIStatusError):
    """429: the server sheds load; wait `retry_after` seconds."""

    default_code = 429


class InternalError(APIStatusError):
    """500: something failed inside the server or one of its webhooks."""

    default_code = 500


class StoreReadError(APIStatusError):
    """500: an object in the store cannot be decoded by the server."""

    default_code = 500


class ServiceUnavailable(APIStatusError):
    """503: the server is not ready to answer."""

    default_code = 503


class ServerTimeout(APIStatusError):
    """504: the server could not finish in time; the request may be repeated."""

    default_code = 504


class Timeout(APIStatusError):
    """504: the request took longer than allowed."""

    default_code = 504


class UnknownReason(APIStatusError):
    """A failure with a reason or code this package does not know; see `status` and `code`."""


class TransportError(CtrlError):
    """No complete answer came: the connection was refused, reset or lost. Whether a write took effect is unknown."""


class RequestTimeoutError(TransportError):
    """No complete answer came inside the request's time limit."""


class AnswerTooLargeError(TransportError):
    """An answer, its headers or a frame of a watch is larger than its limit; the message names the option of `Config` that raises it.

    The same request gets the same answer: change the option or ask for less at once.
    """


class ConfigError(CtrlError):
    """A kubeconfig, flag or option cannot be used; the message says which and what to do."""

    @classmethod
    def unreadable(cls, where: object, error: OSError | UnicodeError) -> Self:
        """Return the error for a file that cannot be read, or is not text; `where` names it."""
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text in UTF-8"
        return cls(f"{where} cannot be read: {reason}")


class NoConfigError(ConfigError):
    """There is no configuration: no flag, no KUBECONFIG, no pod, and no ~/.kube/config."""


class NotRegisteredError(CtrlError):
    """A class or kind is not in the Scheme."""


class NoMatchError(CtrlError):
    """The API server does not serve a kind (its CRD may not be installed)."""


class DecodeError(CtrlError):
    """An object the server sent does not fit the model; `raw` holds its bytes, the message names the fields."""

    def __init__(self, message: str, *, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw


class GenerateError(CtrlError):
    """A class cannot become a manifest; the message names module, class and field, what is wrong and what to do."""


class PatchError(CtrlError):
    """A patch is malformed or does not apply to the document."""


class CacheError(CtrlError):
    """A read that the cache cannot answer."""


class CacheNotStartedError(CacheError):
    """The cache is read before the manager has started it; use `api_reader` for reads before the start."""


class CacheSyncTimeoutError(CacheError):
    """An informer did not sync in time; the message says what stands in its way."""


class StaleReadError(CacheError):
    """The cache may not show an own write, and the server could not be asked; the cause is the error of the live read.

    It is transient: a reconcile that raises it is retried with backoff. `kind`: the kind that was read, as Kind.group.
    `age`: seconds since the oldest of those writes was sent.
    """

    def __init__(self, message: str, *, kind: str = "", age: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.age = age


class NotCachedError(CacheError):
    """The kind or object lies outside what this cache holds (namespaces, selectors, width or policy)."""


class ObjectNotCachedError(NotFound, NotCachedError):
    """A cache that holds only a selection has no such object; the server may have it. The message says what is held and how to read it live."""


class NamespaceNotCachedError(ObjectNotCachedError):
    """The namespace asked for is not cached at all; `get_or_none` raises it, too, for nothing is known of the object."""


for _local in (ObjectNotCachedError, NamespaceNotCachedError):
    _local.reason = NotFound.reason  # no server sends these; whoever asks for the reason means this one


class LeaderElectionLostError(CtrlError):
    """The lease could not be renewed in time: this process is no longer the leader."""


class FencedError(CtrlError):
    """A write was refused by our own fence: this process may no longer be the leader."""


class AlreadyOwnedError(CtrlError):
    """Another owner is the controller of the object already."""


class TerminalError(CtrlError):
    """Raise it from a reconciler for a failure that a retry cannot mend: it is counted and logged, and not requeued."""


TRANSIENT_ERRORS: Final = (TransportError, TooManyRequests, ServiceUnavailable, InternalError, ServerTimeout, Timeout)
"""Failures that pass by themselves: the same request may work a little later."""
