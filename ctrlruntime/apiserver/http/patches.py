"""Patches that are merged: JSON patches, merge patches and strategic merge patches, from the body to the patched object.

The rules are those of apiserver's pkg/endpoints/handlers/patch.go. What a patch says of itself is judged when it is read, its result when an
object of the kind is read from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.discovery.openapi import patch_schema
from ctrlruntime.apiserver.encoding import as_written, decode_body, duplicate_fields
from ctrlruntime.apiserver.go_json import NumberError, Struct, check_list, read_head
from ctrlruntime.apiserver.go_values import go_name, go_text
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.negotiation import patch_type
from ctrlruntime.apiserver.http.patch_tests import check_tests
from ctrlruntime.apiserver.registry import Resource, WriteOptions
from ctrlruntime.apiserver.registry.scheme import problem_of
from ctrlruntime.apiserver.strategic_patch import PatchSchema, restored, strategic_merge
from ctrlruntime.errors import (
    APIStatusError,
    BadRequest,
    Invalid,
    PatchError,
    RequestEntityTooLarge,
    StatusCause,
    UnsupportedMediaType,
)
from ctrlruntime.patch import apply_json_patch, apply_merge_patch, item_at
from ctrlruntime.schema.trees import Document, copy_tree, encode_sorted, in_key_order
from ctrlruntime.schema.undecodable import Undecodable

_LARGEST_PATCH: Final = 10_000
_LARGEST_COPY: Final = 3 * 1024 * 1024
_DECODING: Final = "error decoding patch: "
_NOT_A_PATCH: Final = "Invalid JSON Patch"
_KNOWN: Final = Struct(
    "jsonPatchOp",
    "handlers.jsonPatchOp",
    {"op": "string", "path": "string", "from": "string"},
    is_exact=True,
)
"""An operation when its fields are judged."""
_ANY: Final = Struct("Operation", "jsonpatch.Operation", {})
"""An operation when they are not."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch that has been read."""

    form: str
    """`json`, `merge` or `strategic`."""
    tree: Any
    body: bytes
    beyond: NumberError | None
    _apply: Callable[[Document], Any]

    def apply(self, old: Document) -> Document:
        """Return the object with the patch applied. Raises: Invalid when it does not apply, Undecodable."""
        try:
            document = self._apply(old)
        except PatchError:
            raise Invalid("the server rejected our request due to an error in our request") from None
        if not isinstance(document, dict):
            return _headed(document)
        found: Document = document
        if found.get("metadata") is None:
            found["metadata"] = {}
        return found

    def rejected(self, resource: Resource, old: Document, error: Undecodable) -> APIStatusError:
        """Return the error for a patch whose result no object of the kind can hold: the patch is rejected, and not the object."""
        if self.form == "strategic":
            if error.is_conversion:
                return failures.plain_internal(error.why)
            cause = field_errors.invalid_value("patch", go_text(self.tree), restored(error.converted))
            return failures.invalid("", "", "", [cause])
        document = self._apply(old)
        why = error.why
        if isinstance(document, dict) and not (resource.is_custom and self.beyond):
            document = self.in_order(document)
            try:
                _check_head(resource, document, old, self.form)
                resource.fit({**document, "metadata": document.get("metadata") or {}}, [])
            except Undecodable as first:
                why = first.why
        cause = field_errors.invalid_value("patch", _shown(document), as_written(why, self.body))
        return failures.invalid("", "", "", [cause])

    def in_order(self, document: Document) -> Document:
        """Return the result of a patch as upstream reads it: the maps that the patch goes into have their keys in order."""
        if self.form != "json":
            return {key: in_key_order(document[key]) for key in sorted(document)}
        ordered: set[int] = {id(document)}
        replaced: set[str] = set()  # what an operation goes into before another replaces it, is gone
        for operation in reversed(self.tree):
            for path in (operation.get("path"), operation.get("from")):
                if not isinstance(path, str):
                    continue
                node: Any = document
                place = ""
                for key in path.split("/")[1:]:
                    ordered.add(id(node))
                    node, place = item_at(node, key), f"{place}/{key}"
                    if place in replaced:
                        break
                if operation.get("op") == "test":
                    ordered.update(map(id, _nodes(node)))
            replaced.add(str(operation.get("path")))
        return _sorted_map(document, ordered)


def _sorted_map(tree: Document, only: Collection[int]) -> Document:
    """Return the tree with the keys of some of its maps in order."""
    keys = sorted(tree) if id(tree) in only else tree
    return {key: _sorted(tree[key], only) for key in keys}


def _sorted(tree: Any, only: Collection[int]) -> Any:
    if isinstance(tree, list):
        return [_sorted(item, only) for item in tree]
    return _sorted_map(tree, only) if isinstance(tree, dict) else tree


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(item)


def _shown(document: Any) -> str:
    """Return a document as JSON, as it stands in a message."""
    return json.dumps(document, default=str, ensure_ascii=False, separators=(",", ":"))


def read_patch(call: Call, options: WriteOptions, group: str, version: str, kind: str, *, is_custom: bool) -> Patch:
    """Return the patch of a request to an object of a kind; what strict validation refuses of it is left in the options.

    Raises: BadRequest, RequestEntityTooLarge, UnsupportedMediaType.
    """
    form = patch_type(call.headers.get("Content-Type", ""), is_custom=is_custom)
    is_judged = options.field_validation != "Ignore"
    prefix = "" if form == "strategic" or (form == "json" and not is_judged) else _DECODING
    beyond: NumberError | None = None
    try:
        patch: Any = decode_body(call.body)
    except NumberError as error:
        patch, beyond = error.tree, error
    except ValueError as error:
        raise BadRequest(_NOT_A_PATCH if form == "merge" and not is_judged else f"{prefix}{error}") from None
    if is_judged:
        options.duplicates = [f'duplicate field "{path}"' for path in duplicate_fields(call.body, patch)]
    if form == "json":
        operations = _operations(patch, options, beyond) if is_judged else _unjudged(patch)

        def changed(old: Document) -> Any:
            check_tests(old, operations, call.body)
            return apply_json_patch(old, operations, copy_limit=_LARGEST_COPY)

        return Patch(form, operations, call.body, beyond, changed)
    if beyond is not None and (is_judged or form == "strategic"):
        raise BadRequest(f"{prefix}{beyond}")
    if patch is None and form == "strategic":
        patch = {}
    if not isinstance(patch, dict):
        if patch is None or (not is_judged and form == "merge" and not isinstance(patch, list)):
            raise BadRequest(_NOT_A_PATCH)
        if is_judged or form == "strategic":
            text = f"json: cannot unmarshal {go_name(patch)} into Go value of type map[string]interface {{}}"
            raise BadRequest(f"{prefix}{text}")
        return Patch(form, patch, call.body, beyond, lambda old: apply_merge_patch(None, patch))  # noqa: ARG005 - a list is what comes of it
    body: Document = patch
    if form == "merge":
        return Patch(form, patch, call.body, beyond, lambda old: _copied(apply_merge_patch(old, body), beyond))
    schema = PatchSchema({}, {}) if kind == "Scale" else patch_schema(group, version, kind)
    if schema is None:
        raise UnsupportedMediaType("415: Unsupported Media Type")
    return Patch(
        form, patch, call.body, beyond, lambda old: _checked_metadata(copy_tree(strategic_merge(old, body, schema)))
    )


def patched(resource: Resource, patch: Patch, old: Document) -> Document:
    """Return the object with a patch applied, still of its kind. Raises: Undecodable, Invalid."""
    document = patch.apply(old)
    if resource.is_custom and patch.beyond is not None:
        raise Undecodable(str(patch.beyond))
    _check_head(resource, document, old, patch.form)
    return document


def _operations(patch: Any, options: WriteOptions, beyond: NumberError | None) -> list[Document]:
    """Return the operations of a JSON patch whose fields are judged. Raises: BadRequest, RequestEntityTooLarge."""
    try:
        operations = check_list(patch, _KNOWN, "[]handlers.jsonPatchOp")
    except ValueError as error:
        raise BadRequest(f"{_DECODING}{error}") from None
    if beyond is not None:
        raise BadRequest(f"{_DECODING}{str(beyond).replace('Go value', 'Go struct field jsonPatchOp.value')}")
    options.duplicates += [
        f'unknown field "[{index}].{key}"'
        for index, operation in enumerate(operations)
        for key in operation
        if key not in _KNOWN.fields and key != "value"
    ]
    options.duplicates = [f"json patch {text}" for text in options.duplicates]
    return _few(operations)


def _unjudged(patch: Any) -> list[Document]:
    try:
        return _few(check_list(patch, _ANY, "jsonpatch.Patch"))
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _few(operations: list[Document]) -> list[Document]:
    if len(operations) > _LARGEST_PATCH:
        text = f"The allowed maximum operations in a JSON patch is {_LARGEST_PATCH}, got {len(operations)}"
        raise RequestEntityTooLarge(f"Request entity too large: {text}")
    return operations


def _copied(document: Any, beyond: NumberError | None) -> Any:
    """Return a copy that shares nothing, also of a tree with a number that only a message can show."""
    return copy_tree(document) if beyond is None else deepcopy(document)


def _headed(document: Any) -> Document:
    """Return a tree that says what it is. Raises: Undecodable."""
    try:
        read_head(document)
    except ValueError as error:
        raise Undecodable(str(error)) from None
    found: Document = document
    return found


def _checked_metadata(document: Document) -> Document:
    metadata: Any = document.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise Undecodable(
            f"json: cannot unmarshal {go_name(metadata)} into Go struct field .metadata of type v1.ObjectMeta"
        )
    return document


def _check_head(resource: Resource, document: Document, old: Document, form: str) -> None:
    """Refuse a patch that makes another kind of object; a built-in object gets its head back where the patch took it away."""
    if form != "strategic":
        _headed(document)
    kind, version = str(document.get("kind") or ""), str(document.get("apiVersion") or "")
    if (kind, version) == (resource.kind, resource.api_version):
        return
    if not resource.is_custom:
        if form != "strategic" and (
            why := problem_of(version or resource.api_version, kind or resource.kind, document, resource)
        ):
            raise Undecodable(why)
        document["kind"], document["apiVersion"] = resource.kind, resource.api_version
        return
    if not kind:
        raise Undecodable(f"Object 'Kind' is missing in '{encode_sorted(document).decode()}'")
    causes: list[StatusCause] = []
    if kind != resource.kind:
        causes.append(field_errors.invalid_value("kind", kind, f"must be {resource.kind}"))
    if version != resource.api_version:
        causes.append(field_errors.invalid_value("apiVersion", version, f"must be {resource.api_version}"))
    raise failures.invalid(kind, version.rpartition("/")[0], old["metadata"]["name"], causes)


__all__ = ["Patch", "patched", "read_patch"]
