"""The failures kube-apiserver reports, with its words: every Status the server sends is made here or in `ctrlruntime.errors`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.errors import (
    AlreadyExists,
    APIStatusError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    StatusCause,
    Timeout,
    UnknownReason,
)

_PREFIXES = {
    "FieldValueRequired": "Required value",
    "FieldValueInvalid": "Invalid value",
    "FieldValueTypeInvalid": "Invalid value",
    "FieldValueNotSupported": "Unsupported value",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate value",
    "FieldValueTooLong": "Too long",
    "FieldValueTooMany": "Too many",
    "FieldValueNotFound": "Not found",
}


def qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def shown(value: Any) -> str:
    """Return a value as upstream's field errors print it: strings quoted, numbers as Go's %v, everything else as JSON."""
    if type(value) is str:
        return quoted(value)
    if type(value) is float:
        return go_float(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_HTML)


_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What encoding/json escapes."""


def quoted(text: str) -> str:
    """Return a text as Go's %q prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ESCAPES = {
    '"': '\\"',
    **{character: repr(character)[1:-1] for character in "\\\n\r\t"},
    **dict(zip("\a\b\f\v", (r"\a", r"\b", r"\f", r"\v"), strict=True)),
}


def go_float(value: float) -> str:
    """Return a float as Go's fmt prints it: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    number = Decimal(repr(value)).normalize()
    if -4 <= number.adjusted() < 6:
        return f"{number:f}"
    mantissa, _, exponent = f"{number:e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def invalid_value(field: str, value: Any, message: str, *, reason: str = "FieldValueInvalid") -> StatusCause:
    return StatusCause(reason, f"Invalid value: {shown(value)}: {message}", field)


def required(field: str, message: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {message}" if message else "Required value", field)


def forbidden_field(field: str, message: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {message}", field)


def duplicate(field: str, value: Any) -> StatusCause:
    return StatusCause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> StatusCause:
    listed = ", ".join(shown(item) for item in supported)
    return StatusCause(
        "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}", field
    )


def too_long(field: str, limit: int) -> StatusCause:
    return StatusCause(
        "FieldValueTooLong", f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}", field
    )


def too_many(field: str, actual: int, limit: int) -> StatusCause:
    return StatusCause(
        "FieldValueTooMany", f"Too many: {actual}: must have at most {limit} {'item' if limit == 1 else 'items'}", field
    )


def invalid(kind: str, group: str, name: str, causes: Sequence[StatusCause]) -> Invalid:
    """Return the 422 for an object (`kind` is the Kind; in the few old places where upstream has the plural, that)."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(
        f'{qualified(kind, group)} "{name}" is invalid: {listed}', causes=causes, details=_details(name, group, kind)
    )


def not_found(plural: str, group: str, name: str) -> NotFound:
    return NotFound(f'{qualified(plural, group)} "{name}" not found', details=_details(name, group, plural))


def no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource")


def already_exists(
    plural: str, group: str, name: str, *, deleting: bool = False, generated: bool = False
) -> APIStatusError:
    text = f'{qualified(plural, group)} "{name}" already exists'
    if deleting:
        text = f"object is being deleted: {text}"
    if generated:
        text += ", the server was not able to generate a unique name for the object"
    return AlreadyExists(text, details=_details(name, group, plural), retry_after=1 if generated else None)


def conflict(plural: str, group: str, name: str, why: str = "") -> Conflict:
    reason = why or "the object has been modified; please apply your changes to the latest version and try again"
    return Conflict(
        f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {reason}',
        details=_details(name, group, plural),
    )


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def namespace_terminating(plural: str, group: str, name: str, namespace: str) -> Forbidden:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = StatusCause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
    return Forbidden(
        f'{qualified(plural, group)} "{name}" is forbidden: {why}',
        causes=[cause],
        details=_details(name, group, plural),
    )


def forbidden(plural: str, group: str, name: str, why: str) -> Forbidden:
    return Forbidden(f'{qualified(plural, group)} "{name}" is forbidden: {why}', details=_details(name, group, plural))


def bad_option(kind: str, causes: Sequence[StatusCause]) -> Invalid:
    """Return the 422 for a query option, e.g. of `CreateOptions`."""
    return invalid(kind, "meta.k8s.io", "", causes)


class Undecodable(BadRequest, is_reason=False):
    """400: the server's own types cannot hold the object."""

    def __init__(self, why: str, message: str = "", *, applied: str = "", is_conversion: bool = False) -> None:
        super().__init__(message or why)
        self.why = why
        """What the decoder says, without the kind."""
        self.applied = applied
        """What it says of an applied configuration. Empty if the merge finds the failure before the decoder does."""
        self.is_conversion = is_conversion
        """The version of the request can hold it, and the one in which the server works cannot."""


def undecodable(kind: str, version: str, why: str, *, applied: str = "", is_conversion: bool = False) -> Undecodable:
    message = f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'
    return Undecodable(why, message, applied=applied, is_conversion=is_conversion)


def bad_request(message: str) -> BadRequest:
    return BadRequest(message)


def plain_internal(message: str, code: int = 500) -> UnknownReason:
    """Return a failure without a reason, as upstream's unclassified errors are."""
    return UnknownReason(
        status={
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "code": code,
        },
        code=code,
    )


def internal(message: str) -> InternalError:
    """Return the 500 for what went wrong inside, said so."""
    return InternalError(f"Internal error occurred: {message}", causes=[StatusCause("", message, "")])


def too_large_resource_version(asked: int, current: int) -> Timeout:
    return Timeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[StatusCause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1,
    )


def too_old(message: str, *, continue_: str = "") -> Expired:
    error = Expired(message)
    if continue_:
        status = {**error.status, "metadata": {"continue": continue_}}
        return Expired(status=status)
    return error


def success(plural: str, group: str, name: str, uid: str) -> Document:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {**_details(name, group, plural), **({"uid": uid} if uid else {})},
    }


def _details(name: str, group: str, kind: str) -> Document:
    details = {"name": name, "group": group, "kind": kind}
    return {key: value for key, value in details.items() if value}


def prefix_of(reason: str) -> str:
    """Return how upstream words a cause's reason ("Invalid value", "Forbidden", …)."""
    return _PREFIXES.get(reason, reason)
