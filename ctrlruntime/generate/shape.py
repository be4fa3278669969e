"""The shape of a definition that was read from a file: maps where maps belong, lists of texts where these do.

What the values say is for the API server to judge; with another shape nothing could be said of them at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, cast

__all__ = ["misshapen"]

_Shape: TypeAlias = type[Any] | tuple[type[Any], ...]

_NUMBER: Final = (int, float)
_SAID: Final[Mapping[Any, str]] = {
    dict: "a map", list: "a list", str: "a text", bool: "true or false", _NUMBER: "a number",
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
        ("type", "format", "pattern", "description", "x-kubernetes-list-type", "x-kubernetes-map-type"), str
    ),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
    **{f"{end}{what}": int for end in ("min", "max") for what in ("Length", "Items", "Properties")},
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "enum"), list),
    "properties": dict,
}
_LISTS_OF_NODES: Final = ("allOf", "anyOf", "oneOf")
_NODES: Final = ("items", "not")


def misshapen(spec: Mapping[str, Any]) -> str:
    """Return what has another shape than the API gives it, with its path; empty when nothing has."""
    return next(_spec(spec), "")


def _spec(spec: Mapping[str, Any]) -> Iterator[str]:
    yield from _are(spec, {"group": str, "scope": str, "names": dict, "conversion": dict, "versions": list}, "spec")
    yield from _are(spec["names"], _NAMES, "spec.names")
    yield from _lists(spec["names"], ("categories", "shortNames"), str, "spec.names")
    for index, version in enumerate(spec["versions"]):
        yield from _version(version, f"spec.versions[{index}]")


def _version(version: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _are(version, _VERSION, path)
    yield from _lists(version, ("additionalPrinterColumns", "selectableFields"), dict, path)
    yield from _are(version.get("subresources", {}), {"status": dict, "scale": dict}, f"{path}.subresources")
    schema: Mapping[str, Any] = version.get("schema", {})
    if "openAPIV3Schema" in schema:
        yield from _node(schema["openAPIV3Schema"], f"{path}.schema.openAPIV3Schema")


def _node(node: Any, path: str) -> Iterator[str]:
    yield from _is(node, dict, path)
    schema = cast("Mapping[str, Any]", node)
    yield from _are(schema, _SCHEMA, path)
    yield from _lists(schema, ("required", "x-kubernetes-list-map-keys"), str, path)
    yield from _lists(schema, ("x-kubernetes-validations",), dict, path)
    for name, child in schema.get("properties", {}).items():
        yield from _node(child, f"{path}.properties.{name}")
    for word in _NODES:
        if word in schema:
            yield from _node(schema[word], f"{path}.{word}")
    for word in _LISTS_OF_NODES:
        for index, child in enumerate(schema.get(word, ())):
            yield from _node(child, f"{path}.{word}[{index}]")
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield from _node(schema["additionalProperties"], f"{path}.additionalProperties")


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
    # A bool is no number here.
    if not isinstance(value, shape) or (isinstance(value, bool) and shape is not bool):
        yield f"{path} has to be {_SAID.get(shape, 'a whole number')}"
