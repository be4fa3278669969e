"""The merge strategy of the fields of a kind: which maps and lists are atomic, and the keys of list items.

Read from OpenAPI (built-in kinds, from the recorded documents; custom kinds, from the schema of their version), and handed to `merge` as a
graph of `Type`. A type is compiled when the first object of its kind is written, and shared by all that refer to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ctrlruntime.apiserver.apply.fieldsets import encode_value
from ctrlruntime.schema.trees import Document

ListMode: TypeAlias = Literal["", "atomic", "set", "map"]
Scalar: TypeAlias = Literal["", "string", "numeric", "boolean", "untyped"]
Schemas: TypeAlias = Mapping[str, Mapping[str, Any]]

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_SCALARS: Mapping[str, Scalar] = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}
_ABSENT: Any = object()


class ItemKeyError(ValueError):
    """A list item has no unique key; the text is upstream's."""


class UnfitError(Exception):
    """An object does not fit the type of another version of its kind, to which it is to be converted; the text is upstream's."""

    def during(self, step: str) -> UnfitError:
        """Return the error of the step that this one ends."""
        return UnfitError(f"{step}: {self}")


class Type:
    """What a value may be, and how it merges. One type may allow a scalar, a list and a map (a value of unknown type does)."""

    __slots__ = (
        "defaults",
        "extra",
        "fields",
        "has_fields",
        "has_items",
        "is_map",
        "item",
        "keys",
        "list_mode",
        "scalar",
    )

    def __init__(self, scalar: Scalar = "") -> None:
        self.scalar: Scalar = scalar
        self.is_map = False
        self.has_fields = False
        """A map whose fields have owners of their own."""
        self.fields: dict[str, Type] = {}
        self.extra: Type | None = None
        """The type of fields that are not declared; None: other fields are not allowed."""
        self.list_mode: ListMode = ""
        self.has_items = False
        """A list whose items have owners of their own."""
        self.item: Type | None = None
        self.keys: tuple[str, ...] = ()
        self.defaults: dict[str, Any] = {}

    def child(self, name: str) -> Type | None:
        return self.fields.get(name) or self.extra

    def step(self, item: Any) -> str:
        """Return the step of a path that leads to a list item. Raises: ItemKeyError."""
        if self.list_mode == "map":
            return self._map_step(item)
        kind = type(item)
        if kind is str:
            return f"v:{encode_value(item)}"
        if kind is dict:
            raise ItemKeyError("associative list without keys has an element that's a map type")
        if kind is list:
            raise ItemKeyError("not supported: associative list with lists as elements")
        if item is None:
            raise ItemKeyError("associative list without keys has an element that's an explicit null")
        return f"v:{encode_value(item)}"

    def _map_step(self, item: Any) -> str:
        if type(item) is not dict:
            what = "a null element" if item is None else "non-map elements"
            raise ItemKeyError(f"associative list with keys may not have {what}")
        found: dict[str, Any] = {}
        for key in self.keys:
            value = item.get(key, _ABSENT)
            if value is _ABSENT:
                value = self.defaults.get(key, _ABSENT)
                if value is _ABSENT:
                    continue
            found[key] = value
        if not found:
            listed = " ".join(f'"{key}"' for key in self.keys)
            raise ItemKeyError(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        return f"k:{encode_value(found)}"

    def set_map(self, fields: dict[str, Type], extra: Type | None, *, atomic: bool) -> None:
        """Let values be maps; a type is changed only while it is compiled."""
        self.is_map, self.has_fields = True, not atomic
        self.fields, self.extra = fields, extra

    def set_list(self, mode: ListMode, item: Type, keys: tuple[str, ...] = (), defaults: Any = None) -> None:
        """Let values be lists; a type is changed only while it is compiled."""
        self.list_mode, self.has_items = mode, mode != "atomic"
        self.item, self.keys, self.defaults = item, tuple(sorted(keys)), defaults or {}

    def with_map(self, *, atomic: bool) -> Type:
        """Return the same type whose map is atomic, or is not."""
        if not self.is_map or self.has_fields is not atomic:
            return self
        other = Type(self.scalar)
        other.set_list(self.list_mode, self.item or self, self.keys, self.defaults)
        other.has_items = self.has_items
        other.set_map(self.fields, self.extra, atomic=atomic)
        return other


class Versions(Protocol):
    """The other versions of a kind, for entries of owners that wrote in them."""

    def type_of(self, api_version: str, /) -> Type | None:
        """Return the type of a version, or None when it is not served any more."""
        ...

    def convert(self, document: Document, api_version: str, /) -> Document:
        """Return a tree in another served version; the argument stays as it is. Raises: UnfitError."""
        ...


def _untyped() -> Type:
    """A value of any form that has one owner."""
    kind = Type("untyped")
    kind.set_map({}, kind, atomic=True)
    kind.set_list("atomic", kind)
    return kind


def _deduced() -> Type:
    """A value of any form: maps have an owner for every field, lists have one."""
    kind = Type("untyped")
    kind.set_map({}, kind, atomic=False)
    kind.set_list("atomic", UNTYPED)
    return kind


UNTYPED = _untyped()
DEDUCED = _deduced()


class Compiler:
    """Compiles schemas into types; a named schema once for all references."""

    def __init__(self) -> None:
        self._named: dict[str, Type] = {_QUANTITY: Type("untyped"), _RAW: UNTYPED}

    def named(self, name: str, schemas: Schemas) -> Type:
        """Return the type of a schema by its name in the document's components."""
        found = self._named.get(name)
        if found is None:
            found = self._named[name] = Type()
            schema = schemas.get(name)
            if schema is None:
                found.set_map({}, DEDUCED, atomic=False)
            else:
                self._fill(found, schema, schemas, preserve=False)
        return found

    def custom(self, schema: Mapping[str, Any], meta: Type) -> Type:
        """Return the type of a custom kind's version (`schema` is its openAPIV3Schema)."""
        root = Type()
        self._fill(root, schema, {}, preserve=False, meta=meta)
        root.fields |= {"apiVersion": Type("string"), "kind": Type("string"), "metadata": meta}
        return root

    def _compile(self, schema: Mapping[str, Any], schemas: Schemas, *, preserve: bool, meta: Type | None) -> Type:
        name = reference(schema)
        if name:
            found = self.named(name, schemas)
            relation = schema.get("x-kubernetes-map-type")
            return found.with_map(atomic=relation == "atomic") if relation else found
        found = Type()
        self._fill(found, schema, schemas, preserve=preserve, meta=meta)
        return found

    def _fill(
        self, kind: Type, schema: Mapping[str, Any], schemas: Schemas, *, preserve: bool, meta: Type | None = None
    ) -> None:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        form = schema.get("type", "")
        if form in {"object", ""}:
            self._fill_map(kind, schema, schemas, preserve=preserve, meta=meta)
        if form in {"array", ""}:
            self._fill_list(kind, schema, schemas, preserve=preserve, meta=meta)
        if form == "string":
            kind.scalar = "string" if schema.get("format", "") in {"", "byte"} else "untyped"
        elif form not in {"object", "array"}:
            kind.scalar = _SCALARS.get(form, "untyped")

    def _fill_map(
        self, kind: Type, schema: Mapping[str, Any], schemas: Schemas, *, preserve: bool, meta: Type | None
    ) -> None:
        properties: Mapping[str, Any] = schema.get("properties") or {}
        fields = {
            name: self._compile(child, schemas, preserve=preserve, meta=meta) for name, child in properties.items()
        }
        if schema.get("x-kubernetes-embedded-resource") and meta is not None:
            fields |= {"apiVersion": Type("string"), "kind": Type("string"), "metadata": meta}
        additional = schema.get("additionalProperties")
        extra: Type | None = None
        if isinstance(additional, Mapping):
            extra = self._compile(additional, schemas, preserve=preserve, meta=meta)
        elif additional is True or (additional is None and (preserve or not fields)):
            extra = DEDUCED
        kind.set_map(fields, extra, atomic=schema.get("x-kubernetes-map-type") == "atomic")

    def _fill_list(
        self, kind: Type, schema: Mapping[str, Any], schemas: Schemas, *, preserve: bool, meta: Type | None
    ) -> None:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            kind.set_list("atomic", UNTYPED)
            return
        mode, keys = _list_form(schema)
        item = self._compile(items, schemas, preserve=preserve, meta=meta)
        kind.set_list(mode, item, keys, _defaults(items, keys, schemas))


def reference(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema that this one refers to, alone or as its only `allOf`; else nothing."""
    target = schema.get("$ref")
    if target is None:
        parts: Sequence[Mapping[str, Any]] = schema.get("allOf") or ()
        target = parts[0].get("$ref") if len(parts) == 1 else None
    return str(target).rpartition("/")[2] if target else ""


def _list_form(schema: Mapping[str, Any]) -> tuple[ListMode, tuple[str, ...]]:
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return "map", tuple(schema.get("x-kubernetes-list-map-keys") or ())
        case "set":
            return "set", ()
        case "atomic":
            return "atomic", ()
        case _:
            pass
    if schema.get("x-kubernetes-patch-strategy") in {"merge", "merge,retainKeys"}:
        key = schema.get("x-kubernetes-patch-merge-key")
        return ("map", (key,)) if key else ("set", ())
    return "atomic", ()


def _defaults(items: Mapping[str, Any], keys: tuple[str, ...], schemas: Schemas) -> dict[str, Any]:
    """Return the defaults of an item's keys: an item that leaves one out is known by it."""
    if not keys:
        return {}
    name = reference(items)
    target = schemas.get(name, {}) if name else items
    properties: Mapping[str, Any] = target.get("properties") or {}
    return {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
