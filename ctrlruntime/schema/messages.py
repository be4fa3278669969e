"""The shape of every built-in message: its fields by JSON name and by protobuf number.

Takes the recorded table of the package data; hands it to `http.protobuf`, which decodes bodies with it, and to
`registry.defaults`, which writes objects as the Go types would.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from ctrlruntime.data import open_data

_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
_GROUPS: Final[Mapping[str, str]] = {
    "": "k8s.io.api.core",
    "apiextensions.k8s.io": "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
}
TIME: Final = f"{_META}.Time"
MICRO_TIME: Final = f"{_META}.MicroTime"
DURATION: Final = f"{_META}.Duration"
QUANTITY: Final = "k8s.io.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
RAW_JSON: Final = frozenset(
    {
        f"{_META}.FieldsV1",
        "k8s.io.apimachinery.pkg.runtime.RawExtension",
        "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON",
    }
)
"""Messages whose single field holds JSON text."""
_OR: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOr"
EITHER_OR: Final = frozenset({f"{_OR}Array", f"{_OR}Bool", f"{_OR}StringArray"})
"""Messages that are one of two things in JSON: a schema, or an array, a bool, a list of strings."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its JSON name and type (a scalar's name or a message's), and how Go writes it."""

    name: str
    type: str
    repeated: bool
    is_map: bool
    omitempty: bool
    pointer: bool
    inline: bool

    @property
    def is_message(self) -> bool:
        return "." in self.type

    @property
    def zero(self) -> str | int | float | bool:
        match self.type:
            case "string" | "bytes":
                return ""
            case "bool":
                return False
            case "double":
                return 0.0
            case _:
                return 0


@dataclass(frozen=True)
class Message:
    """A message type; `by_name` has the fields of inline messages in place."""

    name: str
    by_number: Mapping[int, Field]

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        fields: dict[str, Field] = {}
        for field in self.by_number.values():
            fields.update(message(field.type).by_name if field.inline else {field.name: field})
        return fields

    @cached_property
    def holders(self) -> Mapping[str, str]:
        """The embedded Go structs that hold the fields of inline messages: messages of encoding/json name them."""
        found: dict[str, str] = {}
        for field in self.by_number.values():
            inner = message(field.type) if field.inline else None
            for name in inner.by_name if inner is not None else ():
                rest = inner.holders.get(name, "") if inner is not None else ""
                found[name] = ".".join(filter(None, (field.type.rpartition(".")[2], rest)))
        return found

    @cached_property
    def is_list(self) -> bool:
        """True for the named string lists (Verbs, ExtraValue), which JSON writes as a bare array."""
        return [field.name for field in self.by_number.values()] == ["items"] and not self.name.endswith("List")


@cache
def message(name: str) -> Message:
    """Return a message type by its full protobuf name. Raises: KeyError."""
    return Message(name, {int(number): _field(*row) for number, row in _table()[name].items()})


def message_of(api_version: str, kind: str) -> Message | None:
    """Return the type of a built-in kind, of options and Status too; None for a custom one."""
    group, _, version = api_version.rpartition("/")
    package = _GROUPS.get(group) or f"k8s.io.api.{group.removesuffix('.k8s.io').split('.', 1)[0]}"
    is_builtin = "." not in group or group.endswith(".k8s.io")
    for name in (f"{package}.{version}.{kind}", f"{_META}.{kind}"):
        if is_builtin and name in _table():
            return message(name)
    return None


def _field(name: str, type_: str, flags: str) -> Field:
    return Field(name, type_, "r" in flags, "m" in flags, "o" in flags or "z" in flags, "p" in flags, "i" in flags)


@cache
def _table() -> Mapping[str, Mapping[str, tuple[str, str, str]]]:
    table: Mapping[str, Mapping[str, tuple[str, str, str]]]
    table = json.loads(gzip.decompress(open_data("kubernetes-1.36/protobuf-tables.json.gz")))
    return table
