"""The failures kube-apiserver reports, with its words: every Status the server sends is made here or in `ctrlruntime.errors`."""

from __future__ import annotations

from collections.abc import Sequence

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
from ctrlruntime.schema.trees import Document


def qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def invalid(kind: str, group: str, name: str, causes: Sequence[StatusCause]) -> Invalid:
    """Return the 422 for an object (`kind` is the Kind; in the few old places where upstream has the plural, that)."""
    return Invalid(
        f'{qualified(kind, group)} "{name}" is invalid: {listed(causes)}',
        causes=causes,
        details=_details(name, group, kind),
    )


def listed(causes: Sequence[StatusCause]) -> str:
    """Return the text of causes, each once (ToAggregate in apimachinery's pkg/util/validation/field)."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


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


def too_large_resource_version(asked: int, current: int, *, is_cached: bool = True) -> Timeout:
    """Return the failure of a read of the future; only the watch cache, which may come there, asks to try again."""
    return Timeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        causes=[StatusCause("ResourceVersionTooLarge", "Too large resource version")],
        retry_after=1 if is_cached else None,
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
