"""How stored records are shown: whole, as metadata, as table rows; alone, in lists, in watch frames.

Bytes are made once: a record's view is kept with the record, a frame with its event, so a thousand watchers cost one encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures, tables
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.apiserver.http.negotiation import Representation, go_type, not_a_list
from ctrlruntime.apiserver.registry import Resource
from ctrlruntime.apiserver.storage import Event, Record
from ctrlruntime.errors import APIStatusError, BadRequest, NotAcceptable
from ctrlruntime.schema.trees import Document, encode

_V1 = "meta.k8s.io/v1"
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
_ZEROS: Final[Mapping[tuple[str, str], Document]] = {
    ("apps", "DaemonSet"): {"annotations": {"deprecated.daemonset.template.generation": "0"}},
    **{("apps", kind): {"spec": {"replicas": 0}} for kind in ("Deployment", "ReplicaSet", "StatefulSet")},
}
"""What the internal type of a kind has as a value, and its version as a pointer or an annotation (pkg/apis/apps/v1/conversion.go)."""


def included(include: str) -> str:
    """Return what rows of a table have of their objects. Raises: BadRequest."""
    if include not in {"", "None", "Metadata", "Object"}:
        raise BadRequest(
            f"Unable to convert to Table as requested: includeObject: Invalid value: {field_errors.shown(include)}: must be "
            "'Metadata', 'Object', 'None', or empty"
        )
    return include or "Metadata"


class View:
    """One resource in one form; `include` is the `includeObject` of tables."""

    def __init__(
        self, resource: Resource, representation: Representation, include: str, now: Callable[[], datetime]
    ) -> None:
        self.resource = resource
        self.form = representation.form
        self._is_list_form = representation.is_list_form
        self._version = representation.version
        self._include = include
        self._now = now

    def single(self, record: Record, *, columns: bool = True) -> bytes:
        """Return the body of an answer about one object. Raises: APIStatusError when the client wants a list."""
        if self.form == "object":
            return self.resource.body(record)
        if self._is_list_form:
            raise self._no_list()
        return self._shown(record, columns=columns)

    def _no_list(self) -> APIStatusError:
        resource = self.resource
        if resource.is_custom:  # to Go an unstructured object may be a list
            return failures.plain_internal("content is not a list")
        return not_a_list(go_type(resource, resource.kind))

    def _shown(self, record: Record, *, columns: bool = True) -> bytes:
        """Return the body of an object as metadata or as a table."""
        if self.form == "metadata":
            return self._metadata_body(record)
        return encode(self.table([record], {"resourceVersion": str(record.revision)}, columns=columns))

    def _metadata_body(self, record: Record) -> bytes:
        body = self.resource.metadata_body(record)
        return body if self._version == _V1 else body.replace(_V1.encode(), self._version.encode(), 1)

    def list(self, records: Iterable[Record], metadata: Document) -> bytes:
        """Return the body of a list. Raises: NotAcceptable when the client wants a single object."""
        if self.form != "object" or self.resource.is_custom:  # upstream does not say there that a list is filtered
            metadata = {key: value for key, value in metadata.items() if key != "shardInfo"}
        if self.form == "table":
            return encode(self.table(records, metadata))
        resource = self.resource
        if self.form == "metadata":
            if not self._is_list_form:
                listed = go_type(resource, resource.list_kind)
                raise NotAcceptable(
                    f"you requested PartialObjectMetadata, but the requested object is a list ({listed})"
                )
            items = b",".join([self._metadata_body(record) for record in records])
            shown = b"[" + items + b"]" if items else b"null"
            head = f'{{"kind":"PartialObjectMetadataList","apiVersion":"{self._version}","metadata":'
            return b"".join((head.encode(), encode(metadata), b',"items":', shown, b"}"))
        if resource.is_custom:
            metadata = dict(sorted({"continue": "", **metadata}.items()))
        meta = encode(metadata)
        items = b",".join([resource.item(record) for record in records])
        kind, version = encode(resource.list_kind), encode(resource.api_version)
        if resource.is_custom:
            return b"".join(
                (b'{"apiVersion":', version, b',"items":[', items, b'],"kind":', kind, b',"metadata":', meta, b"}")
            )
        return b"".join(
            (b'{"kind":', kind, b',"apiVersion":', version, b',"metadata":', meta, b',"items":[', items, b"]}")
        )

    def frame(self, type: str, event: Event, record: Record) -> bytes:
        """Return a watch frame for an event, kept with the event for the other watchers."""
        key = (self.resource, self.form, self._version, type, record.revision)
        frames = event.frames
        if frames is None:
            frames = event.frames = {}
        cached = frames.get(key)
        if cached is None:
            cached = frames[key] = self.loose_frame(type, record)
        return cached

    def loose_frame(self, type: str, record: Record, *, columns: bool = True) -> bytes:
        """Return a watch frame that is kept with no event: of the initial state, or a Table; `columns` tells whether it defines them."""
        return b"".join((b'{"type":"', type.encode(), b'","object":', self._framed(record, columns=columns), b"}\n"))

    def _framed(self, record: Record, *, columns: bool) -> bytes:
        return self.resource.body(record) if self.form == "object" else self._shown(record, columns=columns)

    def bookmark(self, revision: int, *, ends_initial: bool = False) -> bytes:
        """Return a BOOKMARK frame: nothing up to `revision` is missing."""
        metadata: Document = {"resourceVersion": str(revision)}
        if ends_initial:
            metadata["annotations"] = INITIAL_EVENTS_END
        head = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        if self.form == "metadata":
            head = {"kind": "PartialObjectMetadata", "apiVersion": self._version}
        body: Document = {**head, "metadata": metadata}
        if self.form == "object" and not self.resource.is_custom:
            body = self._zero(body)
        if self.form == "table":
            cells = self._cells(body)
            body = {"kind": "PartialObjectMetadata", "apiVersion": self._version, "metadata": metadata}
            body = {
                "kind": "Table",
                "apiVersion": self._version,
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None,
                "rows": [{"cells": cells, "object": body}],
            }
        return encode({"type": "BOOKMARK", "object": body}) + b"\n"

    def _zero(self, body: Document) -> Document:
        """Return a bookmark's object as Go writes one whose internal type is converted: with zero values."""
        of_kind = _ZEROS.get((self.resource.group, self.resource.kind), {})
        metadata = {**body["metadata"]}
        if annotations := {**of_kind.get("annotations", {}), **metadata.get("annotations", {})}:
            metadata["annotations"] = annotations
        return self.resource.fit({**body, "spec": of_kind.get("spec"), "metadata": metadata}, [])

    def columns(self) -> Sequence[Document]:
        resource = self.resource
        if resource.is_custom:
            return tables.custom_columns(resource.printer_columns)
        return tables.columns(resource.group, resource.version, resource.plural)

    def table(self, records: Iterable[Record], metadata: Document, *, columns: bool = True) -> Document:
        """Return a Table of the records."""
        return {
            "kind": "Table",
            "apiVersion": self._version,
            "metadata": metadata,
            "columnDefinitions": self.columns() if columns else None,
            "rows": [self._row(record) for record in records],
        }

    def _row(self, record: Record) -> Document:
        resource = self.resource
        document: Document = decode(resource.body(record))
        row: Document = {"cells": self._cells(document)}
        include = included(self._include)
        if include == "Object":
            row["object"] = document
        elif include == "Metadata":
            metadata = document.get("metadata", {})
            if resource.kind == "DaemonSet":  # an annotation that only the versioned object has
                metadata.get("annotations", {}).pop("deprecated.daemonset.template.generation", None)
                if not metadata.get("annotations", True):
                    del metadata["annotations"]
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": self._version, "metadata": metadata}
        else:
            row["object"] = None
        return row

    def _cells(self, document: Document) -> Sequence[Any]:
        resource = self.resource
        if resource.is_custom:
            return tables.custom_cells(resource.printer_columns, document, self._now())
        return tables.cells(resource.group, resource.version, resource.plural, document, self._now())


def error_frame(status: Any) -> bytes:
    return encode({"type": "ERROR", "object": status}) + b"\n"
