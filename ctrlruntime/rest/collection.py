"""One collection of the API (a kind, in one namespace or all, with selectors) as pages and watch frames of bytes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from ctrlruntime.errors import Expired, Gone, TransportError
from ctrlruntime.rest.content import JSON, METADATA_ITEM, METADATA_LIST, UNREADABLE, unreadable
from ctrlruntime.rest.mapper import APIResource
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.watch import Frame, Interrupt, frames

PAGE_SIZE: Final = 500
"""The number of objects in a page of a list."""


class _ListMeta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_decode_list = msgspec.json.Decoder(_List).decode


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list: the JSON of the items, the version of the list, and the token for the next page (empty on the last).

    `is_first`: the list starts with it.
    """

    items: list[bytes] = field(repr=False)
    resource_version: str
    continue_token: str
    remaining_item_count: int | None
    is_first: bool = True


LARGEST_GROWTH: Final = 64
"""The maximum growth of a page, as a multiple of the first page size."""


def resource_path(resource: APIResource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the URL path of a collection, an object or a subresource.

    Raises: ValueError for a name or namespace that would change the path (k8s.io/apimachinery/pkg/api/validation/path).
    """
    for segment in (namespace, name, subresource):
        if segment in {".", ".."} or "/" in segment or "%" in segment:
            raise ValueError(f"{segment!r} cannot be part of a name: it is '.' or '..', or contains '/' or '%'")
    parts = ["/api" if not resource.group else f"/apis/{resource.group}", resource.version]
    if namespace and resource.namespaced:
        parts += ["namespaces", namespace]
    parts.append(resource.plural)
    if name:
        parts.append(name)
    if subresource:
        parts.append(subresource)
    return "/".join(parts)


class Collection:
    """Lists and watches one collection.

    `metadata_only`: request PartialObjectMetadata. `shards`: a shardSelector, which a server without its feature gate ignores.
    """

    def __init__(
        self,
        transport: Transport,
        resource: APIResource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        shards: str = "",
        metadata_only: bool = False,
    ) -> None:
        self.resource = resource
        self.namespace = namespace if resource.namespaced else ""
        self._transport = transport
        self._path = resource_path(resource, self.namespace)
        self._accept_list = METADATA_LIST if metadata_only else JSON
        self._accept_watch = METADATA_ITEM if metadata_only else JSON
        self._selectors = [(k, v) for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v]
        self.shards = shards

    @property
    def _selection(self) -> list[tuple[str, str]]:
        return [*self._selectors, ("shardSelector", self.shards)] if self.shards else list(self._selectors)

    async def page(
        self, *, limit: int | None = None, continue_token: str = "", resource_version: str = "", match: str = ""
    ) -> Page:
        """Return one page. Without `resource_version` it is a consistent read.

        Raises: APIStatusError (Expired for an old token), TransportError.
        """
        params = self._selection
        if limit:
            params.append(("limit", str(limit)))
        if continue_token:
            params.append(("continue", continue_token))
        if resource_version:
            params.append(("resourceVersion", resource_version))
        if match:
            params.append(("resourceVersionMatch", match))
        response = await self._transport.request("GET", self._path, params=params, accept=self._accept_list)
        try:
            decoded = _decode_list(response.body)
        except UNREADABLE as error:
            raise TransportError(
                f"GET {self._path}: the response is not a list: {unreadable(error, response.body)}"
            ) from error
        meta = decoded.metadata
        # Raw items are views of the whole body: copied, so that one long-lived object does not keep its page in memory.
        items = [bytes(item) for item in decoded.items or ()]
        return Page(items, meta.resource_version, meta.continue_, meta.remaining_item_count, not continue_token)

    async def pages(self, size: int) -> AsyncGenerator[Page, None]:
        """Yield all pages of one consistent list.

        If its continue token expires, the list starts again with pages twice as large: a page with `is_first` replaces all before it.
        Raises: Expired or Gone if the largest pages expire too; as `page`.
        """
        limit = size
        while True:
            token = ""
            try:
                while True:
                    page = await self.page(limit=limit, continue_token=token)
                    yield page
                    token = page.continue_token
                    if not token:
                        return
            except (Expired, Gone):
                if not token or limit >= LARGEST_GROWTH * size:
                    raise
                limit *= 2

    async def all(self, *, limit: int = PAGE_SIZE) -> tuple[list[bytes], str]:
        """Return all items of one consistent list, and its version.

        `limit`: objects in a page. Raises: as `pages`.
        """
        items: list[bytes] = []
        position = ""
        async with contextlib.aclosing(self.pages(limit)) as pages:
            async for page in pages:
                if page.is_first:
                    items.clear()
                    position = ""
                items += page.items
                position = position or page.resource_version
        return items, position

    def watch(
        self,
        *,
        resource_version: str,
        timeout: float,
        timeout_grace: float = 10.0,
        initial_events: bool = False,
        interrupt: Interrupt | None = None,
    ) -> AsyncGenerator[list[Frame], None]:
        """Watch from `resource_version` for `timeout` seconds (an integer in the API).

        timeout_grace: a watch that has not ended this long after its timeout is treated as dead (RequestTimeoutError), and so is one that
        does not start within this time.
        initial_events: a streaming list (KEP-3157), which starts with every object as ADDED and a marked BOOKMARK.
        interrupt: ends the watch early.
        """
        seconds = max(1, round(timeout))
        params = [
            *self._selection,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(seconds)),
        ]
        if resource_version:
            params.append(("resourceVersion", resource_version))
        if initial_events:
            params += [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        return frames(
            self._transport,
            self._path,
            params=params,
            accept=self._accept_watch,
            begins_within=timeout_grace,
            ends_within=seconds + timeout_grace,
            interrupt=interrupt,
        )
