"""Content negotiation: what an Accept header asks for, and what a Content-Type says the body is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ctrlruntime.apiserver.registry import Resource
from ctrlruntime.errors import NotAcceptable, UnsupportedMediaType

Form: TypeAlias = Literal["object", "table", "metadata"]

_JSON_TYPES = frozenset({"application/json", "*/*"})
_PARAMETERS = re.compile(r"""\s*[\w-]+=(?:"[^"]*"|[^\s;"]+)(?:\s*;\s*[\w-]+=(?:"[^"]*"|[^\s;"]+))*\s*;?\s*""")
STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
"""Media types of a watch."""
_SUPPORTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One entry of an Accept header."""

    type: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Representation:
    """How the answer is to look: the view of the object, and JSON or YAML."""

    form: Form = "object"
    is_yaml: bool = False
    is_list_form: bool = False
    """The client asked for PartialObjectMetadataList, which fits only a list."""
    version: str = "meta.k8s.io/v1"
    """Of Table and PartialObjectMetadata."""


def media_ranges(accept: str) -> Iterator[MediaRange]:
    """Yield the entries, preferred first (by q, then by position)."""
    entries: list[tuple[float, MediaRange]] = []
    for part in accept.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        parameters = dict(pair.split("=", 1) for pair in rest if "=" in pair)
        parameters = {key.strip(): value.strip().strip('"') for key, value in parameters.items()}
        quality = parameters.pop("q", "1")
        try:
            entries.append((-float(quality), MediaRange(name.lower(), parameters)))
        except ValueError:
            entries.append((0.0, MediaRange(name.lower(), parameters)))
    for _, entry in sorted(entries, key=lambda item: item[0]):
        if entry.type:
            yield entry


@lru_cache(maxsize=256)
def negotiate(
    accept: str, *, is_collection: bool = False, is_custom: bool = False, has_tables: bool = True
) -> Representation:
    """Return the first representation in the Accept header that the server has. Raises: NotAcceptable.

    `has_tables` tells whether the resource can be shown as a Table.
    """
    if not accept:
        return Representation()
    saw_parameters = False
    for entry in media_ranges(accept):
        is_any = is_custom and entry.type == "application/*"  # to the router of built-in resources it is no type
        if not is_any and entry.type not in _JSON_TYPES and entry.type != "application/yaml":
            saw_parameters = saw_parameters or entry.type == "application/vnd.kubernetes.protobuf"
            continue
        form = _form(entry.parameters)
        if form is not None and (has_tables or form != "table"):
            is_list_form = entry.parameters.get("as", "").endswith("List")
            version = f"meta.k8s.io/{entry.parameters.get('v', 'v1')}"
            return Representation(form, entry.type == "application/yaml", is_list_form, version)
        saw_parameters = True
    if saw_parameters or is_custom:  # a built-in resource is refused by the router before
        raise NotAcceptable(f"only the following media types are accepted: {_SUPPORTED}")
    supported = f"{_SUPPORTED}, {STREAMS}" if is_collection else _SUPPORTED
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {supported}")


@lru_cache(maxsize=256)
def plain_form(accept: str) -> Literal["json", "yaml"] | None:
    """Return how a Status is written; None when the Accept header has nothing for it."""
    if not accept:
        return "json"
    for entry in media_ranges(accept):
        if "as" not in entry.parameters:
            if entry.type in _JSON_TYPES or entry.type == "application/vnd.kubernetes.protobuf":
                return "json"
            if entry.type == "application/yaml":
                return "yaml"
    return None


def go_type(resource: Resource, kind: str) -> str:
    """Return what messages call the type of a kind."""
    if resource.is_custom:
        return "*unstructured.UnstructuredList" if kind == resource.list_kind else "*unstructured.Unstructured"
    return f"*{resource.group.partition('.')[0] or 'core'}.{kind}"


def not_a_list(kind: str) -> NotAcceptable:
    """Return the failure of one who asks for the metadata of a list where there is one object of a Go type."""
    return NotAcceptable(f"you requested PartialObjectMetadataList, but the requested object is not a list ({kind})")


def _form(parameters: Mapping[str, str]) -> Form | None:
    wanted = parameters.get("as")
    if wanted is None:
        return "object"
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") not in {"v1", "v1beta1"}:
        return None
    match wanted:
        case "Table":
            return "table"
        case "PartialObjectMetadata" | "PartialObjectMetadataList":
            return "metadata"
        case _:
            return None


def body_type(content_type: str) -> Literal["json", "yaml", "protobuf"]:
    """Return how a body is written; none given means JSON. Raises: UnsupportedMediaType."""
    name, semicolon, parameters = content_type.partition(";")
    if semicolon and not _PARAMETERS.fullmatch(parameters):
        name = "malformed"
    match name.strip().lower():
        case "" | "application/json" | "*/*":
            return "json"
        case "application/yaml" | "text/yaml" | "application/x-yaml":
            return "yaml"
        case "application/vnd.kubernetes.protobuf":
            return "protobuf"
        case _:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: " + _SUPPORTED
            )


def patch_type(content_type: str, *, is_custom: bool) -> Literal["json", "merge", "strategic", "apply"]:
    """Return which kind of patch a body is. Raises: UnsupportedMediaType."""
    match content_type.partition(";")[0].strip():  # in capitals it is not a type, other than of other bodies
        case "application/json-patch+json":
            return "json"
        case "application/merge-patch+json":
            return "merge"
        case "application/strategic-merge-patch+json" if not is_custom:
            return "strategic"
        case "application/apply-patch+yaml":
            return "apply"
        case _ if is_custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            )
        case _:
            raise UnsupportedMediaType("415: Unsupported Media Type")
