"""Built-in kinds as kube-apiserver's Go types read and write them.

A tree from outside becomes the tree that decoding it into the Go type and encoding it again would give: unknown fields go (and are
reported), wrong JSON types are refused with encoding/json's words, nulls and empty `omitempty` fields go, structs and fields without
`omitempty` are set to their zero, keys have the order of the Go struct. The result shares nothing with the input.
"""

from __future__ import annotations

import gzip
import json
import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from ctrlruntime.data import open_data
from ctrlruntime.schema.messages import (
    DURATION,
    EITHER_OR,
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    RAW_JSON,
    TIME,
    Field,
    Message,
    message,
)
from ctrlruntime.schema.trees import Document, settled

Reader: TypeAlias = Callable[[Any, str, list[str]], Any]
"""(value, its path, where unknown fields are reported) → the value as Go would write it; None if the field is left out."""

_DATE = r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_RFC3339 = re.compile(rf"{_DATE}[Tt]{_CLOCK}(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z")
_MICRO = re.compile(rf"{_DATE}T{_CLOCK}\.\d{{6}}(Z|[+-]\d\d:\d\d)\Z")
_OBJECT_META = "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_WITH_HEADS = frozenset(
    {"k8s.io.api.core.v1.PersistentVolumeClaim", "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions"}
)
"""Types inside others (StatefulSet, Eviction) with a kind and a version of their own."""
_DEVICES = "k8s.io.api.resource.v1"
_KEPT_EMPTY: Final = frozenset({
    ("k8s.io.api.autoscaling.v2.HPAScalingRules", "policies"),
    *((f"{_DEVICES}.{kind}", name) for kind, names in {
        "Device": "bindingConditions bindingFailureConditions",
        "DeviceClaim": "config constraints",
        "DeviceClaimConfiguration": "requests",
        "DeviceConstraint": "requests",
        "DeviceRequest": "firstAvailable",
        "DeviceRequestAllocationResult": "bindingConditions bindingFailureConditions",
        "DeviceSubRequest": "selectors tolerations",
        "ExactDeviceRequest": "selectors tolerations",
        "ResourceSliceSpec": "devices sharedCounters",
    }.items() for name in names.split()),
})  # fmt: skip
"""Lists with omitempty whose defaults and rules tell an empty one from none, or whose messages show it."""
_SCHEMA = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_RANGES = {"int32": 2**31, "int64": 2**63}
_SIZED = frozenset({*_RANGES, "uint8", "float64"})
"""Types of numbers: what does not fit into one is named in the message."""
_ABSENT: Any = object()


class Misfit(ValueError):  # noqa: N818 - it says what it is
    """A value does not fit the Go type; the text is what encoding/json says."""

    def __init__(self, text: str, applied: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.applied = applied
        """What is said of an applied configuration, whose JSON types the merge has checked."""
        self.is_located = False
        self.ends = False
        """A decoder of its own says so, which ends the decoding; what encoding/json finds itself counts only if nothing ends it."""
        self.first = self
        """The first that was found: what converts an object stops at it."""

    def __str__(self) -> str:
        return self.text

    def after(self, first: Misfit | None) -> Misfit:
        """Return this failure, which came after another."""
        if first is not None:
            self.first = first.first
        return self


class Typed:
    """One message type, compiled."""

    __slots__ = ("_fields", "_name", "_ready", "_short")

    def __init__(self, name: str) -> None:
        self._name = name
        self._short = name.rpartition(".")[2]
        self._ready = False
        self._fields: list[tuple[str, Reader, bool, Any]] = []

    def read(self, value: Any, path: str, unknown: list[str]) -> Document:
        if type(value) is not dict:
            if value is None:  # a null element of a list or map is the zero value
                return self.zero()
            raise Misfit(_cannot(value, path, f"v1.{self._short}"))
        if not self._ready:
            self._compile()
        try:
            return self._read(value, path, unknown)
        except Misfit as misfit:
            for each in {misfit, misfit.first}:
                if not each.is_located:  # encoding/json names the innermost struct before the path
                    each.text = each.text.replace(" struct field ", f" struct field {self._short}.")
                    each.is_located = True
            raise

    def _read(self, value: Document, path: str, unknown: list[str]) -> Document:
        result: Document = {}
        prefix = f"{path}." if path else ""
        left = len(value)
        for name, reader, drops_empty, absent in self._fields:
            item = value.get(name, _ABSENT)
            if item is _ABSENT:
                if absent is not _ABSENT:
                    result[name] = absent() if callable(absent) else absent
                continue
            left -= 1
            if item is None:
                if absent is not _ABSENT:
                    result[name] = absent() if callable(absent) else absent
                continue
            try:
                item = reader(item, prefix + name, unknown)
            except Misfit as misfit:
                raise self._decisive(value, prefix, name, misfit) from None
            if item or (not drops_empty and item is not None):
                result[name] = item
        if left:
            known = {field[0] for field in self._fields}
            unknown.extend(prefix + key for key in value if key not in known)
        return result

    def _decisive(self, value: Document, prefix: str, failed: str, known: Misfit) -> Misfit:
        """Return the failure that encoding/json names: the first in the text, or one further on that ends the decoding.

        `known` is that of the field `failed`.
        """
        readers = {name: reader for name, reader, *_ in self._fields}
        first: Misfit | None = None
        for name, item in value.items():
            if item is None or name not in readers:
                continue
            misfit = known
            if name != failed:
                try:
                    readers[name](item, prefix + name, [])
                except Misfit as found:
                    misfit = found
                else:
                    continue
            misfit.ends = misfit.ends or readers[name] in _DECODERS
            if holder := message(self._name).holders.get(name):
                place = _without_indexes(prefix)
                misfit.text = misfit.text.replace(f"{place}{name}", f"{place}{holder}.{name}", 1)
            if misfit.ends:
                return misfit.after(first)
            first = first or misfit
        return first or known

    def zero(self) -> Document:
        """Return the empty struct as Go writes it."""
        return self.read({}, "", [])

    def _compile(self) -> None:
        shape = message(self._name)
        if self._name in _WITH_HEADS:
            self._fields.extend((key, _string, True, _ABSENT) for key in ("kind", "apiVersion"))
        go_names = _go_names().get(self._name, {})
        for field in shape.by_name.values():
            name, reader, drops_empty, absent = _compile_field(field, go_names.get(field.name, ""))
            self._fields.append((name, reader, drops_empty and (self._name, name) not in _KEPT_EMPTY, absent))
        self._ready = True


@cache
def typed(name: str) -> Typed:
    """Return the compiled type of a message by its full protobuf name."""
    return Typed(name)


def object_meta() -> Typed:
    return typed(_OBJECT_META)


@cache
def _go_names() -> Mapping[str, Mapping[str, str]]:
    """Return the names of Go types of fields, by message and field, where they are not those of scalars and messages."""
    names: Mapping[str, Mapping[str, str]]
    names = json.loads(gzip.decompress(open_data("kubernetes-1.36/go-names.json.gz")))
    return names


def _compile_field(field: Field, go_name: str = "") -> tuple[str, Reader, bool, Any]:
    named = go_name.partition("]")[2] if field.is_map else go_name
    element = (
        _named_string(named) if named and field.type == "string" else _element_reader(field.type, field.is_message)
    )
    if field.repeated:
        reader = _list_of(element, go_name or _go_name(field))
        return field.name, reader, field.omitempty and not field.pointer, _ABSENT if field.omitempty else None
    if field.is_map:
        return (
            field.name,
            _map_of(
                element,
                go_name or f"map[string]{_go_name(field)}",
                names_keys=field.is_message and field.type not in EITHER_OR,
            ),
            field.omitempty,
            _ABSENT if field.omitempty else None,
        )
    if field.pointer:
        return field.name, element, False, _ABSENT if field.omitempty else None
    if field.is_message:
        return field.name, element, *_struct_rules(field)
    zero = None if field.type == "bytes" else field.zero  # encoding/json writes a nil slice as null
    return field.name, element, field.omitempty, _ABSENT if field.omitempty else zero


def _struct_rules(field: Field) -> tuple[bool, Any]:
    """Return (drop when empty, what stands for an absent one): Go's omitempty does not leave out a struct."""
    name = field.type
    if name in {TIME, MICRO_TIME}:
        return False, _ABSENT if field.name == "creationTimestamp" else None
    if name == QUANTITY:
        return False, "0"
    if name == INT_OR_STRING:
        return False, _ABSENT if field.omitempty else 0
    if name == DURATION:
        return False, "0s"
    if name in RAW_JSON:
        return False, None
    if name in EITHER_OR:
        return False, _ABSENT if field.omitempty else None
    if _is_bare_list(message(name)):
        return field.omitempty, _ABSENT if field.omitempty else None
    return False, typed(name).zero


def _is_bare_list(shape: Message) -> bool:
    fields = list(shape.by_number.values())
    return len(fields) == 1 and fields[0].name == "items" and not fields[0].is_message


def _element_reader(name: str, is_message: bool) -> Reader:
    if not is_message:
        return _SCALARS[name]
    if name in _SPECIAL:
        return _SPECIAL[name]
    if name in RAW_JSON:
        return _anything
    if name in EITHER_OR:
        return _EITHER[name.rpartition("Or")[2]]
    if _is_bare_list(message(name)):
        return _list_of(_string, "string")
    return typed(name).read


def _go_name(field: Field) -> str:
    if field.type == QUANTITY:
        return "resource.Quantity"
    if field.is_message:
        return f"v1.{field.type.rpartition('.')[2]}"
    return "[]uint8" if field.type == "bytes" else field.type


def _list_of(element: Reader, go_name: str) -> Reader:
    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not list:
            raise Misfit(_cannot(value, path, f"[]{go_name}"))
        try:
            return [element(item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
        except Misfit:
            raise _decisive_item(element, [(f"{path}[{index}]", item) for index, item in enumerate(value)]) from None

    return read


def _decisive_item(element: Reader, items: list[tuple[str, Any]]) -> Misfit:
    """Return the failure that encoding/json names of those in a list or map (as `Typed._decisive`)."""
    first: Misfit | None = None
    for path, item in items:
        try:
            element(item, path, [])
        except Misfit as misfit:
            misfit.ends = misfit.ends or element in _DECODERS
            if misfit.ends:
                return misfit.after(first)
            first = first or misfit
    assert first is not None
    return first


def _map_of(element: Reader, go_name: str, *, names_keys: bool) -> Reader:
    def read(value: Any, path: str, unknown: list[str]) -> Any:
        if type(value) is not dict:
            raise Misfit(_cannot(value, path, go_name))
        try:
            # encoding/json names the field, not the key: only what is unknown has the key in its path.
            return {key: element(value[key], f"{path}.{key}" if names_keys else path, unknown) for key in sorted(value)}
        except Misfit:
            raise _decisive_item(element, [(path, item) for item in value.values()]) from None

    return read


def _cannot(value: Any, path: str, go_type: str) -> str:
    words = {bool: "bool", dict: "object", list: "array", str: "string"}
    got = words.get(type(value)) or (f"number {value}" if go_type in _SIZED else "number")
    return f"json: cannot unmarshal {got} into Go struct field {_without_indexes(path) or '.'} of type {go_type}"


def _without_indexes(path: str) -> str:
    return re.sub(r"\[\d+\]", "", path)


def _string(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        if value is None:  # a null element of a list or map is the zero value
            return ""
        raise Misfit(_cannot(value, path, "string"))
    return value


def _named_string(go_name: str) -> Reader:
    """Return how a string is read whose Go type has a name of its own."""

    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is not str:
            if value is None:
                return ""
            raise Misfit(_cannot(value, path, go_name))
        return value

    return read


def _bool(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not bool:
        if value is None:
            return False
        raise Misfit(_cannot(value, path, "bool"))
    return value


def _integer(name: str) -> Reader:
    limit = _RANGES[name]

    def read(value: Any, path: str, _unknown: list[str]) -> Any:
        if type(value) is not int or not -limit <= value < limit:
            if value is None:
                return 0
            raise Misfit(_cannot(value, path, name))
        return value

    return read


def _double(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) not in {int, float}:
        raise Misfit(_cannot(value, path, "float64"))
    return settled(float(value))


def _bytes(value: Any, path: str, _unknown: list[str]) -> Any:
    import base64
    import binascii

    if type(value) is list:  # of the bytes themselves
        for item in value:
            if item is not None and (type(item) is not int or not 0 <= item < 256):
                raise Misfit(_cannot(item, path, "uint8"))
        return base64.b64encode(bytes(item or 0 for item in value)).decode()
    if type(value) is not str:
        if value is None:
            return ""
        raise Misfit(_cannot(value, path, "[]uint8"))
    try:
        raw = base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except binascii.Error:
        text = f"illegal base64 data at input byte {_corrupt_at(value.encode())}"
        raise Misfit(text, f"error decoding from json: {text}") from None
    return base64.b64encode(raw).decode()


_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/\r\n]")


def _corrupt_at(text: bytes) -> int:
    """Return the byte at which Go's encoding/base64 gives up: a wrong one, padding that is missing, or what follows it."""
    found = _NOT_BASE64.search(text)
    end = found.start() if found else len(text)
    over = len(re.sub(rb"[\r\n]", b"", text[:end])) % 4
    if found is None:
        return end - over
    if found[0] != b"=" or over < 2:
        return end
    after = len(text) - len(text[end + 1 :].lstrip(b"\r\n"))
    if over == 3:
        return after
    if after == len(text):
        return after
    if text[after] != ord("="):
        return after - 1
    return len(text) - len(text[after + 1 :].lstrip(b"\r\n"))


def _anything(value: Any, _path: str, _unknown: list[str]) -> Any:
    return settled(value)


def _schema_or(other: Reader) -> Reader:
    """Return how a type is read that is a schema or something else (apiextensions' v1/marshal.go)."""

    def read(value: Any, path: str, unknown: list[str]) -> Any:
        return typed(_SCHEMA).read(value, path, unknown) if type(value) is dict else other(value, path, unknown)

    return read


def _schemas(value: Any, path: str, unknown: list[str]) -> Any:
    """What is no list, and a list of nothing, is as if it were not there."""
    if type(value) is not list or not value:
        return None
    return [typed(_SCHEMA).read(item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]


def _strings(value: Any, path: str, unknown: list[str]) -> Any:
    return [_string(item, path, unknown) for item in value] if type(value) is list else []


def _bool_only(value: Any, _path: str, _unknown: list[str]) -> Any:
    if type(value) is not bool:
        raise Misfit("boolean or JSON schema expected")
    return value


def _time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise Misfit(_cannot(value, path, "string"))
    if not _RFC3339.match(value) or not _is_in_month(value):
        raise _not_a_time(value, "2006-01-02T15:04:05Z07:00")
    return _in_utc(value, 0)


def _micro_time(value: Any, path: str, _unknown: list[str]) -> Any:
    if type(value) is not str:
        raise Misfit(_cannot(value, path, "string"))
    if not _MICRO.match(value) or not _is_in_month(value):
        raise _not_a_time(value, "2006-01-02T15:04:05.000000Z07:00")
    return _in_utc(value, 6)


_PARTS = (("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"), ("15", r"\d\d"), (":", ":"),
          ("04", r"\d\d"), (":", ":"), ("05", r"\d\d"))  # fmt: skip


_LARGEST: Final = {"01": (12, "month"), "15": (23, "hour"), "04": (59, "minute"), "05": (59, "second")}


def _is_in_month(value: str) -> bool:
    """Tell whether the month of a date has its day."""
    return value[8:10] <= "28" or int(value[8:10]) <= monthrange(int(value[:4]), int(value[5:7]))[1]


def _not_a_time(value: str, layout: str) -> Misfit:
    text = _time_failure(value, layout)
    return Misfit(text, text)


def _time_failure(value: str, layout: str) -> str:
    """Return the message for a text that is not a time: where it leaves the layout."""
    fraction = ((".000000", r"\.\d{6}"),) if "." in layout else (("", r"(?:\.\d+)?"),)
    rest = value
    for part, pattern in (*_PARTS, *fraction, ("Z07:00", r"Z|[-+]\d\d:\d\d")):
        found = re.match(pattern, rest)
        if found is None:
            given, left = _quoted_in_time(value), _quoted_in_time(rest)
            return f'parsing time {given} as "{layout}": cannot parse {left} as "{part}"'
        rest = rest[found.end() :]
        largest, name = _LARGEST.get(part, (0, ""))
        if name and (int(found[0]) > largest or (name == "month" and found[0] == "00")):
            return f"parsing time {_quoted_in_time(value)}: {name} out of range"
    given = _quoted_in_time(value)
    return (
        f"parsing time {given}: extra text: {_quoted_in_time(rest)}"
        if rest
        else f"parsing time {given}: day out of range"
    )


def _quoted_in_time(text: str) -> str:
    """Return a text as Go's package time quotes it: byte by byte."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').encode(errors="replace")
    return '"' + "".join(chr(byte) if 32 <= byte < 128 else f"\\x{byte:02x}" for byte in escaped) + '"'


def _in_utc(value: str, digits: int) -> str:
    if value[-1] == "Z" and len(value) == (27 if digits else 20):
        return value
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if digits else "%Y-%m-%dT%H:%M:%SZ")


def _quantity(value: Any, _path: str, _unknown: list[str]) -> Any:
    from ctrlruntime.quantities import canonical

    if value is None:  # the zero value, as of a text
        return "0"
    try:
        return canonical(value)
    except ValueError as error:
        raise Misfit(str(error), str(error)) from None


def _int_or_string(value: Any, path: str, unknown: list[str]) -> Any:
    if type(value) is str:
        return value
    return _SCALARS["int32"](value, path, unknown)


_SCALARS: dict[str, Reader] = {
    "string": _string,
    "bool": _bool,
    "int32": _integer("int32"),
    "int64": _integer("int64"),
    "double": _double,
    "bytes": _bytes,
}
_EITHER: dict[str, Reader] = {
    "Array": _schema_or(_schemas),
    "StringArray": _schema_or(_strings),
    "Bool": _schema_or(_bool_only),
}
_SPECIAL: dict[str, Reader] = {
    TIME: _time,
    MICRO_TIME: _micro_time,
    DURATION: _string,
    QUANTITY: _quantity,
    INT_OR_STRING: _int_or_string,
}
_DECODERS: Final = frozenset({*_SPECIAL.values(), *_EITHER.values()} - {_string})
"""Readers of Go types that decode themselves (UnmarshalJSON)."""
