"""Field errors of a validator, with the messages of Kubernetes.

`raise invalid(Game, name, [FieldError.required("spec.selector", "…")])` becomes the Status that `kubectl` prints field by field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, gvk_for
from ctrlruntime.errors import Invalid, StatusCause

__all__ = ["FieldError", "invalid"]


@dataclass(frozen=True, slots=True)
class FieldError:
    """The error of one field.

    `reason` is a cause type of the API, `field` is the path in JSON, and `message` is the whole text.

    Create one with a function for its type: `FieldError.required("spec.selector", "an empty selector matches nothing")`.
    """

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        """The field is required."""
        return cls("FieldValueRequired", field, _with_detail("Required value", detail))

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        """The value is malformed or out of range."""
        return cls("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {detail}")

    @classmethod
    def not_supported(cls, field: str, value: Any, supported: Iterable[Any]) -> FieldError:
        """The value is not one of a fixed set."""
        listed = ", ".join(_shown(one) for one in supported)
        return cls("FieldValueNotSupported", field, f"Unsupported value: {_shown(value)}: supported values: {listed}")

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        """The field must not be set, or not be changed."""
        return cls("FieldValueForbidden", field, _with_detail("Forbidden", detail))

    @classmethod
    def duplicate(cls, field: str, value: Any) -> FieldError:
        """The value must be unique."""
        return cls("FieldValueDuplicate", field, f"Duplicate value: {_shown(value)}")

    @classmethod
    def not_found(cls, field: str, value: Any) -> FieldError:
        """The value names an object that does not exist."""
        return cls("FieldValueNotFound", field, f"Not found: {_shown(value)}")

    @classmethod
    def too_long(cls, field: str, limit: int) -> FieldError:
        """The text is longer than `limit` bytes."""
        return cls("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")

    @classmethod
    def too_many(cls, field: str, actual: int, limit: int) -> FieldError:
        """The list has more than `limit` items."""
        return cls("FieldValueTooMany", field, f"Too many: {actual}: must have at most {limit} items")

    @classmethod
    def internal(cls, field: str, detail: str) -> FieldError:
        """The field could not be checked, because of an internal error."""
        return cls("InternalError", field, _with_detail("Internal error", detail))


def invalid(kind: type[Object] | Object, name: str, errors: Sequence[FieldError]) -> Invalid:
    """Return the error to raise for an object with these field errors.

    Raises: ValueError without errors.
    """
    if not errors:
        raise ValueError(f"no field errors: {name} is valid, so there is nothing to raise")
    found = gvk_for(kind)
    texts = list(dict.fromkeys(map(str, errors)))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{found.kind}.{found.group}" if found.group else found.kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {listed}',
        causes=[StatusCause(error.reason, error.message, error.field) for error in errors],
        details={"name": name, "group": found.group, "kind": found.kind},
    )


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def _shown(value: Any) -> str:
    if isinstance(value, Model):
        value = value.to_dict()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
