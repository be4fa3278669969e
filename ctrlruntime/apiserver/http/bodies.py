"""Request bodies as trees, checked against the kind that the path names."""

from __future__ import annotations

from typing import Any

import msgspec

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import decode, decode_yaml, duplicate_fields
from ctrlruntime.apiserver.http import protobuf
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import body_type
from ctrlruntime.apiserver.interfaces import Document
from ctrlruntime.apiserver.registry import Resource, WriteOptions
from ctrlruntime.errors import BadRequest, StatusCause, UnsupportedMediaType


def read_object(
    call: Call, resource: Resource, options: WriteOptions, *, kind: str = "", api_version: str = ""
) -> Document:
    """Return the body as an object of the resource (or of `kind`, for subresources with a kind of their own). Raises: BadRequest…"""
    kind = kind or resource.kind
    api_version = api_version or resource.api_version
    document = read_tree(call, kind, is_custom=resource.is_custom and kind == resource.kind, options=options)
    given_kind, given_version = document.get("kind"), document.get("apiVersion")
    if resource.is_custom and kind == resource.kind:
        if not given_kind:
            shown = call.body.decode("utf-8", "replace").strip()
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{shown}' ({shown})"
            )
        if given_version != api_version:
            raise BadRequest(
                f"the API version in the data ({given_version or ''}) does not match the expected API version ({api_version})"
            )
        if given_kind != kind:
            cause = StatusCause("FieldValueInvalid", f'Invalid value: "{given_kind}": must be {kind}', "kind")
            name = str((document.get("metadata") or {}).get("name", ""))
            raise failures.invalid(kind, resource.group, name, [cause])
        return document
    if given_version and given_version != api_version:
        shown = given_version.rpartition("/")[2]
        raise BadRequest(
            f'{given_kind or kind} in version "{shown}" cannot be handled as a {kind}: no kind "{given_kind or kind}" is '
            f'registered for version "{given_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if given_kind and given_kind != kind:
        version = api_version.rpartition("/")[2]
        internal = resource.group.partition(".")[0] or "core"
        raise BadRequest(
            f'{given_kind} in version "{version}" cannot be handled as a {kind}: converting ({version}.{given_kind}) to '
            f"({internal}.{kind}): unknown conversion"
        )
    document["kind"], document["apiVersion"] = kind, api_version
    return document


def read_tree(call: Call, kind: str, *, is_custom: bool = False, options: WriteOptions | None = None) -> Document:
    """Return the body as a JSON object, whatever it is written in. Raises: BadRequest, UnsupportedMediaType."""
    form = body_type(call.headers.get("Content-Type", ""))
    try:
        tree = _parse(call, form, is_custom)
    except (ValueError, msgspec.DecodeError) as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error}"
        ) from None
    if not isinstance(tree, dict):
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: "
            "json: cannot unmarshal into Go value of type struct"
        )
    if options is not None and form == "json" and options.field_validation != "Ignore":
        options.duplicates = duplicate_fields(call.body, tree)
    return tree


def _parse(call: Call, form: str, is_custom: bool) -> Any:
    if form == "protobuf":
        if is_custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json, "
                "application/yaml"
            )
        return protobuf.decode(call.body)
    if not call.body.strip():
        return {}
    return decode_yaml(call.body) if form == "yaml" else decode(call.body)
