"""OpenAPI v2: one document of all kinds, made from those of v3 when it is first asked for.

kubectl reads it for a `List`, whose items it validates itself, for a kind that no document of v3 has, and for `explain` in its old form.
For that it needs the definitions, and of the paths the PATCH operations; the other operations are left out.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ctrlruntime.apiserver.discovery.openapi import OpenAPI, recorded
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.apiserver.registry import Registry
from ctrlruntime.schema.trees import Document, encode

PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_REFERENCE: Final = "#/components/schemas/"
_EITHER: Final[Mapping[str, Document]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
}
"""Definitions of v3 that are one type or another, of which v2 knows nothing."""
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_OF_OBJECTS: Final[Mapping[str, Document]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"{_REFERENCE}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
}
"""What every object has, and an object inside of another, too."""
_DROPPED: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default", "discriminator"})


@dataclass(frozen=True, slots=True)
class _Part:
    """Definitions and paths of some kinds, as a tree and in protobuf."""

    definitions: Document
    paths: Document
    binary: bytes


class OpenAPIv2:
    """The document as bytes, made again when a definition changes."""

    def __init__(self, registry: Registry, documents: OpenAPI) -> None:
        self._registry = registry
        self._documents = documents
        self._generation = -1
        self._bodies: dict[bool, bytes] = {}
        self._custom = _part([])

    def document(self, *, is_protobuf: bool) -> tuple[bytes, str]:
        """Return (body, tag); both forms have the same tag."""
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._bodies = {}
            self._custom = _part([decode(body) for body in self._documents.generated().values()])
        body = self._bodies.get(is_protobuf)
        if body is None:
            body = self._bodies[is_protobuf] = self._binary() if is_protobuf else self._text()
        tag = hashlib.sha512(_built_in().binary)
        tag.update(self._custom.binary)
        return body, tag.hexdigest().upper()

    def _text(self) -> bytes:
        own, custom = _built_in(), self._custom
        return encode(
            {
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": "1.36"},
                "paths": {**own.paths, **custom.paths},
                "definitions": {**own.definitions, **custom.definitions},
            }
        )

    def _binary(self) -> bytes:
        head = _text(1, "2.0") + _bytes(2, _text(1, "Kubernetes") + _text(2, "1.36"))
        # A message that comes twice is merged, so the parts need not be put together.
        return head + _built_in().binary + self._custom.binary


@cache
def _built_in() -> _Part:
    return _part([decode(body) for body in recorded().values()])


def _part(documents: list[Document]) -> _Part:
    definitions: Document = {}
    paths: Document = {}
    for document in documents:
        for name, schema in ((document.get("components") or {}).get("schemas") or {}).items():
            if name not in definitions:
                definitions[name] = _EITHER.get(name) or _definition(schema)
        for path, item in document.get("paths", {}).items():
            if "patch" in item:
                paths[path] = {"patch": _operation(item["patch"])}
    named = b"".join(_named(1, name, _schema_message(schema)) for name, schema in definitions.items())
    patches = b"".join(_named(2, path, _bytes(8, _operation_message(item["patch"]))) for path, item in paths.items())
    return _Part(definitions, paths, _bytes(8, patches) + _bytes(9, named))


# From v3 to v2


def _definition(schema: Document) -> Document:
    """The schema of a kind: one that keeps unknown fields has no properties, or kubectl would refuse what is not among them."""
    if schema.get(_UNKNOWN):
        kinds = "x-kubernetes-group-version-kind"
        return {"type": "object", **({kinds: schema[kinds]} if kinds in schema else {})}
    return _schema(schema)


def _schema(schema: Document) -> Document:
    """A schema in what v2 knows (ToStructuralOpenAPIV2 in apiextensions-apiserver's controller/openapi/v2/conversion.go)."""
    parts: list[Document] = schema.get("allOf") or []
    reference = schema.get("$ref") or (parts[0].get("$ref") if len(parts) == 1 else None)
    if reference is not None:
        about = {"description": schema["description"]} if "description" in schema else {}
        extensions = {name: value for name, value in schema.items() if name.startswith("x-")}
        return {**about, **extensions, "$ref": reference.replace(_REFERENCE, "#/definitions/")}
    found = {name: value for name, value in schema.items() if name not in _DROPPED}
    is_nullable, keeps_unknown = bool(schema.get("nullable")), bool(schema.get(_UNKNOWN))
    if is_nullable or keeps_unknown:
        found.pop("items", None)
        found.pop("properties", None)
    if is_nullable or (keeps_unknown and found.get("type") == "object"):
        found.pop("type", None)
    if "items" in found:
        found["items"] = _schema(found["items"])
    elif found.get("type") == "array":
        found.pop("type", None)
    if isinstance(found.get("additionalProperties"), dict):
        found["additionalProperties"] = _schema(found["additionalProperties"])
    properties: Document = found.get("properties") or {}
    if properties:
        required = [name for name in found.pop("required", ()) if not (properties.get(name) or {}).get("nullable")]
        if schema.get("x-kubernetes-embedded-resource"):
            properties = {**_OF_OBJECTS, **properties, "metadata": _OF_OBJECTS["metadata"]}
            required += [name for name in ("kind", "apiVersion") if name not in required]
        if required:
            found["required"] = required
        found["properties"] = {name: _schema(each) for name, each in properties.items()}
    return found


def _operation(operation: Document) -> Document:
    listed = [
        {"name": each["name"], "in": each["in"], **each.get("schema", {})} for each in operation.get("parameters", ())
    ]
    types = list((operation.get("requestBody") or {}).get("content", ()))
    extensions = {name: value for name, value in operation.items() if name.startswith("x-")}
    return {
        "operationId": operation["operationId"],
        "consumes": types,
        "produces": ["application/json", "application/yaml"],
        "parameters": [{"name": "body", "in": "body", "required": True, "schema": _PATCH}, *listed],
        "responses": {"200": {"description": "OK"}},
        **extensions,
    }


_PATCH: Final = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}


# From v2 to protobuf. The numbers are those of gnostic's OpenAPIv2.proto.

_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_WHOLE: Final = {
    "exclusiveMaximum": 8,
    "exclusiveMinimum": 10,
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "uniqueItems": 16,
    "maxProperties": 17,
    "minProperties": 18,
}


def _schema_message(schema: Document) -> bytes:
    return b"".join(_schema_fields(schema))


def _schema_fields(schema: Document) -> Iterator[bytes]:
    for name, value in schema.items():
        if name in _TEXTS:
            yield _text(_TEXTS[name], str(value))
        elif name in _DOUBLES:
            yield _varint(_DOUBLES[name] << 3 | 1) + struct.pack("<d", value)
        elif name in _WHOLE:
            yield _number(_WHOLE[name], int(value))
        elif name.startswith("x-"):
            yield _extension(31, name, value)
        else:
            yield from _nested_fields(name, value)


def _nested_fields(name: str, value: Any) -> Iterator[bytes]:
    match name:
        case "required":
            yield from (_text(19, each) for each in value)
        case "enum":
            yield from (_bytes(20, _any(each)) for each in value)
        case "additionalProperties":
            yield _bytes(21, _bytes(1, _schema_message(value)) if isinstance(value, dict) else _number(2, int(value)))
        case "type":
            yield _bytes(22, _text(1, value))
        case "items":
            yield _bytes(23, _bytes(1, _schema_message(value)))
        case "properties":
            yield _bytes(25, b"".join(_named(1, each, _schema_message(schema)) for each, schema in value.items()))
        case "example":
            yield _bytes(30, _any(value))
        case _:
            pass


def _operation_message(operation: Document) -> bytes:
    parts = [_text(5, operation["operationId"])]
    parts += [_text(6, each) for each in operation["produces"]] + [_text(7, each) for each in operation["consumes"]]
    parts += [_bytes(8, _bytes(1, _parameter(each))) for each in operation["parameters"]]
    parts.append(_bytes(9, _named(1, "200", _bytes(1, _text(1, "OK")))))
    parts += [_extension(13, name, value) for name, value in operation.items() if name.startswith("x-")]
    return b"".join(parts)


def _parameter(parameter: Document) -> bytes:
    if parameter["in"] == "body":
        body = _text(2, "body") + _text(3, "body") + _number(4, 1)
        return _bytes(1, body + _bytes(5, _bytes(1, _schema_message(parameter["schema"]))))
    query = _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter.get("type", "string"))
    return _bytes(2, _bytes(3, query + _number(20, int(parameter.get("uniqueItems", False)))))


def _named(number: int, name: str, value: bytes) -> bytes:
    return _bytes(number, _text(1, name) + _bytes(2, value))


def _extension(number: int, name: str, value: Any) -> bytes:
    return _named(number, name, _any(value))


def _any(value: Any) -> bytes:
    """A value as YAML; JSON is YAML."""
    return _text(2, json.dumps(value))


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    digits = bytearray()
    value &= 2**64 - 1
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)
