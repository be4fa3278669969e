"""Defaulters and validators of a kind, as admission handlers.

Each method receives the object, and the request if it has a last parameter for it. Methods may be async or plain. `defaulting` and
`validating` return their handlers.

The API server checks the limits of fields with the schema, after the defaulters. So a defaulter also receives objects that break them. It
is not called for an object without a required field. An update may keep a value that was stored before its limit existed: a validator
receives such objects at update and delete.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

import msgspec

from ctrlruntime.api.fields import wire_names
from ctrlruntime.api.model import Model, model_like
from ctrlruntime.api.object import Object
from ctrlruntime.errors import ConfigError
from ctrlruntime.patch import create_json_patch, equal
from ctrlruntime.webhook.admission import HandlerFunction
from ctrlruntime.webhook.difference import laid_over
from ctrlruntime.webhook.limits import IncompleteError
from ctrlruntime.webhook.request import AdmissionRequest, Operation, RequestDecodeError
from ctrlruntime.webhook.response import AdmissionResponse, Warnings, allowed, changed, errored

__all__ = ["Defaulter", "Validator", "defaulting", "operations_of", "validating"]

T = TypeVar("T", bound=Object)
C_contra = TypeVar("C_contra", bound=Object, contravariant=True)

Outcome: TypeAlias = Warnings | None
_Default: TypeAlias = Callable[[T], Awaitable[None] | None] | Callable[[T, AdmissionRequest], Awaitable[None] | None]
_One: TypeAlias = (
    Callable[[T], Awaitable[Outcome] | Outcome] | Callable[[T, AdmissionRequest], Awaitable[Outcome] | Outcome]
)
_Two: TypeAlias = (
    Callable[[T, T], Awaitable[Outcome] | Outcome] | Callable[[T, T, AdmissionRequest], Awaitable[Outcome] | Outcome]
)


class Defaulter(Protocol[C_contra]):
    """Sets defaults: changes the object in place.

    For example `async def default(self, game: Game) -> None`.

    It is called at create and update, maybe twice for one request; the second call must not change anything. Values may break the limits of
    their fields, which the API server checks later.
    """

    @property
    def default(self) -> _Default[C_contra]: ...


class CreateValidator(Protocol[C_contra]):
    @property
    def validate_create(self) -> _One[C_contra]: ...


class UpdateValidator(Protocol[C_contra]):
    @property
    def validate_update(self) -> _Two[C_contra]: ...


class DeleteValidator(Protocol[C_contra]):
    @property
    def validate_delete(self) -> _One[C_contra]: ...


Validator: TypeAlias = CreateValidator[T] | UpdateValidator[T] | DeleteValidator[T]
"""Validates objects with `validate_create(game)`, `validate_update(old, new)` and `validate_delete(game)`, as far as defined.

Each returns warnings or None, or raises `Denied` or `invalid(…)`.
"""

_OBJECTS = {"validate_create": 1, "validate_update": 2, "validate_delete": 1, "default": 1}
_METHODS: dict[str, Operation] = {"validate_create": "CREATE", "validate_update": "UPDATE", "validate_delete": "DELETE"}


def operations_of(validator: Validator[Any]) -> tuple[Operation, ...]:
    """Return the operations for which a validator has methods."""
    return tuple(operation for method, operation in _METHODS.items() if callable(getattr(validator, method, None)))


def defaulting(kind: type[T], defaulter: Defaulter[T], *, remove_unknown_fields: bool = False) -> HandlerFunction:
    """Return the handler of a defaulter.

    Args:
        kind: the class of the objects.
        defaulter: an object with a method `default`.
        remove_unknown_fields: remove the fields that the classes of the object do not define, before the defaulter is called. Content of a
            `dict` and of an `Unstructured` stays.

    Raises: ConfigError if the method of the defaulter cannot be called.

    """
    default = _Method[None](defaulter, "default")

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        if request.operation not in {"CREATE", "UPDATE"}:
            return allowed()
        try:
            obj = request.decode(kind, validate=False)
        except RequestDecodeError as error:
            if isinstance(error.__cause__, IncompleteError):
                return allowed()  # the API server refuses it next, and names every field
            raise
        sent = raw = msgspec.json.decode(request.object)
        if remove_unknown_fields:
            raw = _known(sent, obj)
            # The defaulter gets the object without these fields, so that none of them returns with a list that it changes.
            obj = replace(request, object=msgspec.json.encode(raw)).decode(kind, validate=False)
        before = obj.to_dict()
        await default(request, obj)
        return changed(create_json_patch(sent, laid_over(raw, before, model_like(obj, before))))

    handle.__qualname__ = f"defaulting {kind.__name__}"
    return handle


def validating(kind: type[T], validator: Validator[T], *, validate_deleting: bool = False) -> HandlerFunction:
    """Return the handler of a validator.

    Args:
        kind: the class of the objects.
        validator: an object with `validate_create`, `validate_update` or `validate_delete`.
        validate_deleting: also validate an update that changes only metadata of an object that is being deleted. By default such an update is
            allowed; if the validator rejected it, its finalizers could not be removed, and the object would never be deleted.

    Raises: ConfigError if the validator has no method, or one that cannot be called.

    """
    methods = {
        operation: _Method[Outcome](validator, name) for name, operation in _METHODS.items() if hasattr(validator, name)
    }
    if not methods:
        raise ConfigError(
            f"{_shown(validator)} validates nothing: give it async methods validate_create(obj), validate_update(old, new) or "
            "validate_delete(obj)"
        )

    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        method = methods.get(request.operation)
        match request.operation:
            case "CREATE" | "UPDATE" | "DELETE" | "CONNECT" if method is None:
                return allowed()
            case "UPDATE" if not validate_deleting and _lets_go(request):
                return allowed()
            case "CREATE":
                objects = [request.decode(kind)]
            case "UPDATE":
                objects = [request.decode_old(kind, validate=False), request.decode(kind, validate=False)]
            case "DELETE":
                objects = [request.decode_old(kind, validate=False)]
            case _:
                return errored(400, f"unknown operation {request.operation!r}")
        assert method is not None, "what has no method was let through above"
        warnings = await method(request, *objects)
        if isinstance(warnings, str):
            raise TypeError(f"{method} returned a string; return a list of warnings: [{warnings!r}]")
        return allowed().with_warnings(*(warnings or ()))

    handle.__qualname__ = f"validating {kind.__name__}"
    return handle


def _lets_go(request: AdmissionRequest) -> bool:
    """Return whether an update is one of an object that is being deleted, and changes nothing but metadata."""
    if b'"deletionTimestamp"' not in request.old_object:  # most are not, and need not be decoded for that
        return False
    try:
        old, new = msgspec.json.decode(request.old_object), msgspec.json.decode(request.object)
    except msgspec.DecodeError:
        return False  # whoever decodes it next says what is wrong
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    metadata = old.pop("metadata", None)
    new.pop("metadata", None)
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp")) and equal(old, new)


def _known(raw: Any, value: Any) -> Any:
    """Return `raw` without the fields that the classes of `value`, which was decoded from it, do not declare."""
    if isinstance(raw, list) and isinstance(value, list):
        return [_known(*each) for each in zip(raw, value, strict=True)]
    if not isinstance(raw, dict):
        return raw
    unknown: Collection[str] = ()
    parts: Mapping[str, Any] = {}
    if isinstance(value, Model):
        unknown = () if value.__open__ else value.model_extra or ()
        parts = {wire: getattr(value, name) for name, wire in wire_names(type(value)).items()}
    elif isinstance(value, dict):
        parts = value
    return {name: _known(each, parts.get(name)) for name, each in raw.items() if name not in unknown}


def _shown(owner: object) -> str:
    return repr(owner) if isinstance(owner, type) or inspect.isroutine(owner) else f"a {type(owner).__qualname__}"


R = TypeVar("R")


class _Method(Generic[R]):
    """One method of a user's object, called with the request if it has a parameter for it."""

    def __init__(self, owner: object, name: str) -> None:
        method: Any = getattr(owner, name, None)
        if not callable(method) or isinstance(owner, type):
            raise ConfigError(
                f"{_shown(owner)} has no method {name}; write `async def {name}(self, …)` and pass an instance of the class"
            )
        self._call = method
        self._name = f"{type(owner).__qualname__}.{name}"
        self._takes_request = self._count(method) > _OBJECTS[name]
        if self._count(method) not in {_OBJECTS[name], _OBJECTS[name] + 1}:
            takes = "(old, new)" if _OBJECTS[name] == 2 else "(obj)"
            raise ConfigError(
                f"{self._name} takes {self._count(method)} parameters; it is called with {takes}, and the request as a last one"
            )

    def __str__(self) -> str:
        return self._name

    async def __call__(self, request: AdmissionRequest, *objects: Object) -> R:
        outcome = self._call(*objects, request) if self._takes_request else self._call(*objects)
        return cast("R", await outcome if inspect.isawaitable(outcome) else outcome)

    @staticmethod
    def _count(method: Callable[..., Any]) -> int:
        parameters = inspect.signature(method).parameters.values()
        return sum(one.kind in {one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD} for one in parameters)
