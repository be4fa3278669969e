"""The annotation of client-side apply: read when kubectl moves to server-side apply, and kept current so that it can move back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, difference, encode_value
from ctrlruntime.apiserver.apply.merge import compare_fields, named_fields
from ctrlruntime.apiserver.apply.ownership import Owner
from ctrlruntime.apiserver.apply.types import Type
from ctrlruntime.apiserver.apply.validation import problems
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.schema.trees import Document

_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_LARGEST_ANNOTATIONS = 262_144


def last_applied(document: Document) -> str:
    """Return the configuration that client-side apply left, or nothing."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return str((annotations or {}).get(_ANNOTATION) or "")


def renew_last_applied(document: Document, config: Document) -> None:
    """Keep the annotation of client-side apply current, so that one can go back to it."""
    if not last_applied(document):
        return
    metadata = dict(config.get("metadata") or {})
    given = metadata.pop("annotations", None)
    if given is not None:
        metadata["annotations"] = {key: value or "" for key, value in given.items() if key != _ANNOTATION}
    annotations = dict(document["metadata"]["annotations"])
    annotations[_ANNOTATION] = encode_value({**config, "metadata": metadata}) + "\n"
    if sum(len(f"{key}{value or ''}".encode()) for key, value in annotations.items()) > _LARGEST_ANNOTATIONS:
        del annotations[_ANNOTATION]
    document["metadata"] = {**document["metadata"], "annotations": annotations}


def not_from_last_applied(
    root: Type, api_version: str, live: Document, conflicts: Mapping[Owner, FieldSet]
) -> Mapping[Owner, FieldSet]:
    """Return the conflicts about fields that client-side apply has not set, or that were changed since."""
    text = last_applied(live)
    try:
        last: Any = decode(text.encode()) if text else None
    except ValueError:
        last = None
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or problems(root, last):
        return conflicts
    changed: FieldSet = {}
    removed: FieldSet = {}
    compare_fields(root, last, live, changed, removed)
    allowed = difference(difference(named_fields(root, last) or {}, changed), removed)
    left = {owner: difference(fields, allowed) for owner, fields in conflicts.items()}
    return {owner: fields for owner, fields in left.items() if fields}
