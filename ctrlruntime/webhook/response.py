"""Responses of an admission webhook.

Handlers return an `AdmissionResponse` from `allowed`, `denied`, `errored`, `patch_response` and `patch_response_from_raw`, or raise.
`answer_to` converts an exception to a response. `write_review` encodes it in the version of the review.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import msgspec

from ctrlruntime.api.model import model_like
from ctrlruntime.api.object import Object
from ctrlruntime.errors import APIStatusError, CtrlError, DecodeError
from ctrlruntime.patch import create_json_patch
from ctrlruntime.rest.content import UNREADABLE
from ctrlruntime.webhook.difference import patch_of
from ctrlruntime.webhook.request import AdmissionRequest, RequestDecodeError

__all__ = [
    "AdmissionResponse",
    "Denied",
    "Warnings",
    "allowed",
    "answer_to",
    "denied",
    "errored",
    "patch_response",
    "patch_response_from_raw",
    "write_review",
]

Warnings: TypeAlias = Sequence[str]
"""Warnings that `kubectl` and other clients show, whether the request is allowed or not."""

_REASONS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Denied(CtrlError):  # noqa: N818 - it is not an error that a validator says no
    """Raise it to reject a request with a message for the client.

    For errors of fields raise `invalid(…)`.
    """

    def __init__(self, message: str, *, warnings: Warnings = ()) -> None:
        super().__init__(message)
        self.warnings = warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionResponse:
    """The response to one request.

    `patches` are the operations of a JSON patch; `status` has the reason for a rejection.
    """

    allowed: bool
    status: Mapping[str, Any] | None = None
    patches: Sequence[Mapping[str, Any]] = ()
    warnings: Warnings = ()
    audit_annotations: Mapping[str, str] | None = None

    def with_warnings(self, *warnings: str) -> AdmissionResponse:
        """Return the same response with more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))


def allowed(message: str = "") -> AdmissionResponse:
    """Allow the request unchanged."""
    return AdmissionResponse(allowed=True, status={"code": 200, "message": message} if message else {"code": 200})


def denied(message: str) -> AdmissionResponse:
    """Reject the request: 403 Forbidden, with a message for the client."""
    return _refused(403, message)


def errored(code: int, error: str | BaseException) -> AdmissionResponse:
    """Reject the request because of an error; `code` is an HTTP status of 400 or more."""
    if not 400 <= code < 600:
        raise ValueError(f"code is {code}: an error has an HTTP status from 400 to 599; use allowed() for a success")
    return _refused(code, str(error))


def patch_response(request: AdmissionRequest, obj: Object) -> AdmissionResponse:
    """Allow the request with `obj`, which was decoded from it and changed.

    The patch has only the changes: fields that the class of `obj` does not define, or encodes differently, stay. Raises: DecodeError if the
    request has no such object.
    """
    before = request.decode(type(obj), validate=False).to_dict()
    return changed(patch_of(msgspec.json.decode(request.object), before, model_like(obj, before)))


def patch_response_from_raw(original: bytes, new: bytes) -> AdmissionResponse:
    """Allow the request with `new` instead of `original`, both JSON.

    `original` is `request.object`.

    Raises: DecodeError.
    """
    try:
        return changed(create_json_patch(msgspec.json.decode(original), msgspec.json.decode(new)))
    except UNREADABLE as error:
        raise DecodeError(f"cannot create a patch: the object is not JSON: {error}", raw=new) from error


def changed(patches: Sequence[Mapping[str, Any]]) -> AdmissionResponse:
    """Allow the request with these operations, possibly none."""
    return AdmissionResponse(allowed=True, status={"code": 200}, patches=patches)


def answer_to(error: Exception) -> AdmissionResponse | None:
    """Return the response for an exception of a handler.

    None if the client must not see it.

    Errors of the handler's own requests (`is_answer`) name objects, users and servers that the client may not see.
    """
    match error:
        case Denied():
            return denied(str(error)).with_warnings(*error.warnings)
        case APIStatusError(is_answer=False):
            return AdmissionResponse(allowed=False, status={**error.status, "code": error.code})
        case RequestDecodeError():
            return errored(400, error)
        case _:
            return None


def write_review(api_version: str, uid: str, response: AdmissionResponse, warnings: Warnings = ()) -> bytes:
    """Return the body of the response to a review of this version."""
    answer: dict[str, Any] = {"uid": uid, "allowed": response.allowed}
    if response.status is not None:
        answer["status"] = {**response.status, "code": response.status.get("code") or 200}
    if response.patches:
        answer["patch"] = base64.b64encode(msgspec.json.encode(list(response.patches))).decode()
        answer["patchType"] = "JSONPatch"
    if warnings or response.warnings:
        answer["warnings"] = [*warnings, *response.warnings]
    if response.audit_annotations:
        answer["auditAnnotations"] = dict(response.audit_annotations)
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": api_version, "response": answer})


def _refused(code: int, message: str) -> AdmissionResponse:
    status: dict[str, Any] = {"status": "Failure", "message": message, "code": code}
    if code in _REASONS:
        status["reason"] = _REASONS[code]
    return AdmissionResponse(allowed=False, status=status)
