"""What the server serves: one `Resource` for every served version of every kind.

Built-in resources come from the recorded discovery documents; custom ones are made by `customresources` from their definitions. A
resource knows how trees of its kind are read (`fit`), written (`encode`) and shown from a stored record (`body`, `tree`).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, TypeAlias

from ctrlruntime.apiserver.encoding import cut_metadata, decode
from ctrlruntime.apiserver.go_values import GO_TYPES, go_text
from ctrlruntime.apiserver.registry.conversions import CONVERSIONS
from ctrlruntime.apiserver.registry.webhook_conversion import WebhookConversion
from ctrlruntime.apiserver.storage import Record
from ctrlruntime.data import open_data
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import invalid_value
from ctrlruntime.schema import Misfit, Structural, Typed, messages
from ctrlruntime.schema.trees import Document, copy_tree, encode, encode_sorted, settled
from ctrlruntime.schema.typed import object_meta, typed
from ctrlruntime.schema.undecodable import undecodable

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
Converter: TypeAlias = Callable[[Document], Document]
_DEPRECATED: Mapping[tuple[str, str, str], str] = {
    ("", "v1", "endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "v1", "componentstatuses"): "v1 ComponentStatus is deprecated in v1.19+",
}
_METADATA_HEAD = b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":'

_LARGEST_COUNT = 2**31 - 1
_METADATA = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
             "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
             "managedFields")  # fmt: skip
"""The keys of metadata in the order of Go's struct."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A path below an object (`status`, `scale`, …) and the kind it speaks."""

    name: str
    kind: str
    group: str
    version: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource keeps what its scale subresource shows, as simple JSON paths (`.spec.replicas`)."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


def scale_causes(scale: ScalePaths, document: Document) -> Iterator[StatusCause]:
    """Yield what is wrong with the counts that a custom resource shows as its scale."""
    for path in (scale.spec_replicas, scale.status_replicas):
        try:
            count = _count_at(document, path)
        except _InaccessibleError as error:
            yield invalid_value(path, 0, str(error))
            continue
        if count < 0:
            yield invalid_value(path, count, "should be a non-negative integer")
        elif count > _LARGEST_COUNT:
            yield invalid_value(path, count, f"should be less than or equal to {_LARGEST_COUNT}")


class _InaccessibleError(Exception):
    """A value on a path is of a wrong type; the text is upstream's."""

    def __init__(self, path: str, value: Any, expected: str) -> None:
        found = GO_TYPES.get(type(value), "<nil>")
        super().__init__(f"{path} accessor error: {go_text(value)} is of the type {found}, expected {expected}")


def _count_at(document: Document, path: str) -> int:
    """Return the number at a path; 0 if it or what it is in is absent (NestedInt64 in apimachinery). Raises: _InaccessibleError."""
    value: Any = document
    reached = ""
    for name in path.lstrip(".").split("."):
        reached += f".{name}"
        if value is None:
            return 0
        if not isinstance(value, dict):
            raise _InaccessibleError(reached, value, "map[string]interface{}")
        if name not in value:
            return 0
        value = value[name]
    if type(value) is not int:
        raise _InaccessibleError(path, value, "int64")
    return value


class Computed(Protocol):
    """Where the objects of a kind come from that is not stored. What is odd about them is added to the warnings."""

    @property
    def schema(self) -> Document:
        """The OpenAPI schema of the kind."""
        ...

    def records(self, namespace: str, warnings: list[str]) -> Iterable[Record]: ...

    def record(self, namespace: str, name: str, warnings: list[str]) -> Record:
        """Raises: NotFound."""
        ...


@dataclass(eq=False)
class Resource:
    """A kind in one served version. `stored_as` names the table; several versions (and `events`' two groups) share one."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict[str, Subresource])
    list_kind: str = ""
    stored_as: tuple[str, str] = ("", "")
    schema: Structural | None = None
    is_custom: bool = False
    scale: ScalePaths | None = None
    selectable_fields: tuple[str, ...] = ()
    printer_columns: Sequence[Document] | None = None
    deprecation_warning: str = ""
    definition_name: str = ""
    is_terminating: bool = False
    from_canonical: Converter | None = None
    to_canonical: Converter | None = None
    conversion: WebhookConversion | None = None
    """Who converts between the versions of a custom resource; None: only the apiVersion changes."""
    computed: Computed | None = None
    """What makes the objects when they are read; None: they are stored."""

    def __post_init__(self) -> None:
        self.list_kind = self.list_kind or f"{self.kind}List"
        if self.stored_as == ("", ""):
            self.stored_as = (self.group, self.plural)
        self.api_version = f"{self.group}/{self.version}" if self.group else self.version
        self.head = b'{"kind":' + encode(self.kind) + b',"apiVersion":' + encode(self.api_version) + b","
        self.has_status = "status" in self.subresources
        self.storage: Resource = self
        """The version in which a custom resource is stored."""
        self.qualified = f"{self.plural}.{self.group}" if self.group else self.plural

    def __repr__(self) -> str:
        return f"<{self.api_version} {self.kind}>"

    @property
    def shape(self) -> Typed | None:
        """The Go type of a built-in kind."""
        found = None if self.is_custom else messages.message_of(self.api_version, self.kind)
        return typed(found.name) if found else None

    def fit(self, document: Document, unknown: list[str], *, keeps_nulls: bool = False) -> Document:
        """Return the document as the server's own types hold it; fields they do not have are reported in `unknown`.

        A custom resource is changed in place; `keeps_nulls` leaves the nulls that its schema refuses.
        Raises: BadRequest when a JSON type is wrong.
        """
        if self.is_custom:
            return self._fit_custom(document, unknown, keeps_nulls=keeps_nulls)
        head = {"kind": self.kind, "apiVersion": self.api_version}
        shape = self.shape
        if shape is None:
            return {**head, **{key: value for key, value in document.items() if key not in head}}
        body = {key: value for key, value in document.items() if key not in head}
        try:
            return head | shape.read(body, "", unknown)
        except Misfit as misfit:
            raise undecodable(
                self.kind, self.version, str(misfit), applied=misfit.first.applied, converted=str(misfit.first)
            ) from None

    def _fit_custom(self, document: Document, unknown: list[str], *, keeps_nulls: bool) -> Document:
        metadata = document.get("metadata")
        try:
            document["metadata"] = _read_metadata(metadata if metadata is not None else {}, unknown)
        except Misfit as misfit:
            # Upstream decodes the metadata of custom resources by itself: paths begin there.
            text = (
                str(misfit)
                .replace("Go struct field metadata of", "Go value of")
                .replace("ObjectMeta.metadata.", "ObjectMeta.")
            )
            raise undecodable(self.kind, self.version, text) from None
        if self.schema is not None:
            self.schema.fit(document, "", unknown, is_root=True, keeps_nulls=keeps_nulls)
        return document

    def encode(self, document: Document) -> bytes:
        """Return the bytes at rest: keys sorted for custom resources, in Go's order for built-ins."""
        if self.is_custom:
            return encode_sorted(document)
        metadata = document["metadata"]
        return encode({**document, "metadata": {key: metadata[key] for key in _METADATA if key in metadata}})

    def body(self, record: Record) -> bytes:
        """Return the record's bytes in this version; conversion and newer defaults are applied on the way and kept."""
        if record.writer is self:
            return record.body
        views = record.views
        if views is None:
            views = record.views = {}
        cached: bytes | None = views.get(self)
        if cached is None:
            cached = self.encode(self._converted(record))
            if self.conversion is None or record.writer.version == self.version:
                views[self] = cached
        return cached

    def tree(self, record: Record) -> Document:
        """Return a fresh tree of the record in this version."""
        if record.writer is self:
            tree: Document = decode(record.body)
            return tree
        return self._converted(record)

    async def prepare(self, records: Iterable[Record], *, is_fresh: bool = False) -> None:
        """Make the views of records whose version only a webhook can convert, in one review; elsewhere nothing happens.

        Until then such a record shows another apiVersion and nothing else. `is_fresh` asks the webhook again about what was asked
        before, as kube-apiserver does for what it reads from its storage. Raises: APIStatusError (500) when the webhook fails.
        """
        conversion = self.conversion
        if conversion is None:
            return
        foreign = [record for record in records if record.writer.version != self.version]
        if is_fresh:
            await self._ask_for_views(conversion, foreign)
            return
        async with conversion.lock:
            await self._ask_for_views(conversion, [r for r in foreign if r.views is None or self not in r.views])

    def needs_preparation(self, records: Iterable[Record]) -> bool:
        """Tell whether one of the records has to be prepared."""
        return self.conversion is not None and any(
            record.writer.version != self.version and (record.views is None or self not in record.views)
            for record in records
        )

    async def _ask_for_views(self, conversion: WebhookConversion, records: Sequence[Record]) -> None:
        trees = [self._stored(record) for record in records]
        for record, tree in zip(records, await conversion.convert(trees, self.api_version), strict=True):
            tree["metadata"]["resourceVersion"] = str(record.revision)
            if self.schema is not None:
                self.schema.fit(tree, "", [], is_root=True, defaults=False)
            if record.views is None:
                record.views = {}
            record.views[self] = self.encode(tree)

    async def convert(self, document: Document, target: Resource) -> Document:
        """Return an object of this version in another version of its kind; the original stays as it is. Raises: APIStatusError."""
        if target is self:
            return document
        if not self.is_custom:
            return self._convert_built_in(document, target)
        if self.conversion is None:
            return {**document, "apiVersion": target.api_version}
        (converted,) = await self.conversion.convert([document], target.api_version)
        version = document["metadata"].get("resourceVersion")
        if version:
            converted["metadata"]["resourceVersion"] = version
        return converted

    def _convert_built_in(self, document: Document, target: Resource) -> Document:
        document = copy_tree(document)
        if self.to_canonical is not None:
            document = self.to_canonical(document)
        if target.from_canonical is not None:
            document = target.from_canonical(document)
        return target.fit({**document, "kind": target.kind, "apiVersion": target.api_version}, [])

    def _stored(self, record: Record) -> Document:
        """Return the record's tree in the version it is stored in, with the defaults its schema has got since."""
        document: Document = decode(record.body)
        storage = self.storage
        if record.writer is not storage and record.writer.version == storage.version and storage.schema is not None:
            storage.schema.fit(document, "", [], is_root=True)
        return document

    def to_storage(self, document: Document) -> Document:
        """Return a document of this version in the one that is stored, where no webhook converts; what that does not have is lost."""
        storage = self.storage
        if not self.is_custom:
            return self._convert_built_in(document, storage)
        document = copy_tree({**document, "apiVersion": storage.api_version})
        if storage.schema is not None:
            storage.schema.fit(document, "", [], is_root=True)
        return document

    def _converted(self, record: Record) -> Document:
        if self.conversion is not None and record.views is not None and self in record.views:
            view: Document = decode(record.views[self])
            return view
        document: Document = decode(record.body)
        writer: Resource = record.writer
        if self.is_custom:
            own = next((r for r in (self.storage, self) if r.version == writer.version), writer)
            if own.schema is not None and writer is not own:
                own.schema.fit(document, "", [], is_root=True)  # defaults newer than the record
            document["apiVersion"] = self.api_version
            if self is not own and self.schema is not None:
                self.schema.fit(document, "", [], is_root=True, defaults=False)
            return document
        return writer._convert_built_in(document, self)

    def item(self, record: Record) -> bytes:
        """Return the record's bytes as an item of a list: built-in kinds leave out kind and apiVersion there."""
        body = self.body(record)
        return body if self.is_custom else b"{" + body[len(self.head) :]

    def metadata_body(self, record: Record) -> bytes:
        """Return the record as a PartialObjectMetadata."""
        views = record.views
        if views is None:
            views = record.views = {}
        if self.conversion is not None and record.writer is not self:
            return _METADATA_HEAD + cut_metadata(self.body(record)) + b"}"  # labels and annotations may differ
        cached: bytes | None = views.get("metadata")
        if cached is None:
            cached = views["metadata"] = _METADATA_HEAD + cut_metadata(record.body) + b"}"
        return cached


@cache
def recorded_discovery() -> Mapping[str, Any]:
    """Return the recorded discovery documents (`aggregated`, `legacy`)."""
    recorded: Mapping[str, Any] = decode(gzip.decompress(open_data("kubernetes-1.36/discovery.json.gz")))
    return recorded


@cache
def built_in() -> tuple[Resource, ...]:
    """Return the built-in resources in the order of discovery. All registries share them: only custom resources change."""
    aggregated = recorded_discovery()["aggregated"]
    found: list[Resource] = []
    for group in (*aggregated["/api"]["items"], *aggregated["/apis"]["items"]):
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            found.extend(_from_discovery(name, version["version"], entry) for entry in version["resources"])
    canonical = {(one.group, one.plural): one for one in found if one.from_canonical is None}
    for resource in found:
        resource.storage = canonical[resource.stored_as]
    return tuple(found)


def _from_discovery(group: str, version: str, entry: Mapping[str, Any]) -> Resource:
    subresources = {
        sub["subresource"]: Subresource(
            sub["subresource"],
            sub["responseKind"]["kind"],
            sub["responseKind"]["group"] or group,
            sub["responseKind"]["version"] or version,
            tuple(sub["verbs"]),
        )
        for sub in entry.get("subresources") or ()
    }
    resource = Resource(
        group=group,
        version=version,
        plural=entry["resource"],
        singular=entry["singularResource"],
        kind=entry["responseKind"]["kind"],
        namespaced=entry["scope"] == "Namespaced",
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry.get("shortNames") or ()),
        categories=tuple(entry.get("categories") or ()),
        subresources=subresources,
        deprecation_warning=_DEPRECATED.get((group, version, entry["resource"]), ""),
    )
    conversion = CONVERSIONS.get((group, version, resource.plural))
    if conversion is not None:
        resource.stored_as, resource.to_canonical, resource.from_canonical = conversion
    return resource


def _read_metadata(metadata: Any, unknown: list[str]) -> Document:
    """Return the metadata of a custom resource; upstream writes it as JSON again to read it, which makes 1 of 1.0."""
    try:
        return object_meta().read(metadata, "metadata", unknown)
    except Misfit:
        if type(metadata) is not dict:
            raise
        unknown.clear()
        return object_meta().read(settled(metadata), "metadata", unknown)
