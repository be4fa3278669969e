"""The types in a CRD that was read from a file: maps, lists and strings in their places.

The API server checks the values. With other types, no check would be possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

__all__ = ["misshapen"]

_Shape: TypeAlias = type[Any] | tuple[type[Any], ...]

_NUMBER: Final = (int, float)
_SAID: Final[Mapping[Any, str]] = {
    dict: "a map", list: "a list", str: "a string", bool: "true or false", _NUMBER: "a number",
}  # fmt: skip

_NAMES: Final[Mapping[str, _Shape]] = dict.fromkeys(("kind", "listKind", "plural", "singular"), str)
_VERSION: Final[Mapping[str, _Shape]] = {
    "name": str,
    "served": bool,
    "storage": bool,
    "deprecated": bool,
    "deprecationWarning": str,
    "schema": dict,
    "subresources": dict,
}
_SCHEMA: Final[Mapping[str, _Shape]] = {
    **dict.fromkeys(
        ("type", "format", "pattern", "title", "description", "x-kubernetes-list-type", "x-kubernetes-map-type"), str
    ),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
    **{f"{end}{what}": int for end in ("min", "max") for what in ("Length", "Items", "Properties")},
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "enum"), list),
    **dict.fromkeys(
        (
            "nullable",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ),
        bool,
    ),
    "properties": dict,
    "externalDocs": dict,
}
_RULE: Final[Mapping[str, _Shape]] = {
    **dict.fromkeys(("rule", "message", "messageExpression", "reason", "fieldPath"), str),
    "optionalOldSelf": bool,
}
_COLUMN: Final[Mapping[str, _Shape]] = {
    **dict.fromkeys(("name", "type", "format", "description", "jsonPath"), str),
    "priority": int,
}
_LINK: Final[Mapping[str, _Shape]] = dict.fromkeys(("url", "description"), str)
_SCALE: Final[Mapping[str, _Shape]] = dict.fromkeys(
    ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), str
)
_VALUES: Final = ("default", "example")
_DEEPEST: Final = 100
"""Levels of a schema; the API server's own are some thirty."""
_LISTS_OF_NODES: Final = ("allOf", "anyOf", "oneOf")
_NODES: Final = ("items", "not")


def misshapen(definition: Mapping[str, Any]) -> str:
    """Return what has another shape than the API gives it, with its path; empty when nothing has."""
    return next((problem for part in (_metadata, _spec) for problem in part(definition)), "")


def _metadata(definition: Mapping[str, Any]) -> Iterator[str]:
    metadata: Mapping[str, Any] = definition["metadata"]
    yield from _are(metadata, {"name": str, "labels": dict, "annotations": dict}, "metadata")
    for word in ("labels", "annotations"):
        yield from _texts(metadata.get(word, {}), f"metadata.{word}")


def _spec(definition: Mapping[str, Any]) -> Iterator[str]:
    spec: Mapping[str, Any] = definition["spec"]
    yield from _are(spec, {"group": str, "scope": str, "names": dict, "conversion": dict, "versions": list}, "spec")
    yield from _are(spec["names"], _NAMES, "spec.names")
    yield from _lists(spec["names"], ("categories", "shortNames"), str, "spec.names")
    for index, version in enumerate(spec["versions"]):
        yield from _version(version, f"spec.versions[{index}]")


def _version(version: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _are(version, _VERSION, path)
    yield from _lists(version, ("additionalPrinterColumns", "selectableFields"), dict, path)
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        yield from _are(column, _COLUMN, f"{path}.additionalPrinterColumns[{index}]")
    for index, selectable in enumerate(version.get("selectableFields", ())):
        at = f"{path}.selectableFields[{index}]"
        yield from () if "jsonPath" in selectable else (f"{at} has no jsonPath",)
        yield from _are(selectable, {"jsonPath": str}, at)
    subresources: Mapping[str, Any] = version.get("subresources", {})
    yield from _are(subresources, {"status": dict, "scale": dict}, f"{path}.subresources")
    yield from _are(subresources.get("scale", {}), _SCALE, f"{path}.subresources.scale")
    schema: Mapping[str, Any] = version.get("schema", {})
    if "openAPIV3Schema" in schema:
        yield from _node(schema["openAPIV3Schema"], f"{path}.schema.openAPIV3Schema")


def _node(node: Any, path: str, depth: int = 0) -> Iterator[str]:
    yield from _is(node, dict, path)
    if depth > _DEEPEST:
        yield f"{path[:80]}… is more than {_DEEPEST} levels deep"
    schema = cast("Mapping[str, Any]", node)
    yield from _are(schema, _SCHEMA, path)
    yield from _lists(schema, ("required", "x-kubernetes-list-map-keys"), str, path)
    yield from _lists(schema, ("x-kubernetes-validations",), dict, path)
    for index, rule in enumerate(schema.get("x-kubernetes-validations", ())):
        yield from _are(rule, _RULE, f"{path}.x-kubernetes-validations[{index}]")
    yield from _are(schema.get("externalDocs", {}), _LINK, f"{path}.externalDocs")
    for word in _VALUES:
        yield from _json(schema.get(word), f"{path}.{word}")
    for index, value in enumerate(schema.get("enum", ())):
        yield from _json(value, f"{path}.enum[{index}]")
    for name, child in schema.get("properties", {}).items():
        yield from _is(name, str, f"{path}.properties: the name {name!r}")
        yield from _node(child, f"{path}.properties.{name}", depth + 1)
    for word in _NODES:
        if word in schema:
            yield from _node(schema[word], f"{path}.{word}", depth + 1)
    for word in _LISTS_OF_NODES:
        for index, child in enumerate(schema.get(word, ())):
            yield from _node(child, f"{path}.{word}[{index}]", depth + 1)
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield from _node(schema["additionalProperties"], f"{path}.additionalProperties", depth + 1)


def _json(value: Any, path: str, depth: int = 0) -> Iterator[str]:
    """Whatever stands there has to be JSON: YAML has times, bytes, sets and keys of other types, too."""
    if depth > _DEEPEST:
        yield f"{path[:80]}… is more than {_DEEPEST} levels deep"
        return
    match value:
        case dict():
            for key, one in value.items():
                yield from _is(key, str, f"{path}: the key {key!r}")
                yield from _json(one, f"{path}.{key}", depth + 1)
        case list():
            for index, one in enumerate(value):
                yield from _json(one, f"{path}[{index}]", depth + 1)
        case int() if not -(2**63) <= value < 2**64:
            yield f"{path} has more than 64 bits"
        case float() if not math.isfinite(value):
            yield f"{path} is {value}, which is not a JSON number"
        case None | str() | bool() | int() | float():
            pass
        case _:
            yield f"{path} is a {type(value).__name__}, which is not a JSON type. Write it in quotes"


def _texts(tree: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in tree.items():
        yield from _is(key, str, f"{path}: the key {key!r}")
        yield from _is(value, str, f"{path}.{key}")


def _are(tree: Mapping[str, Any], shapes: Mapping[str, _Shape], path: str) -> Iterator[str]:
    for word, shape in shapes.items():
        if word in tree:
            yield from _is(tree[word], shape, f"{path}.{word}")


def _lists(tree: Mapping[str, Any], words: Iterable[str], shape: _Shape, path: str) -> Iterator[str]:
    for word in words:
        values: list[Any] = tree.get(word, [])
        yield from _is(values, list, f"{path}.{word}")
        for index, value in enumerate(values):
            yield from _is(value, shape, f"{path}.{word}[{index}]")


def _is(value: Any, shape: _Shape, path: str) -> Iterator[str]:
    # A bool is not a number here.
    if not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        yield f"{path} must be {_SAID.get(shape, 'an integer')}"
