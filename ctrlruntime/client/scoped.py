"""Clients that add something to another: a namespace, dry run, a field owner, field validation.

Each wraps any `Client` and is one. What a call says itself wins, but for dry run, which always holds.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar, override

from ctrlruntime.api.metadata import NamespacedName, ObjectKey
from ctrlruntime.client.codec import Codecs
from ctrlruntime.client.interfaces import (
    Client,
    Fields,
    FieldValidation,
    Items,
    Labels,
    Reader,
)
from ctrlruntime.client.wrapped import WrappedClient, WriteOptions

T = TypeVar("T")


class _DryRun(WrappedClient):
    @override
    def _options(self, options: WriteOptions) -> WriteOptions:
        return WriteOptions(True, options.field_owner, options.field_validation)


class _FieldOwner(WrappedClient):
    def __init__(self, wrapped: Client, owner: str) -> None:
        super().__init__(wrapped)
        self._owner = owner

    @override
    def _options(self, options: WriteOptions) -> WriteOptions:
        return WriteOptions(options.dry_run, options.field_owner or self._owner, options.field_validation)


class _FieldValidation(WrappedClient):
    def __init__(self, wrapped: Client, validation: FieldValidation) -> None:
        super().__init__(wrapped)
        self._validation: FieldValidation = validation

    @override
    def _options(self, options: WriteOptions) -> WriteOptions:
        return WriteOptions(options.dry_run, options.field_owner, options.field_validation or self._validation)


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
        return NamespacedName(self._own, key.name)

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
            raise ValueError(f"the {codec.gvk.kind} has no metadata; give it one with a name")
        metadata.namespace = self._own

    async def _is_namespaced(self, kind: type[Any]) -> bool:
        return await self.mapper.is_namespaced(self._codecs.of(kind).gvk)

    def _check(self, namespace: str, what: str) -> None:
        if namespace not in {"", self._own}:
            raise ValueError(f"{what} is in namespace {namespace!r}, and this client is bound to {self._own!r}")


class _NamespacedReader:
    """The reader beside a namespaced client, bound like it."""

    def __init__(self, client: _Namespaced, wrapped: Reader) -> None:
        self._client = client
        self._wrapped = wrapped

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        return await self._wrapped.get(kind, await self._client.bound_key(kind, key))

    async def find(self, kind: type[T], key: ObjectKey) -> T | None:
        return await self._wrapped.find(kind, await self._client.bound_key(kind, key))

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Labels | None = None,
        fields: Fields | None = None,
        limit: int | None = None,
        continue_token: str = "",
    ) -> Items[T]:
        return await self._wrapped.list(
            kind,
            namespace=await self._client.bound_namespace(kind, namespace),
            labels=labels,
            fields=fields,
            limit=limit,
            continue_token=continue_token,
        )


def dry_run(client: Client) -> Client:
    """Return a client whose writes are all validated by the server and none stored."""
    return _DryRun(client)


def with_field_owner(client: Client, owner: str) -> Client:
    """Return a client that writes as field owner `owner`, unless a call names another."""
    return _FieldOwner(client, owner)


def with_field_validation(client: Client, validation: FieldValidation) -> Client:
    """Return a client that asks the server to treat unknown fields as `validation` says (apply is always strict)."""
    return _FieldValidation(client, validation)


def namespaced(client: Client, namespace: str) -> Client:
    """Return a client bound to one namespace: it fills it in, and refuses another. Cluster-scoped kinds pass."""
    return _Namespaced(client, namespace)
