"""`Admission` wraps a handler: it reads the review, runs the handler within its timeout, and returns a response in all cases.

It uses `request` and `response`. Servers and tests pass bytes.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

import msgspec
from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.api.object import Object
from ctrlruntime.errors import (
    CacheNotStartedError,
    CacheSyncTimeoutError,
    ConfigError,
    CtrlError,
    DecodeError,
    PatchError,
)
from ctrlruntime.frames import name_of
from ctrlruntime.patch import apply_json_patch
from ctrlruntime.rest.fence import Actor, acting
from ctrlruntime.webhook.endpoint import JSON, EndpointKind, HandlerTimeoutError, NotReadyError, content_type_error
from ctrlruntime.webhook.request import VERSIONS, AdmissionRequest, read_review
from ctrlruntime.webhook.response import AdmissionResponse, answer_to, changed, errored, write_review

__all__ = ["Admission", "AdmissionHandler", "LogFields", "multi_mutating", "multi_validating"]

BODY_LIMIT: Final = 7 * 1024 * 1024
"""The maximum size of a review: two objects of the largest size that the API server accepts, with the overhead of JSON."""

HandlerFunction: TypeAlias = Callable[[AdmissionRequest], Coroutine[Any, Any, AdmissionResponse]]

LogFields: TypeAlias = Callable[[AdmissionRequest], Mapping[str, object]]
"""The fields of log lines of a handler."""


@runtime_checkable
class AdmissionHandler(Protocol):
    """Handles admission requests. An async function works too."""

    async def handle(self, request: AdmissionRequest, /) -> AdmissionResponse: ...


class Admission:
    """An admission webhook with a handler.

    For example `mgr.webhook_server.register("/mutate-sidecar-pod", Admission(handler))`.

    Args:
        cached_kinds: kinds that the handler reads from the cache. Reviews wait for them, and get a 503 if they do not sync in time.
        recover_panic: False raises exceptions in the HTTP server, for debugging.
        log_constructor: replaces the fields of log lines.

    Exceptions of the handler become responses: `Denied` a 403, an API error (`invalid(…)`) its own Status, an object that `request.decode`
    cannot read a 400. Others are logged with their traceback, and become a 500 without it.

    """

    kind: EndpointKind = "admission"

    def __init__(
        self,
        handler: AdmissionHandler | HandlerFunction,
        *,
        cached_kinds: Sequence[type[Object]] = (),
        recover_panic: bool = True,
        log_constructor: LogFields | None = None,
        body_limit: int = BODY_LIMIT,
    ) -> None:
        self._handle = handler_function(handler)
        self.cached_kinds: Final[Sequence[type[Object]]] = tuple(cached_kinds)
        self._recovers = recover_panic
        self._log_constructor = log_constructor
        self.body_limit: Final = body_limit
        self.panics = 0
        self._log = log.get_logger("admission")

    @override
    def __repr__(self) -> str:
        return f"Admission({name_of(self._handle)})"

    async def answer(self, body: bytes, *, content_type: str = JSON, timeout: float | None = None) -> bytes:
        """Return the response to a review, in its own version.

        Raises: NotReadyError if its cache has not started or synced.
        """
        if problem := content_type_error(content_type):
            return self.refuse(400, problem)
        if not body:
            return self.refuse(400, "the body is empty, and an AdmissionReview is needed")
        try:
            review = read_review(body)
        except DecodeError as error:
            self._log.warning("cannot decode review", error=str(error))
            return self.refuse(400, str(error))
        response = await self.respond(review.request, timeout=timeout)
        return write_review(review.api_version, review.request.uid, response, review.request.warnings)

    async def respond(self, request: AdmissionRequest, *, timeout: float | None = None) -> AdmissionResponse:
        """Return the response to a request.

        Raises: NotReadyError, HandlerTimeoutError (a NotReadyError), and with `recover_panic=False` the error of the handler.
        """
        fields = self._fields(request) if self._log_constructor is None else self._log_constructor(request)
        # Webhooks run on every replica: what they write needs no leadership.
        with log.bound(**fields), acting(Actor("webhook", fenced=False)):
            response = await self._guarded(request, timeout)
            self._log.debug("admission", allowed=response.allowed)
            return response

    def refuse(self, code: int, message: str) -> bytes:
        return write_review(VERSIONS[0], "", errored(code, message))

    async def _guarded(self, request: AdmissionRequest, timeout: float | None) -> AdmissionResponse:
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                return _checked(await self._handle(request))
        except (CacheNotStartedError, CacheSyncTimeoutError) as error:
            raise NotReadyError(str(error)) from error
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                self._log.warning("handler timed out and was cancelled", durationSeconds=timeout)
                raise HandlerTimeoutError(f"the webhook did not decide within {timeout:.3g} s") from error
            response = answer_to(error)
            return self._failed(error) if response is None else response

    def _failed(self, error: Exception) -> AdmissionResponse:
        if isinstance(error, CtrlError):  # a request of the handler failed, or a defect that has a name
            self._log.error("handler failed", error=log.describe(error))
        else:
            self.panics += 1
            if not self._recovers:
                raise error
            self._log.error("handler raised an unexpected exception", error=log.describe(error), exc_info=error)
        # What it raised may hold anything; it is for our log and not for who asked.
        return errored(500, f"the webhook failed on this request ({type(error).__name__}); its log says why")

    @staticmethod
    def _fields(request: AdmissionRequest) -> Mapping[str, object]:
        fields: dict[str, object] = {
            "webhookGroup": request.kind.group,
            "webhookKind": request.kind.kind,
            "operation": request.operation,
            "namespace": request.namespace,
            "name": request.name,
            "user": request.user_info.username,
            "requestID": request.uid,
        }
        if request.dry_run:
            fields["dryRun"] = True
        return fields


def multi_mutating(*handlers: AdmissionHandler | HandlerFunction) -> HandlerFunction:
    """Return a handler that runs mutating handlers in order.

    Each gets the object of the previous one.

    The first rejection ends it; its response has no patches.
    """
    functions = _several(handlers)

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        patches: list[Mapping[str, Any]] = []
        warnings: list[str] = []
        annotations: dict[str, str] = {}
        original = request.object
        try:
            for function in functions:
                response = _checked(await function(request))
                warnings += response.warnings
                annotations |= response.audit_annotations or {}
                if not response.allowed:
                    return AdmissionResponse(
                        allowed=False, status=response.status, warnings=warnings, audit_annotations=annotations
                    )
                if response.patches:
                    patches += response.patches
                    request.object = _apply(request.object, response.patches)
        finally:
            request.object = original
        final = changed(patches).with_warnings(*warnings)
        return AdmissionResponse(
            allowed=True, status=final.status, patches=patches, warnings=warnings, audit_annotations=annotations
        )

    return handle


def multi_validating(*handlers: AdmissionHandler | HandlerFunction) -> HandlerFunction:
    """Return a handler that runs validating handlers in order.

    The first rejection is the response.

    Raises (when it runs): PatchError if a handler returns patches.
    """
    functions = _several(handlers)

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        response = AdmissionResponse(allowed=True, status={"code": 200})
        for function in functions:
            answered = _checked(await function(request))
            if answered.patches:
                raise PatchError("a validating webhook cannot change the object. Use a mutating webhook")
            response = AdmissionResponse(
                allowed=answered.allowed,
                status=answered.status,
                warnings=(*response.warnings, *answered.warnings),
                audit_annotations={**(response.audit_annotations or {}), **(answered.audit_annotations or {})},
            )
            if not answered.allowed:
                break
        return response

    return handle


def handler_function(handler: AdmissionHandler | HandlerFunction) -> HandlerFunction:
    """Return a handler as a function. Raises: ConfigError if it is not a handler."""
    given: object = handler
    method = getattr(given, "handle", None)
    function: Any = method if callable(method) else given
    if isinstance(given, type) or not callable(function):
        raise ConfigError(
            f"{given!r} is not an admission handler: pass an object with `async def handle(self, request)`, or an async function"
        )
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))):  # noqa: B004 - asked for its kind
        raise ConfigError(
            f"{given!r} is not an admission handler: it must be async, because a synchronous handler blocks all other requests"
        )
    return cast("HandlerFunction", function)


def _several(handlers: Sequence[AdmissionHandler | HandlerFunction]) -> list[HandlerFunction]:
    if not handlers:
        raise ConfigError("no handlers were given")
    return [handler_function(handler) for handler in handlers]


def _checked(response: object) -> AdmissionResponse:
    if not isinstance(response, AdmissionResponse):
        raise TypeError(
            f"the handler returned {response!r}; return an AdmissionResponse: allowed(), denied(…) or patch_response(request, obj)"
        )
    return response


def _apply(raw: bytes, patches: Sequence[Mapping[str, Any]]) -> bytes:
    return msgspec.json.encode(apply_json_patch(msgspec.json.decode(raw), patches))
