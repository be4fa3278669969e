"""AdmissionReview: the question a webhook is asked, and the checks its answer must pass."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ctrlruntime.apiserver.authorization import user_info
from ctrlruntime.apiserver.encoding import decode_body
from ctrlruntime.apiserver.go_json import Struct, check_list, unmarshal
from ctrlruntime.apiserver.go_values import go_name
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.apiserver.webhook_client import read_review
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document, encode

_GROUP = "admission.k8s.io"
_KNOWN = frozenset({f"{_GROUP}/v1", f"{_GROUP}/v1beta1"})
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_STATUS: Final = Struct(
    "Status",
    "v1.Status",
    {
        "metadata": Struct(
            "ListMeta",
            "v1.ListMeta",
            {"selfLink": "string", "resourceVersion": "string", "continue": "string", "remainingItemCount": "int64"},
            is_exact=True,
        ),
        "status": "string",
        "message": "string",
        "reason": "v1.StatusReason",
        "code": "int32",
        "details": Struct(
            "StatusDetails",
            "v1.StatusDetails",
            {
                "name": "string",
                "group": "string",
                "kind": "string",
                "uid": "types.UID",
                "causes": "[]v1.StatusCause",
                "retryAfterSeconds": "int32",
            },
            is_exact=True,
        ),
    },
    is_exact=True,
)
_RESPONSE: Final = Struct(
    "AdmissionResponse",
    "v1.AdmissionResponse",
    {
        "uid": "types.UID",
        "allowed": "bool",
        "status": _STATUS,
        "patchType": "v1.PatchType",
        "auditAnnotations": "map[string]string",
        "warnings": "[]string",
    },
    is_exact=True,
)
_REVIEW: Final = Struct("AdmissionReview", "v1.AdmissionReview", {"response": _RESPONSE}, is_exact=True)


class ReviewError(Exception):
    """The webhook made no decision, and its failure policy applies; the message is kube-apiserver's."""

    @classmethod
    def uncalled(cls, why: str) -> ReviewError:
        return cls(f"failed to call webhook: {why}")

    @classmethod
    def invalid(cls, why: str) -> ReviewError:
        return cls(f"received invalid webhook response: {why}")


@dataclass(frozen=True, slots=True)
class Names:
    """Under which version a webhook sees a request: (group, version, kind) and (group, version, plural)."""

    kind: tuple[str, str, str]
    resource: tuple[str, str, str]


def make_request(
    attributes: AdmissionAttributes, names: Names, uid: str, object: Document | None, old: Document | None
) -> Document:
    """Return the `request` of a review; `object` and `old` are in the version that `names` says."""
    resource = attributes.resource
    asked = (resource.group, resource.version, resource.plural)
    request: Document = {"uid": uid, "kind": _kind(names.kind), "resource": _resource(names.resource)}
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = _kind(attributes.kind)
    request["requestResource"] = _resource(asked)
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request["operation"] = attributes.operation
    request["userInfo"] = user_info(attributes.user) if attributes.user is not None else {}
    request["object"] = object
    request["oldObject"] = old
    request["dryRun"] = attributes.dry_run
    request["options"] = attributes.options or None
    return request


def encode_review(request: Document, version: str) -> bytes:
    return encode({"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request})


def _kind(names: tuple[str, str, str]) -> Document:
    return {"group": names[0], "version": names[1], "kind": names[2]}


def _resource(names: tuple[str, str, str]) -> Document:
    return {"group": names[0], "version": names[1], "resource": names[2]}


@dataclass(frozen=True, slots=True)
class Answer:
    """The decision of a webhook. `patch` are the bytes of a JSON patch, empty without one."""

    is_allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Mapping[str, Any] | None = None
    warnings: Sequence[str] = ()

    def denial(self, webhook: str) -> APIStatusError:
        """Return the failure a client gets."""
        return _denial(webhook, self.status or {})


def read_answer(body: bytes, version: str, uid: str, side: Literal["mutating", "validating"]) -> Answer:
    """Return the answer in a review. Raises: ReviewError."""
    review = _decoded(body, version)
    answer = _answer(review)
    if version == "v1beta1":
        return answer  # the old version neither echoes the uid nor has to say what its patch is
    _check_echo(review, uid)
    if side == "validating":
        if answer.patch:
            raise ReviewError.invalid("validating webhook may not return response.patch")
        if answer.patch_type:
            raise ReviewError.invalid("validating webhook may not return response.patchType")
    elif bool(answer.patch) != bool(answer.patch_type):
        given, missing = ("patch", "patchType") if answer.patch else ("patchType", "patch")
        raise ReviewError.invalid(f"webhook returned response.{given} but not response.{missing}")
    return answer


def _decoded(body: bytes, version: str) -> Document:
    try:
        found = read_review(body)
    except ValueError as error:
        raise ReviewError.uncalled(str(error)) from None
    kind, api_version = found.get("kind") or "", found.get("apiVersion") or ""
    if not kind and not api_version:
        return found
    if kind != "AdmissionReview" or api_version not in _KNOWN:
        raise ReviewError.uncalled(f'no kind "{kind}" is registered for version "{api_version}" {_SCHEME}')
    if api_version != f"{_GROUP}/{version}":
        other = api_version.removeprefix(f"{_GROUP}/")
        raise ReviewError.uncalled(
            f"converting ({other}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )
    return found


def _check_echo(review: Document, uid: str) -> None:
    given = (review.get("response") or {}).get("uid") or ""
    if given != uid:
        raise ReviewError.invalid(f'expected response.uid="{uid}", got "{given}"')
    if not review.get("kind"):
        raise ReviewError.invalid(f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got /, Kind=")


def _answer(review: Document) -> Answer:
    try:
        response = unmarshal(review, _REVIEW).get("response")
        patch = _bytes((review.get("response") or {}).get("patch"))
    except ValueError as error:
        raise ReviewError.uncalled(str(error)) from None
    if response is None:
        raise ReviewError.invalid("webhook response was absent")
    return Answer(
        is_allowed=response.get("allowed", False),
        patch=patch,
        patch_type=response.get("patchType", ""),
        status=response.get("status"),
        warnings=response.get("warnings", ()),
    )


def _bytes(patch: Any) -> bytes:
    """Return the bytes of a patch: a text in base64, or as Go reads it a list of numbers. Raises: ValueError."""
    match patch:
        case None:
            return b""
        case str():
            try:
                return base64.b64decode(patch, validate=True)
            except binascii.Error:
                raise ValueError("illegal base64 data at input byte 0") from None
        case list() if all(type(byte) is int and 0 <= byte < 256 for byte in patch):
            return bytes(patch)
        case _:
            raise ValueError(
                f"json: cannot unmarshal {go_name(patch)} into Go struct field AdmissionResponse.response.patch of type []uint8"
            )


_OPERATION: Final = Struct("", "jsonpatch.Operation", {})


def read_patch(patch: bytes) -> list[Document]:
    """Return the operations. Raises: ReviewError."""
    try:
        return check_list(decode_body(patch), _OPERATION, "jsonpatch.Patch")
    except ValueError as error:
        raise ReviewError(f"received undecodable patch in webhook response: {error}") from None


def _denial(webhook: str, given: Mapping[str, Any]) -> APIStatusError:
    text = f'admission webhook "{webhook}" denied the request'
    why = given.get("message") or given.get("reason")
    text = f"{text}: {why}" if why else f"{text} without explanation"
    code = given.get("code")
    status: Document = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": given.get("metadata") or {},
        "status": "Failure",
        "message": text,
    }
    for key in ("reason", "details"):
        if given.get(key):
            status[key] = given[key]
    # Whatever the webhook says, a denial is a failure.
    status["code"] = code if isinstance(code, int) and code >= 400 else 400
    return APIStatusError.from_status(status)


def internal(message: str) -> APIStatusError:
    """Return the 500 for what went wrong on the server's own side of a request."""
    return APIStatusError.from_status(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {message}",
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        }
    )


__all__ = [
    "Answer",
    "Names",
    "ReviewError",
    "encode_review",
    "internal",
    "make_request",
    "read_answer",
    "read_patch",
]
