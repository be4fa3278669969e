"""The rules a CRD's schema must keep, with upstream's texts and paths.

In upstream's order (pkg/apis/apiextensions/validation): what makes the schema structural; whether defaults fit, if it is; what OpenAPI
allows here; whether the CEL rules compile and cost little enough, where nothing at or below them is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ctrlruntime.cel.failures import MissingLibraryError
from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.embedded import EmbeddedMisfit, embedded_causes, embedded_objects, read_embedded
from ctrlruntime.schema.formats import recognized
from ctrlruntime.schema.rule_checks import check_rules, form_causes
from ctrlruntime.schema.rules import RULES, children, has_rules
from ctrlruntime.schema.structural import Structural, compile_schema
from ctrlruntime.schema.trees import copy_tree

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REFUSED_WHEN_EMPTY = frozenset({"additionalItems", "dependencies", "$ref"})
_NAMED = frozenset({"properties", "definitions", "dependencies"})
"""The words that have schemas by name."""
_OWN = frozenset({"metadata", "apiVersion", "kind"})
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"


def check_schema(schema: Mapping[str, Any], path: str) -> list[StatusCause]:
    """Return what is wrong with the schema at `path`; empty when it can be served."""
    refused = list(_openapi(schema, path, "root"))
    if words := _odd_words(schema):
        if not refused and "$schema" in words:
            return [invalid_value(path, "", "OpenAPIV3Schema 'schema' is not supported")]
        return refused
    found = (*_structural(schema, path, "root"), *_complete_branches(schema, schema, path, path))
    causes = sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")
    if not causes:
        # A default of the whole object must say what the object is.
        whole = schema if schema.get("default") is None else {**schema, _EMBEDDED: True}
        causes = list(_defaults(whole, path, _OWN))
    if causes:
        return [*causes, *refused]
    return [*refused, *check_rules(schema, path, [cause.field for cause in refused])]


def unrecognized_formats(schema: Mapping[str, Any]) -> list[str]:
    """Return the formats the server does not check, in order; of a schema that is not structural, none."""
    if _odd_words(schema) or any(_structural(schema, "", "root")):
        return []
    return sorted(
        {
            part["format"]
            for part in _parts(schema)
            if part.get("format") and not recognized(part.get("type", ""), part["format"])
        }
    )


def _all_children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield all schemas in a schema, in upstream's order, with their place below it."""
    for name in (
        "additionalProperties",
        "properties",
        "not",
        "allOf",
        "oneOf",
        "anyOf",
        "definitions",
        "items",
        "dependencies",
    ):
        found = schema.get(name)
        if name in _NAMED:
            yield from (
                (f".{name}[{key}]", child) for key, child in (found or {}).items() if isinstance(child, Mapping)
            )
        elif isinstance(found, Mapping):
            yield f".{name}", cast("Mapping[str, Any]", found)
        elif isinstance(found, list):
            yield from ((f".{name}[{index}]", child) for index, child in enumerate(found) if isinstance(child, Mapping))


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schema and all schemas in it."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(child for _, child in _all_children(part))


def _odd_words(schema: Mapping[str, Any]) -> set[str]:
    """Return the words in a schema for which upstream does not even look whether it is structural."""
    found: set[str] = set()
    for part in _parts(schema):
        found.update(key for key in (*_UNSUPPORTED, "$schema") if part.get(key))
        if isinstance(part.get("items"), list):
            found.add("items")
        if part.get(_PRESERVE) is False:
            found.add(_PRESERVE)
    return found


# What OpenAPI allows here


def _openapi(schema: Mapping[str, Any], path: str, place: str) -> Iterator[StatusCause]:
    kind = schema.get("type", "")
    yield from _forbidden_default(schema, path, place)
    for key in _UNSUPPORTED:
        if schema.get(key) or (key in _REFUSED_WHEN_EMPTY and schema.get(key) is not None):
            yield forbidden_field(f"{path}.{key}", f"{key} is not supported")
    if kind == "null":
        yield forbidden_field(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if isinstance(schema.get("items"), list):
        yield forbidden_field(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", text)
    extra = schema.get("additionalProperties")
    if extra is not None and extra is not True and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{path}.additionalProperties", text)
    for below, child in _all_children(schema):
        yield from _openapi(child, path + below, _place(schema, place, below))
    if schema.get(_PRESERVE) is False:
        yield invalid_value(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    yield from _maps(schema, kind, path)
    yield from _lists(schema, kind, path)
    yield from form_causes(schema, path, has_paths=not _odd_words(schema))


def _place(schema: Mapping[str, Any], place: str, below: str) -> str:
    """Return what is special about a child: where it lies in a resource's own fields."""
    if place == "metadata" and below == ".additionalProperties":
        return "inside additionalProperties applying to object metadata"
    if place in {"metadata", "own metadata"}:
        return place
    for name in _OWN:
        if below == f".properties[{name}]":
            if place == "root":
                return "own metadata" if name == "metadata" else f"own {name}"
            if schema.get(_EMBEDDED) and name == "metadata":
                return "metadata"
    return ""


def _forbidden_default(schema: Mapping[str, Any], path: str, place: str) -> Iterator[StatusCause]:
    if schema.get("default") is None:
        return
    if place.startswith("own "):
        yield forbidden_field(f"{path}.default", f"must not be set in top-level {place.removeprefix('own ')}")
    elif place.startswith("inside"):
        yield forbidden_field(f"{path}.default", f"must not be set {place}")


def _maps(schema: Mapping[str, Any], kind: str, path: str) -> Iterator[StatusCause]:
    map_type = schema.get(_MAP)
    if map_type is None:
        return
    if kind != "object":
        yield _wrong_type(path, kind, f"must be object if {_MAP} is specified")
    if map_type not in {"atomic", "granular"}:
        yield not_supported(f"{path}.{_MAP}", map_type, ["atomic", "granular"])


def _wrong_type(path: str, kind: str, text: str) -> StatusCause:
    return invalid_value(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)


def _lists(schema: Mapping[str, Any], kind: str, path: str) -> Iterator[StatusCause]:
    list_type, keys = schema.get(_LIST), schema.get(_KEYS) or []
    if list_type is not None:
        if kind != "array":
            yield _wrong_type(path, kind, f"must be array if {_LIST} is specified")
        if list_type not in {"atomic", "set", "map"}:
            yield not_supported(f"{path}.{_LIST}", list_type, ["atomic", "set", "map"])
    if keys and list_type is None:
        yield required(f"{path}.{_LIST}", f"must be map if {_KEYS} is non-empty")
    elif keys and list_type != "map":
        yield invalid_value(f"{path}.{_LIST}", list_type, f"must be map if {_KEYS} is non-empty")
    items = schema.get("items")
    if list_type == "map":
        yield from _map_list(schema, keys, path)
    elif list_type == "set" and isinstance(items, Mapping):
        yield from _set_items(items, f"{path}.items")


def _map_list(schema: Mapping[str, Any], keys: list[str], path: str) -> Iterator[StatusCause]:
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    items = schema.get("items")
    if items is None:
        yield required(f"{path}.items", f"must have a schema if {_LIST} is map")
    if not isinstance(items, Mapping):
        return
    if items.get("type") != "object":
        text = f"must be object if parent array's {_LIST} is map"
        yield invalid_value(f"{path}.items.type", items.get("type", ""), text)
        return
    properties: Mapping[str, Any] = items.get("properties") or {}
    for key in keys:
        if key not in properties:
            yield invalid_value(f"{path}.{_KEYS}", keys, "entries must all be names of item properties")
        elif properties[key].get("type") in {"array", "object"}:
            text = f"must be a scalar type if parent array's {_LIST} is map"
            yield invalid_value(f"{path}.items.properties[{key}].type", items["type"], text)
    if len(set(keys)) < len(keys):
        yield invalid_value(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")
    if items.get("nullable"):
        yield forbidden_field(f"{path}.items.nullable", f"cannot be nullable when {_LIST} is map")
    for key in dict.fromkeys(keys):
        if key in properties:
            yield from _map_key(properties[key], key, items, f"{path}.items.properties[{key}]")


def _map_key(schema: Mapping[str, Any], key: str, items: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    if key not in (items.get("required") or ()) and schema.get("default") is None:
        text = f"this property is in {_KEYS}, so it must have a default or be a required property"
        yield required(f"{path}.default", text)
    if schema.get("nullable"):
        yield forbidden_field(f"{path}.nullable", f"this property is in {_KEYS}, so it cannot be nullable")


def _set_items(items: Mapping[str, Any], path: str) -> Iterator[StatusCause]:
    if items.get("nullable"):
        yield forbidden_field(f"{path}.nullable", f"cannot be nullable when {_LIST} is set")
    match items.get("type"):
        case "object":
            if items.get(_MAP) != "atomic":
                text = f"must be atomic as item of a list with {_LIST}=set"
                yield invalid_value(f"{path}.{_MAP}", items.get(_MAP), text)
        case "array":
            if items.get(_LIST) not in {None, "atomic"}:
                text = f"must be atomic as item of a list with {_LIST}=set"
                yield invalid_value(f"{path}.{_LIST}", items.get(_LIST), text)
        case _:
            pass


# What makes a schema structural


_PLACES = {
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
    "root": "must not be empty at the root",
}


def _structural(schema: Mapping[str, Any], path: str, level: str) -> Iterator[StatusCause]:
    kind = schema.get("type", "")
    if kind == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    typeless = schema.get(_INT_OR_STRING) or schema.get(_PRESERVE)
    if not kind and not typeless:
        if schema.get(_EMBEDDED):
            yield required(f"{path}.type", f"must be object if {_EMBEDDED} is true")
        else:
            yield required(f"{path}.type", _PLACES[level])
    elif level == "root" and kind and kind != "object":
        yield invalid_value(f"{path}.type", kind, "must be object at the root")
    yield from _extensions(schema, kind, path, level)
    if level == "root" or schema.get(_EMBEDDED):
        yield from _own_fields(schema, path, level)
    yield from _values(schema, path, skips=_int_or_string_branches(schema))
    for below, child in children(schema):
        yield from _structural(child, path + below, "items" if below == ".items" else "field")


def _extensions(schema: Mapping[str, Any], kind: str, path: str, level: str) -> Iterator[StatusCause]:
    text = f"must be false if {_INT_OR_STRING} is true"
    if schema.get(_INT_OR_STRING):
        for key in (_PRESERVE, _EMBEDDED):
            if schema.get(key):
                yield invalid_value(f"{path}.{key}", True, text)
    if schema.get(_EMBEDDED):
        if not schema.get(_PRESERVE) and not schema.get("properties"):
            text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
            yield required(f"{path}.properties", text)
        if kind != "object" and (kind or schema.get(_INT_OR_STRING) or schema.get(_PRESERVE)):
            yield _wrong_type(path, kind, f"must be object if {_EMBEDDED} is true")
    if schema.get("additionalProperties") is not None:
        if level == "root":
            yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
        elif schema.get(_EMBEDDED):
            yield forbidden_field(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set")
    if level == "root" and schema.get("nullable"):
        yield forbidden_field(f"{path}.nullable", "nullable cannot be true at the root")


def _own_fields(schema: Mapping[str, Any], path: str, level: str) -> Iterator[StatusCause]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    for name, wanted in (("metadata", "object"), ("apiVersion", "string"), ("kind", "string")):
        if name in properties and properties[name].get("type", "") != wanted:
            where = f"{path}.properties[{name}].type"
            yield invalid_value(where, properties[name].get("type", ""), f"must be {wanted}")
    metadata = properties.get("metadata")
    if level == "root" and metadata is not None:
        other = {key: value for key, value in metadata.items() if value and key not in {"type", "default"}}
        other["properties"] = set(metadata.get("properties") or {}) - {"name", "generateName"}
        if any(other.values()):
            text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden_field(f"{path}.properties[metadata]", text)


def _complete(
    judged: Mapping[str, Any], structure: Mapping[str, Any] | None, path: str, judged_path: str
) -> Iterator[StatusCause]:
    """What is judged in a branch must be described outside of it (complete.go in apiextensions' pkg/apiserver/schema)."""
    if structure is None:
        yield required(path, f"because it is defined in {judged_path}")
        return
    yield from _complete_branches(judged, structure, path, judged_path)
    if isinstance(judged.get("items"), Mapping):
        yield from _complete(judged["items"], structure.get("items"), f"{path}.items", f"{judged_path}.items")
    described: Mapping[str, Any] = structure.get("properties") or {}
    for name, child in (judged.get("properties") or {}).items():
        below = f".properties[{name}]"
        yield from _complete(child, described.get(name), path + below, judged_path + below)


def _complete_branches(
    schema: Mapping[str, Any], structure: Mapping[str, Any], path: str, judged_path: str
) -> Iterator[StatusCause]:
    for below, child in _value_children(schema):
        yield from _complete(child, structure, path, judged_path + below)


def _value_children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(name) or ()):
            yield f".{name}[{index}]", child
    if isinstance(schema.get("not"), Mapping):
        yield ".not", schema["not"]


_INT_OR_STRING_BRANCHES = [{"type": "integer"}, {"type": "string"}]


def _int_or_string_branches(schema: Mapping[str, Any]) -> set[str]:
    """Return where an int-or-string may say its two types: `anyOf`, or an `anyOf` as the first of `allOf`."""
    if not schema.get(_INT_OR_STRING):
        return set()
    if schema.get("anyOf") == _INT_OR_STRING_BRANCHES:
        return {".anyOf"}
    all_of = schema.get("allOf") or [{}]
    return {".allOf[0].anyOf"} if all_of[0].get("anyOf") == _INT_OR_STRING_BRANCHES else set()


def _values(schema: Mapping[str, Any], path: str, *, skips: set[str]) -> Iterator[StatusCause]:
    """Check the parts that judge values: patterns, and the branches of allOf, anyOf, oneOf and not."""
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except ValueError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            yield invalid_value(f"{path}.pattern", schema["pattern"], text)
        except MissingLibraryError as error:
            yield StatusCause("InternalError", f"Internal error: {error}", f"{path}.pattern")
    for below, child in _value_children(schema):
        inner = {skip.removeprefix(below) for skip in skips if skip.startswith(f"{below}.")}
        is_named = below.partition("[")[0] in skips
        yield from _value_only(child, path + below, skips=inner, may_have_type=is_named)


_NOTHING = "must be {} to be structural"


def _value_only(
    schema: Mapping[str, Any], path: str, *, skips: set[str], may_have_type: bool = False
) -> Iterator[StatusCause]:
    """Below allOf, anyOf, oneOf and not a schema may judge values and not describe structure."""
    for key in ("type", "title", "description"):
        if schema.get(key) and not (key == "type" and may_have_type):
            yield forbidden_field(f"{path}.{key}", _NOTHING.format("empty"))
    for key in ("default", "additionalProperties", _LIST, _MAP):
        if schema.get(key) is not None:
            yield forbidden_field(f"{path}.{key}", _NOTHING.format("undefined"))
    for key in ("nullable", _PRESERVE, _EMBEDDED, _INT_OR_STRING):
        if schema.get(key):
            yield forbidden_field(f"{path}.{key}", _NOTHING.format("false"))
    for key in (_KEYS, RULES):
        if schema.get(key):
            yield forbidden_field(f"{path}.{key}", _NOTHING.format("empty"))
    if "metadata" in (schema.get("properties") or {}):
        yield forbidden_field(f"{path}.properties[metadata]", "must not be specified in a nested context")
    yield from _values(schema, path, skips=skips)
    for name, child in (schema.get("properties") or {}).items():
        yield from _value_only(child, f"{path}.properties[{name}]", skips=set())
    if isinstance(schema.get("items"), Mapping):
        yield from _value_only(schema["items"], f"{path}.items", skips=set())


# Whether defaults fit


def _defaults(schema: Mapping[str, Any], path: str, skipped: frozenset[str] = frozenset()) -> Iterator[StatusCause]:
    """Yield what is wrong with the defaults; those of the properties `skipped` are refused as such, by `_forbidden_default`."""
    if schema.get("default") is not None:
        yield from _default(schema, schema["default"], f"{path}.default")
        return
    for name, child in (schema.get("properties") or {}).items():
        if name not in skipped:
            yield from _defaults(child, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), Mapping):
        yield from _defaults(schema["items"], f"{path}.items")


def _default(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[StatusCause]:
    if schema.get(_INT_OR_STRING):
        return  # upstream does not look at these
    node = Structural(schema)
    fitted = copy_tree(value)
    unknown: list[str] = []
    node.fit(fitted, "", unknown, defaults=False)
    if unknown:
        yield invalid_value(path, value, "must not have unknown fields")
    try:
        for document, place in embedded_objects(node, fitted, ""):
            read_embedded(document, place, [])  # of embedded metadata any field is taken
    except EmbeddedMisfit as misfit:
        yield StatusCause(misfit.cause.reason, misfit.cause.message, path + _below(misfit.cause.field))
        return
    causes = [*embedded_causes(node, fitted, ""), *node.validate(fitted, "")]
    if not causes and has_rules(schema):
        rules = compile_schema(schema).rules
        if rules is not None:
            causes = rules.check(fitted, fitted, ratchets=False)[0]
    for cause in causes:
        yield StatusCause(cause.reason, cause.message, path + _below(cause.field))


def _below(field: str) -> str:
    field = "" if field == "<nil>" else field.removeprefix(".")
    return f".{field}" if field else ""
