"""Schemas as types: a class for each object with fields, shared where two say the same, and an expression for everything else.

A schema is taken apart into a type, markers and bounds. Between them they say what the generator reads; what it would refuse (a bound that
does not fit the type, a pattern Python cannot read) is not said here, and is missing when the definitions are compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, cast

from pydantic import Field, TypeAdapter
from pydantic_core import SchemaError

from ctrlruntime.api.fields import camel
from ctrlruntime.generate.builtin import LOOSE_QUANTITY, QUANTITY
from ctrlruntime.markers import CEL, ExternalDocs
from ctrlruntime.project.importing.known import builtin_class
from ctrlruntime.project.importing.layout import (
    WIDTH,
    Atom,
    Expression,
    Group,
    Text,
    call,
    docstring,
    flat,
    lines,
    subscript,
    value,
    width,
)
from ctrlruntime.project.importing.meaning import bounds_in, is_limits, normal_schema
from ctrlruntime.project.importing.names import ClassNames, FieldNames, pascal

__all__ = ["Owner", "Types", "description", "markers_over"]

_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
_INT_OR_STRING, _RULES = "x-kubernetes-int-or-string", "x-kubernetes-validations"
_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_OF_THE_USE: Final = ("description", "default", "nullable", "example", _EMBEDDED)
"""What is said where a class is used, so that uses that differ in it share the class."""
_LONG = 60
_NUMERIC: Final = frozenset({"ge", "gt", "le", "lt", "multiple_of"})
_LENGTHS: Final = {"string": "Length", "array": "Items", "object": "Properties"}
_ENUMS: Final[Mapping[str, type[Any]]] = {"string": str, "integer": int, "boolean": bool}
_INTS: Final = {"int32": "ctrl.Int32", "int64": "ctrl.Int64"}


@dataclass(frozen=True, slots=True)
class Owner:
    """The class of a kind, and its version: names of the classes below it follow from them."""

    name: str
    version: str


@dataclass(slots=True)
class _Said:
    """A type and what stands around it."""

    base: Expression
    markers: list[Expression] = field(default_factory=list[Expression])
    bounds: list[tuple[str, Expression]] = field(default_factory=list[tuple[str, Expression]])
    more_bounds: list[Expression] = field(default_factory=list[Expression])
    is_class: bool = False

    def annotated(self, *around: Expression, optional: bool = False) -> Expression:
        """The type with its markers; bounds are not in it."""
        base = Atom(f"{flat(self.base)} | None") if optional and flat(self.base) != "crd.JSONValue" else self.base
        said = (*self.markers, *self.more_bounds, *around)
        return subscript("Annotated", base, *said) if said else base


class Types:
    """Writes the classes and aliases of one module."""

    def __init__(self, names: ClassNames) -> None:
        self.blocks: list[list[str]] = []
        """The lines of each class and alias, in the order they need each other."""
        self._names = names
        self._classes: dict[str, str] = {}
        self._aliases: dict[str, str] = {}
        self._descriptions: dict[str, set[str]] = {}

    def learn(self, schema: Mapping[str, Any]) -> None:
        """Note the descriptions of all objects below a schema: a class has one when its uses agree. Comes before any `fields`."""
        for child in _below(schema):
            if _has_fields(child):
                self._descriptions.setdefault(_shape(child), set()).add(description(child))
            self.learn(child)

    def fields(
        self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...], *, head: bool = False
    ) -> list[str]:
        """Return the lines of the fields of an object; those of an object with a kind leave out its head."""
        attributes = FieldNames()
        required: set[str] = set(schema.get("required") or ())
        written: list[str] = []
        for wire, child in (schema.get("properties") or {}).items():
            if head and wire in {"apiVersion", "kind", "metadata"}:
                continue
            made = _Field(self, wire, child, owner, (*steps, pascal(wire)), is_required=wire in required)
            written += made.lines(attributes.of(wire))
        return written

    # Types

    def said(self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...]) -> _Said:
        """Take a schema apart."""
        said = self._typed(schema, owner, steps)
        if schema.get("nullable"):
            said.markers.append(Atom("crd.Nullable"))
        if schema.get(_EMBEDDED) and flat(said.base) != "crd.EmbeddedResource":
            said.markers.append(call("crd.Flag", Text("EmbeddedResource")))
        if said.is_class:
            return said
        said.markers += _markers(schema, said.base)
        bounds = [*_fitting(schema, schema)]
        named = dict(reversed(bounds))
        said.bounds = [(name, named[name]) for name in dict.fromkeys(name for name, _ in bounds)]
        both = schema.get("allOf") or ()
        if is_limits(both):
            said.more_bounds = [call("Field", **{name: one}) for part in both for name, one in _fitting(part, schema)]
        return said

    def item(self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...]) -> Expression:
        """Return the type of the items of a list or the values of a dict; one that is long gets a name."""
        said = self.said(schema, owner, steps)
        named = self.named(schema, said)
        around = (call("Field", **named),) if named else ()
        return self.short(said.annotated(*around, optional=bool(schema.get("nullable"))), owner, steps)

    def named(self, schema: Mapping[str, Any], said: _Said) -> dict[str, Expression]:
        """Return the arguments of Field, except for the default and the JSON names."""
        named = dict(said.bounds)
        if (text := description(schema)) and not self._has_docstring(schema):
            named["description"] = Text(text)
        if "example" in schema:
            named["examples"] = Group("[", (("", value(schema["example"])),), "]")
        return named

    def short(self, expression: Expression, owner: Owner, steps: tuple[str, ...]) -> Expression:
        """Return the expression, or the name of an alias for a long one."""
        source = flat(expression)
        if len(source) <= _LONG:
            return expression
        if source not in self._aliases:
            name = self._names.for_path(owner.name, owner.version, steps)
            self._aliases[source] = name
            self.blocks.append(lines(expression, before=f"{name}: TypeAlias = "))
        return Atom(self._aliases[source])

    def _typed(self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...]) -> _Said:
        if schema.get(_INT_OR_STRING):
            is_quantity = schema.get("pattern") in {QUANTITY["pattern"], LOOSE_QUANTITY}
            return _Said(Atom("ctrl.Quantity" if is_quantity else "ctrl.IntOrString"))
        if (values := _enum(schema)) is not None:
            return _Said(self.short(subscript("Literal", *map(value, values)), owner, steps))
        match schema.get("type"):
            case "array":
                singular = (*steps[:-1], _singular(steps[-1]))
                return _Said(subscript("list", self.item(schema["items"], owner, singular)))
            case "object":
                return self._object(schema, owner, steps)
            case "string":
                return _string(schema)
            case "integer":
                return _Said(Atom(_INTS.get(schema.get("format", ""), "int")))
            case "number":
                return _Said(Atom("float"), [call("crd.SchemaType", Text("number"))])
            case "boolean":
                return _Said(Atom("bool"))
            case _:
                return _Said(Atom("crd.JSONValue"))

    def _object(self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...]) -> _Said:
        if _has_fields(schema):
            builtin = builtin_class(schema, steps[-1])
            return _Said(Atom(builtin or self._class(schema, owner, steps)), is_class=True)
        values = schema.get("additionalProperties")
        if values is True:
            return _Said(Atom("dict[str, crd.JSONValue]"))
        if values:
            item = self.item(values, owner, (*steps[:-1], _singular(steps[-1])))
            return _Said(subscript("dict", Atom("str"), item))
        return _Said(Atom("crd.EmbeddedResource" if schema.get(_EMBEDDED) else "crd.RawExtension"))

    # Classes

    def _class(self, schema: Mapping[str, Any], owner: Owner, steps: tuple[str, ...]) -> str:
        shape = _shape(schema)
        if shape not in self._classes:
            name = self._names.for_path(owner.name, owner.version, steps)
            self._classes[shape] = name
            text = [*docstring(description(schema), indent=1), ""] if self._has_docstring(schema) else []
            body = [*text, *self.fields(schema, owner, steps)]
            over = [line for marker in markers_over(schema) for line in lines(marker, before="@")]
            while body and not body[-1]:
                body.pop()
            self.blocks.append([*over, f"class {name}(ctrl.Model):", *(body or ["    pass"])])
        return self._classes[shape]

    def _has_docstring(self, schema: Mapping[str, Any]) -> bool:
        if not _has_fields(schema) or builtin_class(schema, "") is not None:
            return False
        return bool(description(schema)) and len(self._descriptions.get(_shape(schema), ())) == 1


class _Field:
    """One field of a class."""

    def __init__(
        self,
        types: Types,
        wire: str,
        schema: Mapping[str, Any],
        owner: Owner,
        steps: tuple[str, ...],
        *,
        is_required: bool,
    ) -> None:
        self._types = types
        self._wire = wire
        self._schema = schema
        self._place = (owner, steps)
        self._is_required = is_required
        self._said = types.said(schema, owner, steps)

    def lines(self, name: str) -> list[str]:
        default, marker, optional = self._default()
        around: list[Expression] = [Atom("crd.Required")] if self._is_required and default else []
        around += [call("crd.Default", value(self._schema["default"]))] if marker else []
        said = self._said
        annotation = said.annotated(*around, optional=optional)
        named = {**default, **self._types.named(self._schema, said)}
        if camel(name) != self._wire:
            named |= {"validation_alias": Text(self._wire), "serialization_alias": Text(self._wire)}
        return _statement(name, annotation, named)

    def _default(self) -> tuple[dict[str, Expression], bool, bool]:
        """(how Python says the default, whether a marker says it to the schema, whether None is a value)."""
        schema, base = self._schema, flat(self._said.base)
        if "default" not in schema or schema["default"] is None:
            return self._absent(base)
        given = schema["default"]
        optional = bool(schema.get("nullable"))
        if isinstance(given, (str, int, float)) and base in {"str", "int", "bool", "float", *_INTS.values()}:
            return {"default": value(given)}, not given and not optional, optional
        if self._said_enum() and given in (_enum(schema) or ()):
            return {"default": value(given)}, not given and not optional, optional
        if given == {} and self._makes_itself():
            return {"default_factory": Atom(base)}, not _is_filled(schema), optional
        if given in ([], {}) and base.startswith(("list[", "dict[")):
            return {"default_factory": self._said.base}, True, optional
        if self._is_main_part():
            return {"default_factory": Atom(base)}, True, optional
        return {"default": Atom("None")}, True, True

    def _absent(self, base: str) -> tuple[dict[str, Expression], bool, bool]:
        if self._is_required:
            return {}, False, False
        if not self._schema.get("nullable"):
            if base.startswith(("list[", "dict[")):
                return {"default_factory": self._said.base}, False, False
            if self._is_main_part():
                return {"default_factory": Atom(base)}, False, False
        return {"default": Atom("None")}, False, True

    def _said_enum(self) -> bool:
        return "enum" in self._schema and self._schema.get("type") in _ENUMS

    def _is_main_part(self) -> bool:
        """Whether it is a spec or status that is always there in Python: with nothing set it is not sent, so the server fills it in."""
        _, steps = self._place
        return steps in {("Spec",), ("Status",)} and self._makes_itself() and not _is_filled(self._schema)

    def _makes_itself(self) -> bool:
        """Whether the class can be called without arguments."""
        is_own = self._said.is_class and not flat(self._said.base).startswith(("core.", "meta."))
        return is_own and not self._schema.get("required")


def _statement(name: str, annotation: Expression, named: Mapping[str, Expression]) -> list[str]:
    """The lines of `name: annotation = …`."""
    if not named:
        after = ""
    elif set(named) == {"default"}:
        after = f" = {flat(named['default'])}"
    else:
        made = call("Field", **named)
        before = f"{name}: {flat(annotation)} = "
        if width(f"    {before}Field(") <= WIDTH:
            return lines(made, before=before, indent=1)
        *first, last = lines(annotation, before=f"{name}: ", after=" = Field(", indent=1)
        return [*first, *lines(made, before=last.strip().removesuffix("Field("), indent=1)]
    return lines(annotation, before=f"{name}: ", after=after, indent=1)


def markers_over(schema: Mapping[str, Any]) -> list[Expression]:
    """Return the decorators that say what a class does not say by its fields."""
    counts = {"minProperties": "crd.MinProperties", "maxProperties": "crd.MaxProperties"}
    found = [call(name, value(schema[key])) for key, name in counts.items() if key in schema]
    return [*_markers(schema, None), *found]


def _markers(schema: Mapping[str, Any], base: Expression | None) -> Iterator[Expression]:
    """What markers say of a schema; of a class, when there is no `base`."""
    source = "" if base is None else flat(base)
    if schema.get(_PRESERVE) and source not in {"crd.JSONValue", "crd.RawExtension", "crd.EmbeddedResource"}:
        yield Atom("crd.PreserveUnknownFields")
    form = schema.get("format")
    if form and source not in {*_INTS.values(), "ctrl.Time", "bytes"}:
        yield call("crd.Format", Text(form))
    if (title := schema.get("title")) is not None and title:
        yield call("crd.Title", Text(title))
    yield from _link(schema.get("externalDocs") or {})
    match schema.get(_LIST), schema.get("type"):
        case "set", "array":
            yield Atom("crd.ListSet")
        case "atomic", "array":
            yield Atom("crd.ListAtomic")
        case "map", "array" if schema.get(_KEYS) and all(schema[_KEYS]):
            yield call("crd.ListMap", *map(Text, schema[_KEYS]))
        case _:
            pass
    if schema.get(_MAP) in {"atomic", "granular"} and schema.get("type") == "object":
        yield Atom("crd.MapAtomic" if schema[_MAP] == "atomic" else "crd.MapGranular")
    for rule in schema.get(_RULES) or ():
        yield from _cel(rule)


def _link(docs: Mapping[str, Any]) -> Iterator[Expression]:
    if not docs.get("url"):
        return
    try:
        ExternalDocs(docs["url"])
    except ValueError:
        return
    named = {"description": Text(docs["description"])} if docs.get("description") else {}
    yield call("crd.ExternalDocs", Text(docs["url"]), **named)


def _cel(rule: Mapping[str, Any]) -> Iterator[Expression]:
    words = {
        "message": "message",
        "messageExpression": "message_expression",
        "reason": "reason",
        "fieldPath": "field_path",
        "optionalOldSelf": "optional_old_self",
    }
    named = {word: rule[key] for key, word in words.items() if rule.get(key) or (key in rule and rule[key] is False)}
    try:
        CEL(rule.get("rule", ""), **named)
    except ValueError:
        return
    yield call("crd.CEL", Text(rule["rule"]), **{word: value(one) for word, one in named.items()})


def _string(schema: Mapping[str, Any]) -> _Said:
    is_bounded = bool(schema.get("allOf")) or any(True for _ in bounds_in(schema))
    match schema.get("format"):
        case "date-time" if not is_bounded:
            return _Said(Atom("ctrl.Time"))
        case "byte" if not is_bounded:
            return _Said(Atom("bytes"))
        case _:
            return _Said(Atom("str"))


def _enum(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of an enum, when a Literal can say them."""
    kind = _ENUMS.get(schema.get("type", ""))
    values: list[Any] = schema.get("enum") or []
    return list(dict.fromkeys(values)) if kind and values and all(type(one) is kind for one in values) else None


def _fitting(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, Expression]]:
    """The bounds of a schema, or a part of it, that fit its type."""
    kind = schema.get("type", "string" if schema.get(_INT_OR_STRING) else "")
    for name, bound in bounds_in(part):
        if name in _NUMERIC and kind in {"integer", "number"}:
            if kind == "number" or float(bound).is_integer():
                yield name, value(int(bound) if kind == "integer" else bound)
        elif name == "pattern" and kind == "string":
            is_quantity = schema.get(_INT_OR_STRING) and bound == QUANTITY["pattern"]
            if not is_quantity and _is_readable(bound):
                yield name, Text(bound)
        elif name[3:] == _LENGTHS.get(kind) and name[3:]:
            yield f"{name[:3]}_length", value(int(bound))


def _is_readable(pattern: str) -> bool:
    """Whether pydantic can check a pattern, too."""
    try:
        TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except SchemaError:
        return False
    return True


# What a schema is


def _has_fields(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is an object that becomes a class: one with fields, or one that may have none."""
    if schema.get("type") != "object" or schema.get(_INT_OR_STRING):
        return False
    return bool(schema.get("properties")) or not (schema.get("additionalProperties") or schema.get(_PRESERVE))


def _is_filled(schema: Mapping[str, Any]) -> bool:
    """Whether the generator gives an object the default `{}` by itself: something directly below has one."""
    return any("default" in child for child in (schema.get("properties") or {}).values())


def _shape(schema: Mapping[str, Any]) -> str:
    """What two schemas that one class can say have in common."""
    own = {key: one for key, one in schema.items() if key not in _OF_THE_USE}
    return json.dumps(normal_schema(own), sort_keys=True)


def description(schema: Mapping[str, Any]) -> str:
    """Return the description of a schema. Lines that the generator would drop are joined to the line before them."""
    return re.sub(r"\s*\n(?=TODO|---)", " ", str(schema.get("description") or "").strip())


def _below(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    yield from (schema.get("properties") or {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            yield cast("Mapping[str, Any]", schema[key])


def _singular(name: str) -> str:
    """`Containers` as `Container`, for the class of one of them."""
    for ending, one in (("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("ies", "y")):
        if name.endswith(ending) and len(name) > len(ending) + 1:
            return name.removesuffix(ending) + one
    if name.endswith("s") and not name.endswith(("ss", "us", "is")) and len(name) > 2:
        return name[:-1]
    return name
