"""Lists: selectors, resourceVersion rules, pages with continue tokens, and consistent reads of the recent past."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, TypeAlias

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import decode_body
from ctrlruntime.apiserver.go_json import Struct, unmarshal
from ctrlruntime.apiserver.go_values import parse_uint
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.options import ListOptions
from ctrlruntime.apiserver.http.shards import Shard
from ctrlruntime.apiserver.http.views import View
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.registry.strategies import strategy_of
from ctrlruntime.apiserver.storage import Key, Record
from ctrlruntime.errors import APIStatusError, BadRequest
from ctrlruntime.field_errors import quoted
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import FieldSelector

_Reader: TypeAlias = Callable[[Document], str]
_FRESH = 3.0
"""Seconds a read waits for a resourceVersion that has not been reached."""
_CONTINUE_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with "
    "the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")


class Match:
    """Tells whether a record satisfies the selectors of a request."""

    def __init__(self, resource: Resource, options: ListOptions, key: Key | None) -> None:
        self.labels = options.labels
        self.resource = resource
        self.key = key
        self._readers = _field_readers(resource, options.fields)
        self.fields = options.fields
        self.shard = Shard(options.shard_selector) if options.shard_selector else None
        self.is_trivial = not options.labels and not options.fields and key is None and self.shard is None

    def __call__(self, record: Record) -> bool:
        if self.is_trivial:
            return True
        if self.key is not None and record.key != self.key:
            return False
        if not self.labels.matches(record.labels) or (self.shard is not None and not self.shard.matches(record)):
            return False
        if not self.fields:
            return True
        known = {"metadata.name": record.key[1], "metadata.namespace": record.key[0]}
        if self._readers:
            document = record.writer.tree(record) if not self.resource.is_custom else self.resource.tree(record)
            if record.writer.to_canonical is not None:
                document = record.writer.to_canonical(document)
            known.update({path: reader(document) for path, reader in self._readers.items()})
        return self.fields.matches(known)


def _field_readers(resource: Resource, fields: FieldSelector) -> dict[str, _Reader]:
    readers: dict[str, _Reader] = {}
    strategy = strategy_of(*resource.stored_as, is_custom=resource.is_custom)
    known = strategy.fields
    if known is not None and resource.group == "events.k8s.io":
        known = {_EVENT_PATHS.get(path.partition(".")[0], path.partition(".")[0]) + path[len(path.partition(".")[0]) :]: reader
                 for path, reader in known.items() if path != "source"}  # fmt: skip
    for path in fields.paths:
        if path == "metadata.name" or (path == "metadata.namespace" and (resource.namespaced or known is None)):
            continue
        if resource.is_custom and path in resource.selectable_fields:
            readers[path] = _selectable(path)
        elif known is not None and path in known:
            readers[path] = known[path]
        elif known is not None or resource.is_custom:
            kind = f"{resource.api_version}, Kind={resource.kind}"
            raise BadRequest(strategy.unknown_field.format(path=path, kind=kind))
        else:
            raise BadRequest(
                f'{quoted(path)} is not a known field selector: only "metadata.name", "metadata.namespace"'
            )
    return readers


_EVENT_PATHS = {"involvedObject": "regarding", "reportingComponent": "reportingController"}
"""How the newer group calls what the older one selects by."""


def _selectable(path: str) -> _Reader:
    keys = path.split(".")

    def read(document: Document) -> str:
        node: object = document
        for key in keys:
            node = node.get(key) if isinstance(node, dict) else None
        if node is None:
            return ""
        return str(node).lower() if isinstance(node, bool) else str(node)

    return read


def named_key(call: Call, options: ListOptions) -> Key | None:
    """Return the one key a request can concern, when its field selector names it."""
    assert call.target is not None
    name = options.fields.exact("metadata.name")
    if name is None or (call.resource is not None and call.resource.namespaced and not call.target.namespace):
        return None
    return (call.target.namespace, name)


async def list_body(registry: Registry, call: Call, options: ListOptions, view: View) -> bytes:
    """Return the body of the list. Raises: APIStatusError."""
    resource = view.resource
    assert call.target is not None
    match = Match(resource, options, None)
    if resource.computed is not None:
        return view.list(filter(match, resource.computed.records(call.target.namespace, call.warnings)), {})
    store = registry.store
    table = store.table(*resource.stored_as)
    start: Key | None = None
    exact: int | None = None
    limit = options.limit
    version = options.resource_version
    if options.continue_:
        exact, start = _read_token(options.continue_, call.target.namespace, is_deep=resource.namespaced)
        if version not in {"", "0"}:
            raise BadRequest("specifying resource version is not allowed when using continue")
    elif version not in {"", "0"}:
        wanted = parse_version(version)
        if options.match == "Exact" or (limit and not options.match):
            exact = wanted
        if not await store.wait_for(wanted, _FRESH):
            raise failures.too_large_resource_version(wanted, store.revision, is_cached=is_cached(resource))
    if version == "0":
        limit = 0
    if exact is not None and exact < 0:
        exact = None  # an inconsistent continue
    revision = store.revision if exact is None else exact
    found = table.read(call.target.namespace, start=start, revision=exact)
    if found is None:
        raise _expired(start, call.target.namespace)
    records: Iterable[Record] = found[0]
    if resource.conversion is not None:
        records = list(records)
        await resource.prepare(records)
    return _page(view, match, records, found[1], limit, revision, call.target.namespace)


def _page(
    view: View, match: Match, records: Iterable[Record], count: int, limit: int, revision: int, namespace: str
) -> bytes:
    """Return the first `limit` of the records that match; `count` is how many there are without selectors."""
    page, metadata = take_page(match, records, count, limit, revision, namespace)
    return view.list(page, metadata)


def take_page(
    match: Match, records: Iterable[Record], count: int, limit: int, revision: int, namespace: str
) -> tuple[Iterable[Record], Document]:
    """Return the first `limit` of the records that match (0: all), and the metadata of a list of them."""
    metadata: Document = {"resourceVersion": str(revision)}
    shown: Document = {} if match.shard is None else {"shardInfo": {"selector": match.shard.shown}}
    waiting = iter(records)
    matching = waiting if match.is_trivial else (record for record in waiting if match(record))
    if not limit:
        return matching, {**metadata, **shown}
    page = list(islice(matching, limit))
    # Whether one of the objects that are left matches is not looked at: the next page may be empty.
    if len(page) == limit and next(waiting, None) is not None:
        metadata["continue"] = _token(revision, page[-1].key, namespace, match.resource)
        if match.is_trivial:
            metadata["remainingItemCount"] = count - limit
    return page, {**metadata, **shown}


def parse_version(text: str) -> int:
    """Return a resourceVersion as a number. Raises: BadRequest."""
    try:
        return _version(text)
    except ValueError as error:
        raise BadRequest(f"invalid resource version: {error}") from None


def read_version(text: str) -> int:
    """Return the resourceVersion of a read or a watch, 0 without one. Raises: APIStatusError (500)."""
    try:
        return _version(text or "0")
    except ValueError as error:
        raise failures.plain_internal(str(error)) from None


def _version(text: str) -> int:
    try:
        return parse_uint(text)
    except ValueError as error:
        raise ValueError(f"resourceVersion: Invalid value: {quoted(text)}: {error}") from None


def _expired(start: Key | None, namespace: str) -> APIStatusError:
    if start is None:
        return failures.too_old("The resourceVersion for the provided list is too old.")
    token = _encode_token(-1, f"{start[0]}/{start[1]}" if not namespace and start[0] else start[1])
    return failures.too_old(_CONTINUE_TOO_OLD, continue_=token)


def is_cached(resource: Resource) -> bool:
    """Tell whether kube-apiserver has a watch cache of a resource: not of events (DefaultWatchCacheSizes in its package cachesize)."""
    return resource.stored_as != ("", "events")


def _token(revision: int, last: Key, namespace: str, resource: Resource) -> str:
    name = f"{last[0]}/{last[1]}" if not namespace and last[0] else last[1]
    slash = "/" if is_cached(resource) else ""  # with it the keys of the cache begin
    return _encode_token(revision, f"{slash}{name}\0")


def _encode_token(revision: int, start: str) -> str:
    text = json.dumps({"v": _TOKENS, "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(token: str) -> bytes:
    """Raises: ValueError with the place of the first byte that Go's base64.RawURLEncoding does not take."""
    bad = next((index for index, char in enumerate(token) if char not in _BASE64), None)
    if bad is None and len(token) % 4 == 1:
        bad = len(token) - 1
    if bad is not None:
        raise ValueError(f"illegal base64 data at input byte {bad}")
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


_TOKEN: Final = Struct("continueToken", "storage.continueToken", {"v": "string", "rv": "int64", "start": "string"})
_TOKENS: Final = "meta.k8s.io/v1"


def _read_token(token: str, namespace: str, *, is_deep: bool) -> tuple[int, Key]:
    """Return the revision and the key of a token. Raises: BadRequest (DecodeContinue in apiserver's pkg/storage/continue.go)."""
    try:
        value = unmarshal(decode_body(_decoded(token)), _TOKEN)
        version, revision, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
        if version != _TOKENS:
            raise ValueError(f"server does not recognize this encoded version {version}")
        if not revision:
            raise ValueError(f"incorrect encoded start resourceVersion (version {version})")
        if not start:
            raise ValueError(f"encoded start key empty (version {version})")
        # Go's path.Clean leaves the key as it is.
        inside = start.removeprefix("/").removesuffix("/").split("/")
        if {"", ".", ".."}.intersection(inside):
            raise ValueError(start)
    except ValueError as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from None
    start = start.removeprefix("/")
    if namespace:
        return revision, (namespace, start)
    before, slash, name = start.partition("/")
    if not slash:  # of one namespace, or of what has none
        return revision, (start, "") if is_deep else ("", start)
    return revision, (before, name)
