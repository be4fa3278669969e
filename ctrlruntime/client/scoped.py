"""Clients that add something to another client: a namespace, dry run, a field manager, field validation.

Each wraps any `Client` and is a `Client`. Options of a call override those of the wrapper, except for dry run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typing_extensions import TypeVar, Unpack, override

from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.client.codec import Codecs, rebound_key
from ctrlruntime.client.interfaces import Client, FieldValidation, ListResult, Reader
from ctrlruntime.client.options import ListOptions, default_options
from ctrlruntime.client.wrapped import WrappedClient

T = TypeVar("T")


class _Filling(WrappedClient):
    """Sets options that a method has and the call leaves out."""

    def __init__(self, wrapped: Client, own: Mapping[str, Any]) -> None:
        super().__init__(wrapped)
        self._own = own

    @override
    async def _call(self, verb: str, *args: Any, subresource: str | None = None, options: Mapping[str, Any]) -> Any:
        takes = default_options(verb, subresource=subresource is not None)
        own = {name: value for name, value in self._own.items() if name in takes and not options.get(name)}
        return await super()._call(verb, *args, subresource=subresource, options={**options, **own})


class _Namespaced(WrappedClient):
    def __init__(self, wrapped: Client, namespace: str) -> None:
        super().__init__(wrapped)
        self._own = namespace
        self._codecs = Codecs(wrapped.scheme)

    @override
    async def bound_namespace(self, kind: type[Any], namespace: str | None) -> str | None:
        if not await self._is_namespaced(kind):
            return namespace
        self._check(namespace or "", kind.__name__)
        return self._own

    @override
    async def bound_key(self, kind: type[Any], key: ObjectKey) -> ObjectKey:
        if not await self._is_namespaced(kind):
            return key
        self._check(key.namespace, f"{kind.__name__} {key.name}")
        return rebound_key(key, self._own)

    @property
    @override
    def api_reader(self) -> Reader:
        return _NamespacedReader(self, super().api_reader)

    @override
    async def _prepare(self, obj: object) -> None:
        codec = self._codecs.for_object(obj)
        if not await self.mapper.is_namespaced(codec.gvk):
            return
        key = codec.key(obj)
        self._check(key.namespace, f"{codec.gvk.kind} {key.name}")
        metadata = getattr(obj, "metadata", None)
        if metadata is None:
            raise ValueError(f"the {codec.gvk.kind} has no metadata. Set metadata with a name")
        metadata.namespace = self._own

    async def _is_namespaced(self, kind: type[Any]) -> bool:
        return await self.mapper.is_namespaced(self._codecs.of(kind).gvk)

    def _check(self, namespace: str, what: str) -> None:
        if namespace not in {"", self._own}:
            raise ValueError(f"{what} is in namespace {namespace!r}, but this client is bound to {self._own!r}")


class _NamespacedReader:
    """The reader of a namespaced client, with the same namespace."""

    def __init__(self, client: _Namespaced, wrapped: Reader) -> None:
        self._client = client
        self._wrapped = wrapped

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        return await self._wrapped.get(kind, await self._client.bound_key(kind, key))

    async def get_or_none(self, kind: type[T], key: ObjectKey) -> T | None:
        return await self._wrapped.get_or_none(kind, await self._client.bound_key(kind, key))

    async def list(self, kind: type[T], **options: Unpack[ListOptions]) -> ListResult[T]:
        options["namespace"] = await self._client.bound_namespace(kind, options.get("namespace"))
        return await self._wrapped.list(kind, **options)


def dry_run(client: Client) -> Client:
    """Return a client that sends all writes with dry_run.

    The server validates them and stores nothing.
    """
    return _Filling(client, {"dry_run": True})


def with_field_owner(client: Client, owner: str) -> Client:
    """Return a client whose field manager is `owner`, unless a call sets another."""
    return _Filling(client, {"field_owner": owner})


def with_field_validation(client: Client, validation: FieldValidation) -> Client:
    """Return a client that sets the field validation of writes.

    Apply is always strict.
    """
    return _Filling(client, {"field_validation": validation})


def namespaced(client: Client, namespace: str) -> Client:
    """Return a client for one namespace: it sets the namespace, and rejects another.

    Cluster-scoped kinds pass.
    """
    return _Namespaced(client, namespace)
