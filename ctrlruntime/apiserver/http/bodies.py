"""Request bodies as trees, checked against the kind that the path names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import decode_body, duplicate_fields
from ctrlruntime.apiserver.go_json import END, NO_HEAD, NumberError, read_head
from ctrlruntime.apiserver.http import protobuf
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import body_type
from ctrlruntime.apiserver.registry import Resource, WriteOptions
from ctrlruntime.apiserver.registry.reading import judge_fields
from ctrlruntime.apiserver.registry.scheme import problem_of
from ctrlruntime.apiserver.yaml_reader import YAMLProblem, read_yaml
from ctrlruntime.errors import BadRequest, StatusCause, UnsupportedMediaType
from ctrlruntime.schema.trees import Document, in_key_order
from ctrlruntime.schema.undecodable import undecodable

_SHOWN = 30
_REVIEWED = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


def read_object(call: Call, resource: Resource, options: WriteOptions, *, also: Collection[str] = ()) -> Document:
    """Return the body as an object of the resource; `also` are versions that count as its own. Raises: BadRequest…"""
    kind, api_version = resource.kind, resource.api_version
    document = read_tree(call, kind, is_custom=resource.is_custom, options=options)
    given_kind, given_version = document.get("kind"), document.get("apiVersion")
    if resource.is_custom:
        if not given_kind:
            shown = call.body.decode("utf-8", "replace").strip()
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{shown}' "
                f"({_summary(call.body)})"
            )
        if given_version != api_version:
            raise BadRequest(_other_version(given_version, api_version))
        if given_kind != kind:
            cause = StatusCause("FieldValueInvalid", f'Invalid value: "{given_kind}": must be {kind}', "kind")
            name = str((document.get("metadata") or {}).get("name", ""))
            raise failures.invalid(str(given_kind), resource.group, name, [cause])
        return document
    if given_version in {"/", f"/{api_version}", *also}:  # ParseGroupVersion takes the first two
        given_version = None
    version = (given_version or api_version).rpartition("/")[2]
    if not version:
        shown = call.body.decode("utf-8", "replace")
        raise undecodable(kind, "", f"Object 'apiVersion' is missing in '{shown}'")
    given = (given_version or api_version, given_kind or kind)
    if given == (api_version, kind):
        document["kind"], document["apiVersion"] = kind, api_version
        return document
    if (
        resource.group in _REVIEWED and given_version == "v1" and kind.endswith("Review")
    ):  # a decoder of all kinds reads them
        problem = f"converting (v1.{given[1]}) to ({resource.group.partition('.')[0]}.{kind}): unknown conversion"
    else:
        problem = problem_of(*given, document, resource)
    if problem:
        raise BadRequest(f'{given[1]} in version "{version}" cannot be handled as a {kind}: {problem}')
    raise BadRequest(_other_version(given_version, api_version))


def _other_version(given: object, expected: str) -> str:
    return f"the API version in the data ({given or ''}) does not match the expected API version ({expected})"


def _summary(body: bytes) -> str:
    """Return the beginning of a body as upstream's messages show it: JSON as it stands, anything else in hex."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > _SHOWN else ""
    text = body[:_SHOWN].decode("utf-8", "replace") if body[:1] == b"{" else body[:_SHOWN].hex()
    return text + more


def read_fitted(call: Call, resource: Resource, options: WriteOptions, *, also: Collection[str] = ()) -> Document:
    """Return the body as the resource's own type holds it; for kinds that are answered and never stored. Raises: BadRequest…"""
    unknown: list[str] = []
    given = read_object(call, resource, options, also=also)
    document = resource.fit(given, unknown)
    judge_fields(resource, given, unknown, options)
    return document


def read_tree(call: Call, kind: str, *, is_custom: bool = False, options: WriteOptions | None = None) -> Document:
    """Return the body as a JSON object, whatever it is written in. Raises: BadRequest, UnsupportedMediaType."""
    form = body_type(call.headers.get("Content-Type", ""))
    try:
        tree, repeated = parse_body(call, form, is_custom=is_custom)
    except NumberError as error:
        assert call.target is not None
        raise undecodable(kind, call.target.version, str(error)) from None
    except ValueError as error:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): {error} ({_summary(call.body)})"
        ) from None
    if options is not None and options.field_validation != "Ignore":
        if form == "json":
            options.duplicates = [f'duplicate field "{path}"' for path in duplicate_fields(call.body, tree)]
        elif repeated and options.field_validation == "Strict":
            listed = "".join(f"\n  {line}" for line in repeated)
            options.duplicates = [f"yaml: unmarshal errors:{listed}"]
        else:
            options.duplicates = list(repeated)
    return tree


def parse_body(call: Call, form: str, *, is_custom: bool = False) -> tuple[Document, list[str]]:
    """Return the tree of a body that says what it is, and the lines of YAML that give a key again.

    Raises:
        ValueError: the body cannot be read; the message is that of the decoder.
        NumberError: a custom resource has a number that is larger than any.
        UnsupportedMediaType: a custom resource is written as protobuf.

    """
    try:
        tree, repeated = _parse(call, form, is_custom)
    except NumberError as error:
        if is_custom:
            raise
        tree, repeated = error.tree, []
    except (protobuf.PrefixError, YAMLProblem):
        raise
    except ValueError as error:
        raise ValueError(f"{NO_HEAD}: {error}") from None
    read_head(tree)
    return tree or {}, repeated


def _parse(call: Call, form: str, is_custom: bool) -> tuple[Any, list[str]]:
    """Return the tree, and the lines of a YAML body that give a key again."""
    if form == "protobuf":
        if is_custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: application/json, "
                "application/yaml"
            )
        return protobuf.decode(call.body), []
    if form == "yaml":
        if not call.body.strip():
            return {}, []
        tree, repeated = read_yaml(call.body)
        return in_key_order(tree), repeated  # upstream makes JSON of it, and of a map its keys in order
    if not call.body.strip():
        if call.method == "DELETE":
            return {}, []
        raise ValueError(END)
    return decode_body(call.body), []
