"""The interfaces for reads and writes, which clients, caches, wrappers and tests implement.

Kinds are classes: a typed class (`apps.Deployment`, your own), `Unstructured.of("v1", "ConfigMap")` or
`PartialObjectMetadata.of(apps.Deployment)`. A read returns a new object of that class, which you may change. A write returns the object of
the API server and updates the object you passed in, so that two writes in a row do not conflict. A failed write, or one with dry_run, does
not change your object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, overload

from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata, ObjectKey, metadata_of
from ctrlruntime.errors import DecodeError
from ctrlruntime.selector import FieldSelector, LabelSelector

if TYPE_CHECKING:
    from ctrlruntime.client.patches import Patch
    from ctrlruntime.rest.mapper import RESTMapper
    from ctrlruntime.scheme import Scheme

T = TypeVar("T")

Labels: TypeAlias = str | Mapping[str, str] | LabelSelector
"""A label selector: text (`"app=web,tier in (a,b)"`), a mapping of equal values, or a parsed selector."""

Fields: TypeAlias = str | Mapping[str, str] | FieldSelector
"""A field selector: text (`"spec.nodeName=n1"`), a mapping of equal values, or a parsed selector."""

FieldValidation: TypeAlias = Literal["Ignore", "Warn", "Strict"]
PropagationPolicy: TypeAlias = Literal["Background", "Foreground", "Orphan"]


_TURN = 128 * 1024
"""The bytes of JSON that `async for` decodes before other tasks run: one to two milliseconds."""


class ListResult(Sequence[T], Generic[T]):
    """The result of a list: a sequence that decodes each item once, on first access.

    A sequence keeps the items it has decoded. For thousands of items use `async for`: it decodes each item again and does not keep it, and
    lets other tasks run from time to time.

    Args:
        metadata: the metadata of all items, without decoding.
        resource_version: the version of the list.
        continue_token: the token for the next page; empty on the last page.
        remaining_item_count: the number of items on later pages, if the server sent it.

    """

    __slots__ = (
        "_decode",
        "_decoded",
        "_metadata",
        "_raw_items",
        "continue_token",
        "remaining_item_count",
        "resource_version",
    )

    def __init__(
        self,
        raw_items: Sequence[bytes],
        decode: Callable[[bytes], T],
        *,
        metadata: Sequence[Metadata] | None = None,
        resource_version: str = "",
        continue_token: str = "",
        remaining_item_count: int | None = None,
    ) -> None:
        self._raw_items = raw_items
        self._decode = decode
        self._metadata = metadata
        self._decoded: dict[int, T] = {}
        self.resource_version = resource_version
        self.continue_token = continue_token
        self.remaining_item_count = remaining_item_count

    @property
    def metadata(self) -> Sequence[Metadata]:
        if self._metadata is None:
            self._metadata = [metadata_of(raw) for raw in self._raw_items]
        return self._metadata

    @property
    def raw_items(self) -> Sequence[bytes]:
        """The JSON of the items, as the server sent it. The cache removes managedFields."""
        return self._raw_items

    def __len__(self) -> int:
        return len(self._raw_items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self._raw_items)))]
        position = range(len(self._raw_items))[index]
        if position not in self._decoded:
            self._decoded[position] = self._decode(self._raw_items[position])
        return self._decoded[position]

    def __iter__(self) -> Iterator[T]:
        decoded = self._decoded
        for position, raw in enumerate(self._raw_items):
            if position not in decoded:
                decoded[position] = self._decode(raw)
            yield decoded[position]

    async def __aiter__(self) -> AsyncIterator[T]:
        decode, taken = self._decode, 0
        for raw in self._raw_items:
            taken += len(raw)
            if taken > _TURN:
                taken = 0
                await asyncio.sleep(0)
            yield decode(raw)

    @property
    def valid(self) -> list[T]:
        """The items that match the class.

        Iteration over the list itself raises DecodeError at the first that does not.
        """
        return [item for item in self._outcomes() if not isinstance(item, DecodeError)]

    @property
    def decode_errors(self) -> list[DecodeError]:
        """The errors of the items that do not match the class.

        Each names the fields and has the bytes of the object.
        """
        return [item for item in self._outcomes() if isinstance(item, DecodeError)]

    def _outcomes(self) -> Iterator[T | DecodeError]:
        for position in range(len(self._raw_items)):
            try:
                yield self[position]
            except DecodeError as error:
                yield error

    def __repr__(self) -> str:
        return f"ListResult({', '.join(str(meta.key) for meta in self.metadata[:5])}{', …' if len(self) > 5 else ''})"


class WatchEvent(NamedTuple, Generic[T]):
    """One change from `Client.watch`: ADDED, MODIFIED, DELETED, or BOOKMARK.

    The object of a bookmark has only a resourceVersion.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: T


class Reader(Protocol):
    """Reads objects from the cache or from the API server.

    The manager's client reads from the cache. `api_reader` and direct clients read from the API server.
    """

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        """Return the object at `key`.

        Raises: NotFound, NotRegisteredError, NoMatchError, DecodeError, CacheError; ValueError for a key of another cluster.
        """
        ...

    async def get_or_none(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return the object at `key`, or None if it does not exist.

        Raises: the errors of `get`, except NotFound.
        """
        ...

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str = "",
    ) -> ListResult[T]:
        """List the objects that match both selectors.

        Args:
            kind: the class of the kind.
            namespace: the namespace, or None for all namespaces.
            labels: a label selector: a dict, text as for kubectl, or a `selector.LabelSelector`.
            fields: a field selector, in the same forms.
            limit: the maximum number of objects.
            continue_token: the token of the previous page.

        Raises: the errors of `get`, except NotFound.

        """
        ...


class SubresourceClient(Protocol):
    """Reads and writes a subresource, such as `status`, `scale` or `eviction`."""

    async def get(self, obj: object, body: type[T]) -> T:
        """Return the subresource of `obj` as `body`, for example `autoscaling.v1.Scale`."""
        ...

    async def create(self, obj: object, body: T, *, dry_run: bool = False, field_owner: str = "") -> T:
        """Create `body` at the subresource of `obj`, and return the response.

        `body` is an Eviction, a TokenRequest or a Binding.
        """
        ...

    async def update(
        self,
        obj: T,
        *,
        body: object | None = None,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Replace the subresource of `obj`, or send `body` to it for kinds like Scale.

        Update and return `obj`. With `body`, update `body` instead and return `obj` unchanged.
        """
        ...

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        force: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> T: ...

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T: ...


class Writer(Protocol):
    """Writes objects to the API server."""

    @property
    def status(self) -> SubresourceClient: ...

    def subresource(self, name: str) -> SubresourceClient: ...

    async def create(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Create the object. Raises: AlreadyExists, Invalid, Forbidden, …"""
        ...

    async def update(
        self,
        obj: T,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Replace the object, but not its status if that is a subresource.

        Raises: Conflict if it changed since it was read.
        """
        ...

    async def patch(
        self,
        obj: T,
        patch: Patch,
        *,
        dry_run: bool = False,
        field_owner: str = "",
        force: bool = False,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Change parts of the object; see `ctrlruntime.client.patches`."""
        ...

    async def apply(self, obj: T, *, field_owner: str = "", force: bool = False, dry_run: bool = False) -> T:
        """Apply the object server-side: own exactly the fields that the code set on `obj`.

        Raises: Conflict with the other field managers, unless `force`; ValueError for an object that was read from a server.
        """
        ...

    async def delete(
        self,
        obj: object,
        *,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        """Delete the object. `uid` and `resource_version` are preconditions.

        Raises: NotFound, Conflict.
        """
        ...

    async def delete_all_of(
        self,
        kind: type[Any],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        dry_run: bool = False,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
    ) -> None:
        """Delete all objects of a kind in a namespace that match the selectors.

        Raises: ValueError for a namespaced kind without `namespace`.
        """
        ...


class Client(Reader, Writer, Protocol):
    """Reads and writes objects.

    It also has the scheme and the RESTMapper that it uses.
    """

    async def get(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T:
        """Return the object at `key`.

        Args:
            kind: the class of the kind.
            key: namespace and name, or a request.
            live_fallback: read from the API server if the cache has only part of the kind and does not have the object.

        Raises: as `Reader.get`; ObjectNotCachedError (a NotFound) if the object may exist, but no live read was made.

        """
        ...

    async def get_or_none(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T | None:
        """Return the object at `key`, or None if it does not exist.

        Raises: the errors of `get`, except NotFound. NamespaceNotCachedError is raised too.
        """
        ...

    @property
    def scheme(self) -> Scheme: ...

    @property
    def mapper(self) -> RESTMapper: ...

    @property
    def api_reader(self) -> Reader:
        """A reader that always reads from the API server."""
        ...

    def watch(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        resource_version: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Iterate over changes until the server ends the watch.

        In a reconciler use an informer, which resumes a watch.

        Raises: Expired, …
        """
        ...
