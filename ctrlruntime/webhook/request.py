"""The request of an AdmissionReview, and its objects.

Handlers receive an `AdmissionRequest`, whose objects stay bytes until they are decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from ctrlruntime.api.kind import GroupVersionKind, GroupVersionResource
from ctrlruntime.api.object import Object
from ctrlruntime.errors import DecodeError
from ctrlruntime.rest.content import UNREADABLE
from ctrlruntime.webhook.limits import decode_beyond_limits

__all__ = ["AdmissionRequest", "Operation", "RequestDecodeError", "Review", "UserInfo", "read_review"]

T = TypeVar("T", bound=Object)

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")

_NO_KIND: Final = GroupVersionKind("", "", "")
_NO_RESOURCE: Final = GroupVersionResource("", "", "")


class RequestDecodeError(DecodeError):
    """An object of the request does not match the handler's class. The client must fix it."""


class UserInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user of a request, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = {}


@dataclass(slots=True, kw_only=True, eq=False)
class AdmissionRequest:
    """One admission request.

    `object` and `old_object` are JSON, and empty if the operation has none.

    `kind` and `resource` have the version for which the webhook is registered, `request_kind` and `request_resource` that of the client.
    """

    uid: str = ""
    operation: Operation = "CREATE"
    kind: GroupVersionKind = _NO_KIND
    resource: GroupVersionResource = _NO_RESOURCE
    sub_resource: str = ""
    request_kind: GroupVersionKind = _NO_KIND
    request_resource: GroupVersionResource = _NO_RESOURCE
    request_sub_resource: str = ""
    name: str = ""
    """Empty for a create with generateName."""
    namespace: str = ""
    user_info: UserInfo = field(default_factory=UserInfo)
    object: bytes = field(default=b"", repr=False)
    old_object: bytes = field(default=b"", repr=False)
    options: bytes = b""
    dry_run: bool = False
    """Nothing is stored, so do not cause side effects."""
    warnings: list[str] = field(default_factory=list[str])
    """The warnings added with `warn`."""

    def decode(self, kind: type[T], *, validate: bool = True) -> T:
        """Return the object of the request. You may change it.

        Args:
            kind: the class of the object.
            validate: False also accepts values that break the limits of their fields (`ge`, `max_length`, `pattern`, an enum). Mutating
                webhooks are called before the API server validates.

        Raises: RequestDecodeError (a DecodeError) if the request has no object, or it does not match the class.

        """
        return _decoded(kind, self.object, f"{self.operation} request has no object", validate=validate)

    def decode_old(self, kind: type[T], *, validate: bool = True) -> T:
        """Return the stored object (update, delete). Raises: as `decode`."""
        return _decoded(kind, self.old_object, f"{self.operation} request has no old object", validate=validate)

    def warn(self, text: str) -> None:
        """Add a warning for the client to any response.

        The API server cuts it after 256 characters.
        """
        self.warnings.append(text)


@dataclass(frozen=True, slots=True)
class Review:
    """A review: its version, and the request."""

    api_version: str
    request: AdmissionRequest


def read_review(body: bytes) -> Review:
    """Return the review in the body of a request. Raises: DecodeError."""
    try:
        review = _decode(body)
    except UNREADABLE as error:
        raise DecodeError(f"the body is not an AdmissionReview: {error}", raw=body) from error
    if review.kind != "AdmissionReview" or review.api_version not in VERSIONS:
        raise DecodeError(
            f"the body is a {review.api_version!r} {review.kind!r}, not an AdmissionReview of {' or '.join(VERSIONS)}",
            raw=body,
        )
    asked = review.request
    if asked is None:
        raise DecodeError("the AdmissionReview has no request", raw=body)
    kind, resource = GroupVersionKind(*_names(asked.kind)), GroupVersionResource(*_names(asked.resource))
    request = AdmissionRequest(
        uid=asked.uid,
        operation=asked.operation,
        kind=kind,
        resource=resource,
        sub_resource=asked.sub_resource,
        request_kind=kind if asked.request_kind is None else GroupVersionKind(*_names(asked.request_kind)),
        request_resource=resource
        if asked.request_resource is None
        else GroupVersionResource(*_names(asked.request_resource)),
        request_sub_resource=asked.request_sub_resource,
        name=asked.name,
        namespace=asked.namespace,
        user_info=asked.user_info,
        object=_bytes(asked.object),
        old_object=_bytes(asked.old_object),
        options=_bytes(asked.options),
        dry_run=bool(asked.dry_run),
    )
    return Review(review.api_version, request)


class _Kind(msgspec.Struct, gc=False, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str = ""
    operation: Any = ""
    kind: _Kind = _Kind()
    resource: _Kind = _Kind()
    sub_resource: str = ""
    request_kind: _Kind | None = None
    request_resource: _Kind | None = None
    request_sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    options: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: _Request | None = None


_decode = msgspec.json.Decoder(_Review).decode


def _names(kind: _Kind) -> tuple[str, str, str]:
    return kind.group, kind.version, kind.kind or kind.resource


def _bytes(raw: msgspec.Raw) -> bytes:
    content = bytes(raw)
    return b"" if content == b"null" else content


def _decoded(kind: type[T], raw: bytes, missing: str, *, validate: bool) -> T:
    if not raw:
        raise RequestDecodeError(f"the {missing}")
    try:
        return kind.from_json(raw) if validate else decode_beyond_limits(kind, raw)
    except DecodeError as error:
        raise RequestDecodeError(str(error), raw=raw) from error
