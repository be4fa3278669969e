"""The fields of a kind, as `kubectl explain` prints those of an installed one: from its class, without a cluster.

What is printed is a port of the behaviour of kubectl's plaintext output: the walk along a path, the guess at a type's name, the wrapping of
words. Built-in kinds are read from the recorded OpenAPI documents, which have no descriptions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from ctrlruntime.api.kind import GroupVersionKind, KindInfo, guess_plural, version_priority
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.builtin import builtin_schemas
from ctrlruntime.generate.schema import SchemaWalker
from ctrlruntime.spelling import did_you_mean

__all__ = ["Explanation", "Field", "UnknownKindError", "explain", "plaintext"]

Schema: TypeAlias = Mapping[str, Any]

_METADATA: Final = {"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}
_GVK: Final = "x-kubernetes-group-version-kind"
_ENUM_LIMIT: Final = 4
"""The number of enum values next to a field in a list."""


class UnknownKindError(ConfigError):
    """Neither the given classes nor the built-in kinds have this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `fields` are those of its value, of the items of a list or of the values of a map; empty unless asked for."""

    name: str
    type: str
    """As kubectl writes it: `string`, `[]Object`, `map[string]string`, `PodSpec`."""

    required: bool
    enum: tuple[Any, ...] = ()
    description: str = ""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A kind, or the field of it that a path leads to. `type`, `enum` and the path are empty for the kind itself."""

    kind: GroupVersionKind
    path: tuple[str, ...] = ()
    type: str = ""
    enum: tuple[Any, ...] = ()
    description: str = ""
    fields: tuple[Field, ...] = ()
    is_builtin: bool = False
    """Whether the kind is built in, so that it has no descriptions."""


def explain(what: str, kinds: Iterable[type[Object]], *, api_version: str = "", recursive: bool = False) -> Explanation:
    """Return what is known of `KIND` or `KIND.field.field`.

    `kinds` are the classes that are looked through, by kind, plural, singular or short name, before the built-in kinds are, by kind and
    plural. Of several versions the served one of the highest priority is taken, or that of `api_version`: `group/version`, or `version`.
    With `recursive` the fields of fields are there, too.

    Raises: UnknownKindError, or ConfigError for a field that is not there, with near ones;
    GenerateError for a class that cannot become a definition.
    """
    name, *path = what.split(".")
    kind, schema, is_builtin = _find(name, list(kinds), api_version)
    walk = _Walk(kind)
    field, schema = walk.follow(schema, path)
    return Explanation(
        kind=kind,
        path=tuple(path),
        type="" if field is None else _type(field),
        enum=() if field is None else tuple(field.get("enum") or ()),
        description="".join(_descriptions(schema)),
        fields=tuple(_fields(schema, recursive=recursive)),
        is_builtin=is_builtin,
    )


# Kinds


def _find(name: str, kinds: Sequence[type[Object]], api_version: str) -> tuple[GroupVersionKind, Schema, bool]:
    named = [cls for cls in kinds if name.lower() in _names(kind_of(cls))]
    found = [cls for cls in named if _is_version(kind_of(cls).gvk, api_version)]
    if found:
        cls = min(found, key=lambda each: _preference(kind_of(each)))
        return kind_of(cls).gvk, _schema_of(cls), False
    versions = [kind_of(cls).gvk for cls in named]
    builtin = {gvk: schema for gvk, schema in _builtin_kinds() if name.lower() in _names_of_builtin(gvk)}
    if fitting := [gvk for gvk in builtin if _is_version(gvk, api_version)]:
        gvk = min(fitting, key=lambda each: version_priority(each.version))
        return gvk, builtin[gvk], True
    versions += builtin
    if versions:
        there = ", ".join(sorted(gvk.api_version for gvk in versions))
        raise ConfigError(f"{versions[0].kind} has no version {api_version!r}. Set --api-version to one of {there}")
    known = {kind_of(cls).kind for cls in kinds} | {gvk.kind for gvk, _ in _builtin_kinds()}
    own = ", ".join(sorted({kind_of(cls).kind for cls in kinds})) or "the built-in kinds"
    raise UnknownKindError(f"kind {name!r} does not exist{did_you_mean(name, known, f'. Use one of {own}')}")


def _names(info: KindInfo) -> set[str]:
    return {info.kind.lower(), info.plural, info.singular, *info.short_names}


def _names_of_builtin(gvk: GroupVersionKind) -> set[str]:
    return {gvk.kind.lower(), guess_plural(gvk.kind)}


def _is_version(gvk: GroupVersionKind, api_version: str) -> bool:
    return api_version in {"", gvk.api_version, gvk.version}


def _preference(info: KindInfo) -> tuple[bool, tuple[int, int, int, str]]:
    return (info.skip or not info.served, version_priority(info.version))


def _schema_of(cls: type[Object]) -> Schema:
    schema = SchemaWalker(warn=lambda _: None).of_kind(cls)
    # What the server publishes in the place of whatever the definition says.
    schema["properties"]["metadata"] = _METADATA
    return schema


def _builtin_kinds() -> Iterator[tuple[GroupVersionKind, Schema]]:
    for schema in builtin_schemas().values():
        names = cast("list[Mapping[str, str]]", schema.get(_GVK) or [])
        # Types of many groups, such as DeleteOptions, and lists are not kinds of their own.
        if len(names) == 1 and "metadata" in (schema.get("properties") or {}) and not names[0]["kind"].endswith("List"):
            yield GroupVersionKind(names[0]["group"], names[0]["version"], names[0]["kind"]), schema


# The way to a field


class _Walk:
    """Follows a path as kubectl does: lists, maps and references are passed through."""

    def __init__(self, kind: GroupVersionKind) -> None:
        self._kind = kind

    def follow(self, schema: Schema, path: Sequence[str]) -> tuple[Schema | None, Schema]:
        """Return the schema of the path's last field, as it stands and resolved; None and the kind's for no path."""
        field: Schema | None = None
        resolved = _resolved(schema)
        for position, name in enumerate(path):
            known = dict(_named(resolved))
            if name not in known:
                raise self._unknown(name, path[:position], known)
            field = known[name]
            resolved = _resolved(field)
        return field, resolved

    def _unknown(self, name: str, before: Sequence[str], known: Iterable[str]) -> ConfigError:
        place = ".".join([self._kind.kind, *before])
        names = sorted(known)
        advice = did_you_mean(name, names) if names else ", because it has no fields"
        return ConfigError(f"{place} has no field {name!r}{advice}")


def _named(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The fields that a path may go on with; of a name that comes twice the last one counts."""
    resolved = _resolved(schema)
    for part in reversed(resolved.get("allOf") or ()):
        yield from _named(part)
    for part in (_values(resolved), resolved.get("items")):
        if part:
            yield from _named(part)
    yield from (resolved.get("properties") or {}).items()


def _resolved(schema: Schema) -> Schema:
    reference = str(schema.get("$ref") or "")
    return builtin_schemas().get(reference.rpartition("/")[2], schema) if reference else schema


def _values(schema: Schema) -> Schema | None:
    values = schema.get("additionalProperties")
    return cast("Schema", values) if isinstance(values, Mapping) else None


# What is said of it


def _type(schema: Schema) -> str:
    items, values = schema.get("items"), _values(schema)
    parts: Sequence[Schema] = schema.get("allOf") or []
    if items:
        return f"[]{_type(items)}"
    if values:
        return f"map[string]{_type(values)}"
    if len(parts) == 1 and not schema.get("properties"):
        return _type(parts[0])
    name = str(schema.get("$ref") or "").rpartition(".")[2]
    plain = str(_resolved(schema).get("type") or "object")
    if plain != "object":
        return plain
    return name or "Object"


def _descriptions(schema: Schema) -> Iterator[str]:
    """The description of a schema and of all that it is made of, a line break after each."""
    resolved = _resolved(schema)
    if text := resolved.get("description"):
        yield f"{text}\n"
    for part in (*(resolved.get("allOf") or ()), resolved.get("items"), _values(resolved)):
        if part:
            yield from _descriptions(part)


def _fields(schema: Schema, *, recursive: bool, seen: frozenset[str] = frozenset()) -> Iterator[Field]:
    reference = str(schema.get("$ref") or "")
    if reference and reference in seen:
        return  # a type that contains itself
    seen |= {reference}
    resolved = _resolved(schema)
    for name, child in sorted((resolved.get("properties") or {}).items()):
        yield Field(
            name=name,
            type=_type(child),
            required=name in (resolved.get("required") or ()),
            enum=tuple(child.get("enum") or ()),
            description=str(child.get("description") or ""),
            fields=tuple(_fields(child, recursive=True, seen=seen)) if recursive else (),
        )
    for part in (*(resolved.get("allOf") or ()), resolved.get("items"), _values(resolved)):
        if part:
            yield from _fields(part, recursive=recursive, seen=seen)


# Text


def plaintext(explanation: Explanation, *, recursive: bool = False) -> str:
    """Return the text that `kubectl explain` prints, with `--recursive` if `recursive`; the last line break is left out."""
    return "".join(_plaintext(explanation, recursive=recursive))


def _plaintext(explanation: Explanation, *, recursive: bool) -> Iterator[str]:
    kind = explanation.kind
    if kind.group:
        yield f"GROUP:      {kind.group}\n"
    yield f"KIND:       {kind.kind}\nVERSION:    {kind.version}\n\n"
    if explanation.path:
        yield f"FIELD: {explanation.path[-1]} <{explanation.type}>\n"
        if explanation.enum:
            yield "ENUM:" + "".join(f"\n    {_value(value)}" for value in explanation.enum)
        yield "\n\n"
    yield f"DESCRIPTION:\n{_indented(_wrapped(explanation.description or '<empty>', 76), 4)}\n"
    if explanation.fields:
        yield "FIELDS:\n"
        yield from _lines(explanation.fields, 2, recursive=recursive)


def _lines(fields: Iterable[Field], indent: int, *, recursive: bool) -> Iterator[str]:
    for field in fields:
        required = " -required-" if field.required else ""
        yield f"{' ' * indent}{field.name}\t<{field.type}>{required}{_enum(field.enum, indent)}\n"
        if recursive:
            yield from _lines(field.fields, indent + 2, recursive=True)
        else:
            text = _wrapped(field.description or "<no description>", 78 - indent)
            yield f"{_indented(text, indent + 2)}\n\n"


def _enum(values: Sequence[Any], indent: int) -> str:
    if not values:
        return ""
    more = ", ...." if len(values) > _ENUM_LIMIT else ""
    return f"\n{' ' * indent}enum: {', '.join(_value(value) for value in values[:_ENUM_LIMIT])}{more}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value)


def _indented(text: str, indent: int) -> str:
    pad = " " * indent
    return pad + text.replace("\n", f"\n{pad}")


def _wrapped(text: str, width: int) -> str:
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    """Break a line before each word that does not fit; the spaces there are dropped, others are kept."""
    result, length = "", 0
    for space, word in re.findall(r"([^\S\xa0]*)((?:\S|\xa0)*)", line):
        # A word as wide as the line or wider is moved when its beginning does not fit, and then stands out.
        if length + len(space) + min(len(word), width - 1) > width:
            result, length = (f"{result}\n{word}", len(word)) if word else (result, length)
        else:
            result, length = f"{result}{space}{word}", length + len(space) + len(word)
    return result
