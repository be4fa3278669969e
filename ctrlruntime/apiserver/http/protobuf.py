r"""Request bodies in Kubernetes' protobuf, for built-in kinds.

kubectl sends many creates as `application/vnd.kubernetes.protobuf` and has no other way when that is refused. The
envelope is the four bytes `k8s\0` and a `runtime.Unknown` that names the kind; what is inside follows the recorded
table of messages. The result is the tree that the same object would be as JSON. Answers are never sent in protobuf:
every client that asks for it also takes JSON.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ctrlruntime.schema.messages import (
    EITHER_OR,
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    RAW_JSON,
    TIME,
    Field,
    Message,
    message,
    message_of,
)
from ctrlruntime.schema.trees import Document

MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST: Final = 100


class PrefixError(ValueError):
    """A body that is not protobuf at all: it lacks the four bytes that such bodies begin with."""


def decode(body: bytes) -> Document:
    """Return the JSON tree of a protobuf body, apiVersion and kind included.

    Raises:
        ValueError: the body is not such an envelope, is truncated or damaged, or its kind is not built in.

    """
    if not body.startswith(MAGIC):
        raise PrefixError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        return _envelope(memoryview(body)[len(MAGIC) :], 0)
    except (UnicodeDecodeError, struct.error, OverflowError, IndexError) as error:
        raise ValueError(f"the protobuf body is damaged: {error}") from error


def _envelope(data: memoryview, depth: int) -> Document:
    type_meta: Document = {}
    raw = memoryview(b"")
    for number, _, value in _fields(data):
        if number == 1:
            type_meta = _message(message("k8s.io.apimachinery.pkg.runtime.TypeMeta"), _view(value), depth)
        elif number == 2:
            raw = _view(value)
        elif number == 3 and len(_view(value)):
            raise ValueError(f"content encoding {_text(value)!r} of a protobuf body is not supported")
    api_version, kind = str(type_meta.get("apiVersion", "")), str(type_meta.get("kind", ""))
    kind_type = message_of(api_version, kind)
    if kind_type is None:
        raise ValueError(
            f"{kind or 'an object without a kind'} of {api_version or 'no apiVersion'} has no protobuf form; send JSON"
        )
    return {"kind": kind, "apiVersion": api_version, **_message(kind_type, raw, depth + 1)}


def _message(kind: Message, data: memoryview, depth: int) -> Document:
    if depth > _DEEPEST:
        raise ValueError("the protobuf body is nested too deeply")
    tree: Document = {}
    for number, wire, value in _fields(data):
        field = kind.by_number.get(number)
        if field is None:
            continue  # newer clients may know more fields
        if field.inline:
            tree.update(_message(message(field.type), _view(value), depth + 1))
        elif field.is_map:
            key, item = _entry(field, _view(value), depth)
            tree.setdefault(field.name, {})[key] = item
        elif field.repeated:
            tree.setdefault(field.name, []).extend(_items(field, wire, value, depth))
        else:
            tree[field.name] = _value(field, value, depth)
    return {name: value for name, value in tree.items() if not _is_left_out(kind, name, value)}


def _is_left_out(kind: Message, name: str, value: Any) -> bool:
    """Go's types write zero values into protobuf and leave them out of JSON."""
    if value is None:
        return True
    field = kind.by_name.get(name)
    if field is None or not field.omitempty or field.pointer or isinstance(value, (dict, list)):
        return False
    return not field.is_message and value == field.zero


def _entry(field: Field, data: memoryview, depth: int) -> tuple[str, Any]:
    key = ""
    item: Any = _zero(field)
    for number, _, value in _fields(data):
        if number == 1:
            key = _text(value)
        elif number == 2:
            item = _value(field, value, depth)
    return key, item


def _zero(field: Field) -> Any:
    return _of_message(field.type, memoryview(b""), 0) if field.is_message else field.zero


def _items(field: Field, wire: int, value: int | memoryview, depth: int) -> Iterator[Any]:
    if wire == _BYTES and not field.is_message and field.type not in {"string", "bytes"}:
        data, at = _view(value), 0
        while at < len(data):
            item, at = _varint(data, at) if field.type != "double" else (data[at : at + 8], at + 8)
            yield _value(field, item, depth)
    else:
        yield _value(field, value, depth)


def _value(field: Field, value: int | memoryview, depth: int) -> Any:
    match field.type:
        case "string":
            return _text(value)
        case "bytes":
            return base64.b64encode(_view(value)).decode()
        case "bool":
            return bool(_number(value))
        case "int32" | "int64":
            return _number(value)
        case "double":
            number: float = struct.unpack("<d", _view(value))[0]
            return int(number) if number.is_integer() else number
        case _:
            return _of_message(field.type, _view(value), depth + 1)


def _of_message(name: str, data: memoryview, depth: int) -> Any:
    if name in RAW_JSON:
        return _raw(data, depth)
    kind = message(name)
    if name in EITHER_OR:
        return _either_or(kind, data, depth)
    match name:
        case n if n in {TIME, MICRO_TIME}:
            return _time(kind, data, micro=n == MICRO_TIME)
        case n if n == QUANTITY:
            return _scalars(kind, data).get("string") or "0"
        case n if n == INT_OR_STRING:
            parts = _scalars(kind, data)
            return parts.get("strVal", "") if parts.get("type") else parts.get("intVal", 0)
        case _ if kind.is_list:
            return [_text(value) for number, _, value in _fields(data) if number == 1]
        case _:
            return _message(kind, data, depth)


def _scalars(kind: Message, data: memoryview) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    for number, _, value in _fields(data):
        field = kind.by_number.get(number)
        if field is not None:
            parts[field.name] = _value(field, value, 0)
    return parts


def _raw(data: memoryview, depth: int) -> Any:
    text = b"".join(bytes(_view(value)) for number, _, value in _fields(data) if number == 1)
    if not text:
        return None
    if text.startswith(MAGIC):
        return _envelope(memoryview(text)[len(MAGIC) :], depth + 1)
    return json.loads(text)


def _either_or(kind: Message, data: memoryview, depth: int) -> Any:
    schema, other = None, None
    items: list[Any] = []
    for number, _, value in _fields(data):
        field = kind.by_number.get(number)
        if field is None:
            continue
        decoded = _value(field, value, depth)
        if field.name == "schema":
            schema = decoded
        elif field.repeated:
            items.append(decoded)
        else:
            other = decoded
    if schema is not None:
        return schema
    return bool(other) if kind.name.endswith("OrBool") else items


def _time(kind: Message, data: memoryview, *, micro: bool) -> str | None:
    """An empty message is Go's zero time, which JSON writes as null."""
    if not len(data):
        return None
    parts = _scalars(kind, data)
    moment = _EPOCH + timedelta(seconds=parts.get("seconds", 0), microseconds=parts.get("nanos", 0) // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Cut one level of a message into (number, wire type, value)."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        match wire:
            case 0:
                value, at = _varint(data, at)
                yield number, wire, value
                continue
            case 1 | 5:
                size = 8 if wire == _FIXED64 else 4
            case 2:
                size, at = _varint(data, at)
            case _:
                raise ValueError(f"the protobuf body is damaged: wire type {wire} at byte {at}")
        if number == 0 or at + size > end:
            raise ValueError(f"the protobuf body is damaged or cut off at byte {at}")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise ValueError("the protobuf body is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("the protobuf body is damaged: a number has too many bytes")


def _number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise ValueError("the protobuf body is damaged: a number was expected")  # noqa: TRY004 - the sender's error
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _view(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        text = "the protobuf body is damaged: a number where bytes were expected"
        raise ValueError(text)  # noqa: TRY004 - the sender's error
    return value


def _text(value: int | memoryview) -> str:
    return str(_view(value), "utf-8")
