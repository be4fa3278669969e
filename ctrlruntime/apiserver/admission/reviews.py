"""AdmissionReview: the question a webhook is asked, and the checks its answer must pass."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from ctrlruntime.apiserver.authorization import user_info
from ctrlruntime.apiserver.interfaces import AdmissionAttributes
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document, encode

_GROUP = "admission.k8s.io"
_KNOWN = frozenset({f"{_GROUP}/v1", f"{_GROUP}/v1beta1"})
_SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
_NO_OBJECT = (
    "couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type "
    'struct {{ APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }}'
)
_GO_KINDS: Mapping[type, str] = {str: "string", int: "number", float: "number", bool: "bool", list: "array"}


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
    answer = _answer(review.get("response"))
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
        review: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise ReviewError.uncalled(no_object("")) from None
    if not isinstance(review, dict):
        raise ReviewError.uncalled(no_object(review))
    found: Document = review
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


def no_object(value: Any) -> str:
    """Return what Go says of JSON that is not the object it should be."""
    return _NO_OBJECT.format(kind=_GO_KINDS.get(type(value), "value"))


def _check_echo(review: Document, uid: str) -> None:
    given = (review.get("response") or {}).get("uid") or ""
    if given != uid:
        raise ReviewError.invalid(f'expected response.uid="{uid}", got "{given}"')
    if not review.get("kind"):
        raise ReviewError.invalid(f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got /, Kind=")


def _answer(response: Any) -> Answer:
    if response is None:
        raise ReviewError.invalid("webhook response was absent")
    if not isinstance(response, dict):
        raise ReviewError.uncalled(_cannot(response, "response", "v1.AdmissionResponse"))
    found: Document = response
    for field, kind in (("allowed", bool), ("patch", str), ("patchType", str), ("status", dict), ("warnings", list)):
        if found.get(field) is not None and not isinstance(found[field], kind):
            shown = {bool: "bool", str: "string", dict: "v1.Status", list: "[]string"}[kind]
            raise ReviewError.uncalled(_cannot(found[field], f"response.{field}", shown))
    try:
        patch = base64.b64decode(found.get("patch") or "", validate=True)
    except binascii.Error:
        raise ReviewError.uncalled("illegal base64 data at input byte 0") from None
    return Answer(
        is_allowed=bool(found.get("allowed")),
        patch=patch,
        patch_type=found.get("patchType") or "",
        status=found.get("status"),
        warnings=tuple(str(warning) for warning in found.get("warnings") or ()),
    )


def _cannot(value: Any, field: str, kind: str) -> str:
    given = "object" if isinstance(value, dict) else _GO_KINDS.get(type(value), "value")
    return f"json: cannot unmarshal {given} into Go struct field AdmissionResponse.{field} of type {kind}"


def read_patch(patch: bytes) -> list[Document]:
    """Return the operations. Raises: ReviewError."""
    prefix = "received undecodable patch in webhook response"
    try:
        operations: Any = msgspec.json.decode(patch)
    except msgspec.DecodeError as error:
        first = patch.lstrip()[:1].decode("utf-8", "replace")
        if "truncated" in str(error) or not first:
            why = "unexpected end of JSON input"
        elif first not in '{["-0123456789tfn':
            why = f"invalid character {first!r} looking for beginning of value"
        else:
            why = str(error)
        raise ReviewError(f"{prefix}: {why}") from None
    if operations is None:
        return []
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        kind = "object" if isinstance(operations, dict) else _GO_KINDS.get(type(operations), "value")
        raise ReviewError(f"{prefix}: json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch")
    found: list[Document] = operations
    return found


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
    "no_object",
    "read_answer",
    "read_patch",
]
