"""What the results of mutating expressions become in an object (apiserver's pkg/cel/mutation, cel-go's ConvertToNative).

It is imported by the first mutation, as it needs CEL.

The two kinds of mutations convert in two ways: a configuration takes Go's value of each CEL value, a JSON patch its JSON value.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from ctrlruntime.apiserver.go_values import Foreign, go_duration
from ctrlruntime.apiserver.registry.expressions import Variables
from ctrlruntime.cel.failures import EvaluationError
from ctrlruntime.cel.library.authorization import Authorizer, Decision
from ctrlruntime.cel.library.kubernetes import CIDR, IP
from ctrlruntime.cel.values import SECOND, Duration, Message, Optional, Timestamp, TypeValue, UInt, kind_of, show
from ctrlruntime.schema.trees import Document

_LARGEST_EXACT: Final = 2**53 - 1
_GO_KEYS: Final = {bool: "Bool", int: "Int", UInt: "Uint"}
_LARGEST_WHOLE: Final = 1e21


class ConversionError(Exception):
    """A value of CEL that has no place in an object; the text is upstream's."""


def operation(value: Mapping[str, Any]) -> Document:
    """Return an operation of a JSON patch from a `JSONPatch` literal. Raises: ConversionError."""
    made: Document = {"op": "", "path": "", **value}
    if made["op"] in {"add", "replace", "test"}:
        given = made.get("value")
        if isinstance(given, Message):
            _check_names(given, given.cel_name)
        try:
            made["value"] = json_value(given)
        except ConversionError as error:
            text = f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            raise ConversionError(text) from None
    return made


def configuration(value: Any) -> Document:
    """Return the apply configuration from an `Object` literal; it may have values that no field takes. Raises: ConversionError."""
    _check_names(value, "Object")
    found = configuration_value(value)
    if not isinstance(found, dict):
        raise ConversionError("invalid return type: *dynamic.ObjectVal")
    return cast("Document", found)


def _check_names(value: Any, path: str) -> None:
    """Each literal is named after its place in the object. Raises: ConversionError."""
    match value:
        case list():
            for item in value:
                _check_names(item, path)
        case Message():
            name = value.cel_name
            if name != path:
                text = f'unexpected type name "{name}", expected "{path}", which matches field name path from root Object type'
                raise ConversionError(f"type mismatch: {text}")
            for key, inner in value.items():
                _check_names(inner, f"{path}.{key}")
        case dict():
            for inner in value.values():
                _check_names(inner, path)
        case _:
            pass


def configuration_value(value: Any) -> Any:
    """Return what a field of an `Object` literal is set to; no field takes a `Foreign`. Raises: ConversionError, in a map only."""
    match value:
        case Variables() | Authorizer():
            return Foreign("no such overload", "", "*types.Err")
        case Optional():
            return configuration_value(value.value()) if value.present else None
        case Message():
            return _message(value)
        case dict():
            return {_name(key): configuration_value(inner) for key, inner in value.items()}
        case list():
            return [configuration_value(item) for item in value]
        case TypeValue():
            return value.name
        case float() if not math.isfinite(value):
            return Foreign(show(value), show(value), "float64")
        case bool() | str() | float():
            return value
        case UInt():
            return Foreign(str(int(value)), hex(value), "uint64")
        case int():
            return value
        case None:
            return Foreign("NULL_VALUE", "0", "structpb.NullValue")
        case bytes():
            inside = ", ".join(f"0x{byte:x}" for byte in value)
            return Foreign(f"[{' '.join(map(str, value))}]", f"[]byte{{{inside}}}", "[]uint8")
        case Duration():
            return Foreign(go_duration(value.nanoseconds / SECOND), str(value.nanoseconds), "time.Duration")
        case Timestamp():
            text = f"{value.moment():%Y-%m-%d %H:%M:%S} +0000 UTC"
            return Foreign(text, text, "time.Time")
        case _:
            text = str(value) if isinstance(value, IP | CIDR) else kind_of(value)
            return Foreign(text, text, kind_of(value))


def _message(value: Message) -> Any:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        try:
            found[key] = configuration_value(inner)
        except ConversionError as error:
            text = f'fail to convert field "{key}": {error}'
            return Foreign(text, text, "*types.Err")
    return found


def _name(key: Any) -> str:
    if type(key) is str:
        return key
    raise ConversionError(f"map key {_quoted(key)} is of type types.{_GO_KEYS[type(key)]}, not string")


def _quoted(key: Any) -> str:
    """Return a key as `%q` prints it: a number is a character."""
    if isinstance(key, bool):
        return f"%!q(types.Bool={show(key)})"
    return repr(chr(key)) if 0 <= key <= sys.maxunicode else "'\ufffd'"


def json_value(value: Any) -> Any:
    """Return the JSON value that a JSON patch writes. Raises: ConversionError."""
    match value:
        case None | bool() | str():
            return value
        case int():
            number = int(value)
            return number if abs(number) <= _LARGEST_EXACT else str(number)
        case float():
            if not math.isfinite(value):
                raise ConversionError(f"google.protobuf.Value.number_value: invalid {show(value)} value")
            return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value
        case bytes():
            return base64.b64encode(value).decode()
        case Duration() | Timestamp():
            return show(value)
        case Variables():
            raise ConversionError('disallowed conversion from "kubernetes.variables" to ""')
        case Optional():
            try:
                return json_value(value.value())
            except EvaluationError as error:
                raise ConversionError(str(error)) from None
        case Message():
            return _json_message(value)
        case dict():
            return {_json_key(key): json_value(inner) for key, inner in value.items()}
        case list():
            return [json_value(item) for item in value]
        case TypeValue():
            raise ConversionError("type conversion not supported for 'type'")
        case _:
            name = kind_of(value)
            if not isinstance(value, Authorizer | Decision):
                name = name.rpartition(".")[2]
            raise ConversionError(f"type conversion error from '{name}' to '*structpb.Value'")


def _json_message(value: Message) -> Any:
    """An `Object` literal is converted as in a configuration first."""
    made = _message(value)
    if isinstance(made, Foreign):
        raise ConversionError(made.text)
    for field_value in made.values():
        if isinstance(field_value, Foreign) and field_value.go_type not in {"uint64", "[]uint8"}:
            raise ConversionError(f"proto: invalid type: {field_value.go_type}")
    return {key: made[key] if isinstance(made[key], str) else json_value(inner) for key, inner in value.items()}


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        raise ConversionError("type conversion error from bool to 'string'")
    raise ConversionError(f"unsupported type conversion from '{kind_of(key)}' to string")


__all__ = ["ConversionError", "configuration", "configuration_value", "json_value", "operation"]
