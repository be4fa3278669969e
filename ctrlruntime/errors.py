"""All errors of this package, as one tree.

```text
CtrlError
├── APIStatusError              the API server responded with a failure; has the Status
│   ├── BadRequest  Unauthorized  Forbidden  NotFound  MethodNotAllowed  NotAcceptable  UnsupportedMediaType
│   ├── AlreadyExists  Conflict  Gone  Expired  Invalid  RequestEntityTooLarge  TooManyRequests
│   └── InternalError  ServerTimeout  Timeout  ServiceUnavailable  StoreReadError  UnknownReason
├── TransportError              no complete response
│   ├── RequestTimeoutError
│   └── AnswerTooLargeError
├── ConfigError                 an invalid kubeconfig, flag or option
│   └── NoConfigError
├── NotRegisteredError  NoMatchError  DecodeError  PatchError
├── GenerateError               a class that cannot become a manifest
├── CacheError: CacheNotStartedError  CacheSyncTimeoutError  NotCachedError (ObjectNotCachedError  NamespaceNotCachedError: also NotFound)
├── LeaderElectionLostError  FencedError
├── ClusterNotReadyError  ClusterGoneError  WrongClusterError
├── AlreadyOwnedError  TerminalError  RequeueAfter
```

Each StatusReason of the API (k8s.io/apimachinery/pkg/apis/meta/v1/types.go) has a class with the same name. Catch the class. Functions such
as `is_not_found(error)` do not exist.
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
    "ClusterGoneError",
    "ClusterNotReadyError",
    "ConfigError",
    "Conflict",
    "CtrlError",
    "DecodeError",
    "Expired",
    "FencedError",
    "Forbidden",
    "ForeignShardError",
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
    "RequeueAfter",
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
    "WrongClusterError",
]


class CtrlError(Exception):
    """The base class of all errors of ctrlruntime."""

    @property
    def doc_url(self) -> str:
        """The address of the documentation of the error.

        It is the entry of its class, or of the nearest base class that has one.
        """
        return next(_DOCUMENTATION + cls.__name__ for cls in type(self).__mro__ if cls.__name__ in _DOCUMENTED)


@dataclass(frozen=True, slots=True)
class StatusCause:
    """One cause of a failure.

    It has a machine-readable `reason`, a `message`, and the JSON path of the `field`.
    """

    reason: str = ""
    message: str = ""
    field: str = ""


class APIStatusError(CtrlError):
    """The API server responded with a failure.

    `status` is the Status object of the response, or one created from a response without it.
    """

    reason: ClassVar[str] = ""
    code: int

    is_answer = False
    """Whether the error is the result of a request to an API server or of a read from the cache.

    False if your code created it. Webhooks return only those errors to their client.
    """

    _by_reason: ClassVar[dict[str, type[APIStatusError]]] = {}
    _by_code: ClassVar[dict[int, type[APIStatusError]]] = {}
    default_code: ClassVar[int] = 500

    def __init_subclass__(cls, *, is_reason: bool = True, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not is_reason:  # the API knows its base class only
            return
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
        """The causes, one for each field; empty if the server sent none."""
        causes: Any = self.details.get("causes")
        listed = [each for each in causes if isinstance(each, Mapping)] if isinstance(causes, list | tuple) else ()
        return tuple(
            StatusCause(*(str(each.get(name) or "") for name in ("reason", "message", "field"))) for each in listed
        )

    @property
    def retry_after(self) -> float | None:
        """The seconds that the server requests to wait, or None.

        From the header Retry-After, else from `details.retryAfterSeconds`.
        """
        if self._retry_after is not None:
            return self._retry_after
        seconds = _whole(self.details.get("retryAfterSeconds"))
        return float(seconds) if seconds else None

    @staticmethod
    def from_status(status: Mapping[str, Any], *, retry_after: float | None = None) -> APIStatusError:
        """Return the error for a Status object, by its reason, else by its code."""
        reason, code = str(status.get("reason") or ""), _whole(status.get("code")) or 500
        text = str(status.get("message") or "")
        if len(text) > _LONGEST_MESSAGE:  # it goes into logs and Events; `status` has all of it
            text = f"{text[:_LONGEST_MESSAGE]}… ({len(text)} characters)"
        cls = APIStatusError._by_reason.get(reason) or APIStatusError._by_code.get(code, UnknownReason)
        return cls(text, status=status, code=code, retry_after=retry_after)

    @staticmethod
    def from_response(code: int, body: bytes, *, retry_after: float | None = None) -> APIStatusError:
        """Return the error for an HTTP response.

        Its body is a Status, other text, or empty.
        """
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


_DOCUMENTATION: Final = "https://ctrlruntime.dev/reference/errors/#"

_DOCUMENTED: Final = frozenset({
    *__all__,
    "ConversionError", "Denied", "NotReadyError", "QueueShutDownError", "ReconcileCancelledError", "ReconcilePanicError",
    "ReconcileTimeoutError", "UnhealthyError",
}) - {"TRANSIENT_ERRORS", "StatusCause"}  # fmt: skip
"""The classes that have an entry in docs/reference/errors.md: all public ones. Names, since most are in modules above this one."""

_LONGEST_MESSAGE: Final = 16 * 1024
"""The maximum number of characters of a server's message in the text of an error."""


def _whole(value: object) -> int:
    """Return a number of a Status; 0 for what is none or as large as none of them is: a server may send anything."""
    return value if isinstance(value, int) and 0 < value < 2**31 else 0


class BadRequest(APIStatusError):
    """400: the server does not understand the request."""

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
    """403: the caller lacks the permission.

    The message names verb, resource and scope.
    """

    default_code = 403


class NotFound(APIStatusError):
    """404: the object or the resource does not exist."""

    default_code = 404


class MethodNotAllowed(APIStatusError):
    """405: the resource does not support the verb."""

    default_code = 405


class NotAcceptable(APIStatusError):
    """406: the server supports none of the requested media types."""

    default_code = 406


class Conflict(APIStatusError):
    """409: the object changed since it was read, or another manager owns a field.

    `causes` has the fields and their managers.
    """

    default_code = 409


class AlreadyExists(APIStatusError):
    """409: an object with this name exists."""

    default_code = 409


class Expired(APIStatusError):
    """410: the resourceVersion or continue token is too old; list again."""

    default_code = 410


class Gone(APIStatusError):
    """410: an older reason for `Expired`."""

    default_code = 410


class RequestEntityTooLarge(APIStatusError):
    """413: the body is larger than the limit of the server."""

    default_code = 413


class UnsupportedMediaType(APIStatusError):
    """415: the server does not support this content type."""

    default_code = 415


class Invalid(APIStatusError):
    """422: the object is not valid; `causes` lists the fields."""

    default_code = 422


class TooManyRequests(APIStatusError):
    """429: the server is overloaded; wait `retry_after` seconds."""

    default_code = 429


class InternalError(APIStatusError):
    """500: an error inside the server or one of its webhooks."""

    default_code = 500


class StoreReadError(APIStatusError):
    """500: the server cannot decode a stored object."""

    default_code = 500


class ServiceUnavailable(APIStatusError):
    """503: the server is not ready."""

    default_code = 503


class ServerTimeout(APIStatusError):
    """504: the server did not finish in time; you may repeat the request."""

    default_code = 504


class Timeout(APIStatusError):
    """504: the request took longer than allowed."""

    default_code = 504


class UnknownReason(APIStatusError):
    """A failure with an unknown reason or code; see `status` and `code`."""


class TransportError(CtrlError):
    """The response is missing or incomplete.

    The connection was refused, reset or lost.

    Whether a write took effect is unknown.
    """


class RequestTimeoutError(TransportError):
    """No complete response arrived within the timeout of the request."""


class AnswerTooLargeError(TransportError):
    """A response, its headers or a frame of a watch is larger than its limit.

    The message names the option of `Config` that raises the limit. The same request fails again: change the option, or request less at
    once.
    """


class ConfigError(CtrlError):
    """A kubeconfig, flag or option cannot be used.

    The message has the cause and a fix.
    """

    @classmethod
    def unreadable(cls, where: object, error: OSError | UnicodeError) -> Self:
        """Return the error for a file that cannot be read or is not text.

        `where` names the file.
        """
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8 text"
        return cls(f"cannot read {where}: {reason}")


class NoConfigError(ConfigError):
    """No configuration was found.

    Neither a flag, KUBECONFIG, a pod's service account nor ~/.kube/config has one.
    """


class NotRegisteredError(CtrlError):
    """A class or kind is not in the Scheme."""


class NoMatchError(CtrlError):
    """The API server does not serve the kind. Its CRD may not be installed."""


class DecodeError(CtrlError):
    """An object from the server does not match the class.

    The message names the fields.

    `raw` has the bytes of the object.
    """

    def __init__(self, message: str, *, raw: bytes = b"") -> None:
        super().__init__(message)
        self.raw = raw


class GenerateError(CtrlError):
    """A class cannot become a manifest.

    The message has the module, class and field, and a fix.
    """


class PatchError(CtrlError):
    """A patch is invalid, or cannot be applied to the document."""


class CacheError(CtrlError):
    """The cache cannot serve a read."""


class CacheNotStartedError(CacheError):
    """A read of the cache before the manager has started it.

    Use `api_reader` for such reads.
    """


class CacheSyncTimeoutError(CacheError):
    """An informer did not sync in time; the message has the cause."""


class StaleReadError(CacheError):
    """The cache may lack an own write, and the live read failed.

    `__cause__` is the error of the live read.

    It is transient: a reconcile that raises it is retried with backoff.

    Args:
        kind: the kind that was read, as Kind.group.
        age: seconds since the oldest of these writes was sent.

    """

    def __init__(self, message: str, *, kind: str = "", age: float = 0.0) -> None:
        super().__init__(message)
        self.kind = kind
        self.age = age


class NotCachedError(CacheError):
    """The kind or object is outside the scope of this cache.

    The scope consists of namespaces, selectors and a policy.
    """


class ObjectNotCachedError(NotFound, NotCachedError):
    """The object is outside the scope of this cache, but may exist.

    The message has the scope of the cache, and how to read the object live.
    """


class NamespaceNotCachedError(ObjectNotCachedError):
    """The namespace is not cached.

    `get_or_none` also raises this error, because the object may exist.
    """


class ForeignShardError(NotCachedError):
    """Another replica reconciles the object, so this one does not cache it.

    Read it with `live_fallback=True`. With `Sharding(strict=True)`, a write of a reconcile to such an object raises this error, too.

    Args:
        slot: the part of all objects that it belongs to.
        owner: the Pod of the replica that has the slot; empty if none has it, or it is not known.

    """

    def __init__(self, message: str, *, slot: int = 0, owner: str = "") -> None:
        super().__init__(message)
        self.slot = slot
        self.owner = owner


class WrongClusterError(CtrlError, ValueError):
    """The key or the object belongs to another cluster than the client."""


class ClusterNotReadyError(CtrlError):
    """The cluster of a fleet has not responded yet, so its kinds are not in the cache.

    `mgr.fleet.status(name)` has the reason. The fleet tries again until the cluster responds, or is removed.
    """


class ClusterGoneError(CtrlError):
    """The fleet has no cluster with this name, or it was removed."""


for _local in (ObjectNotCachedError, NamespaceNotCachedError):
    _local.reason = NotFound.reason  # no server sends these; whoever asks for the reason means this one


class LeaderElectionLostError(CtrlError):
    """The Lease was not renewed in time, so this process is no longer the leader."""


class FencedError(CtrlError):
    """The fence rejected a write.

    This process may no longer be the leader.
    """


class AlreadyOwnedError(CtrlError):
    """The object already has another controller."""


class TerminalError(CtrlError):
    """A failure that a retry cannot fix. Raise it from a reconciler.

    It is counted and logged, and the request is not retried.
    """


class RequeueAfter(CtrlError):
    """Raise it to reconcile the request again in `seconds`. It is not a failure.

    It has the effect of `return Result(requeue_after=seconds, reason=reason)`, for code that cannot return from the reconciler, such as a
    helper or a finalizer. The request is not logged as an error, and its backoff starts again.

    Raises:
        TypeError, ValueError: `seconds` is not a number above 0.

    """

    def __init__(self, seconds: float, reason: str = "") -> None:
        given = cast("object", seconds)
        if not isinstance(given, (int, float)):
            raise TypeError(f"seconds is {given!r}: give a number (for a timedelta: its total_seconds())")
        if not seconds > 0:
            raise ValueError(f"seconds is {seconds}: give a number above 0")
        super().__init__(reason or f"requeue after {seconds:g} s")
        self.seconds = seconds
        self.reason = reason


TRANSIENT_ERRORS: Final = (TransportError, TooManyRequests, ServiceUnavailable, InternalError, ServerTimeout, Timeout)
"""Errors that a retry can fix."""
