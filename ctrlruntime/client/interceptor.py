"""Hooks between a caller and a client, for tests that need a failure, a delay or a record of calls.

    async def refuse(client, obj, **options):
        raise Conflict("another client was faster")

    client = intercept(client, update=refuse)

A hook replaces a method. It receives the wrapped client and the arguments of the call: required arguments by position, options by keyword
(all of them, with their defaults). To forward the call, call the client. Methods without a hook are forwarded.

| hook | called with |
|---|---|
| `get` (also for `get_or_none`, where NotFound becomes None) | client, kind, key |
| `list`, `delete_all_of`, `watch` (returns an iterator, such as an async generator) | client, kind, options |
| `create`, `update`, `apply`, `delete` | client, obj, options |
| `patch` | client, obj, patch, options |
| `subresource_get`, `subresource_create` | client, name of the subresource, obj, body, options (`get` has none) |
| `subresource_update`, `subresource_apply` | client, name, obj, options |
| `subresource_patch` | client, name, obj, patch, options |
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from typing_extensions import TypeVar, Unpack, override

from ctrlruntime.api.metadata import ObjectKey
from ctrlruntime.client.interfaces import Client, ListResult, WatchEvent
from ctrlruntime.client.options import ListOptions, WatchOptions, default_options
from ctrlruntime.client.wrapped import WrappedClient
from ctrlruntime.errors import NamespaceNotCachedError, NotCachedError, NotFound

T = TypeVar("T")

Hook: TypeAlias = Callable[..., Awaitable[Any]]
WatchHook: TypeAlias = Callable[..., AsyncIterator[WatchEvent[Any]]]


def intercept(
    client: Client,
    *,
    get: Hook | None = None,
    list: Hook | None = None,
    create: Hook | None = None,
    update: Hook | None = None,
    patch: Hook | None = None,
    apply: Hook | None = None,
    delete: Hook | None = None,
    delete_all_of: Hook | None = None,
    watch: WatchHook | None = None,
    subresource_get: Hook | None = None,
    subresource_create: Hook | None = None,
    subresource_update: Hook | None = None,
    subresource_patch: Hook | None = None,
    subresource_apply: Hook | None = None,
) -> Client:
    """Return a client that calls these hooks instead of its methods.

    `client.status` uses the subresource hooks.
    """
    hooks = {
        "get": get,
        "list": list,
        "create": create,
        "update": update,
        "patch": patch,
        "apply": apply,
        "delete": delete,
        "delete_all_of": delete_all_of,
        "subresource_get": subresource_get,
        "subresource_create": subresource_create,
        "subresource_update": subresource_update,
        "subresource_patch": subresource_patch,
        "subresource_apply": subresource_apply,
    }
    return _Intercepted(client, {verb: hook for verb, hook in hooks.items() if hook is not None}, watch)


class _Intercepted(WrappedClient):
    def __init__(self, wrapped: Client, hooks: Mapping[str, Hook], watch: WatchHook | None) -> None:
        super().__init__(wrapped)
        self._hooks = hooks
        self._watch_hook = watch

    @override
    async def _call(self, verb: str, *args: Any, subresource: str | None = None, options: Mapping[str, Any]) -> Any:
        hook = self._hooks.get(verb if subresource is None else f"subresource_{verb}")
        if hook is None:
            return await super()._call(verb, *args, subresource=subresource, options=options)
        named = () if subresource is None else (subresource,)
        defaults = default_options(verb, subresource=subresource is not None)
        return await hook(self._wrapped, *named, *args, **{**defaults, **options})

    @override
    async def get(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T:
        hook = self._hooks.get("get")
        if hook is None:
            return await super().get(kind, key, live_fallback=live_fallback)
        try:
            answer: T = await hook(self._wrapped, kind, key)
        except NotCachedError:
            if not live_fallback:
                raise
            return await self._wrapped.api_reader.get(kind, key)
        return answer

    @override
    async def get_or_none(self, kind: type[T], key: ObjectKey, *, live_fallback: bool = False) -> T | None:
        if "get" not in self._hooks:
            return await super().get_or_none(kind, key, live_fallback=live_fallback)
        try:
            return await self.get(kind, key, live_fallback=live_fallback)
        except NamespaceNotCachedError:
            raise
        except NotFound:
            return None

    @override
    async def list(self, kind: type[T], **options: Unpack[ListOptions]) -> ListResult[T]:
        hook = self._hooks.get("list")
        if hook is None:
            return await super().list(kind, **options)
        items: ListResult[T] = await hook(self._wrapped, kind, **{**default_options("list"), **options})
        return items

    @override
    def watch(self, kind: type[T], **options: Unpack[WatchOptions]) -> AsyncIterator[WatchEvent[T]]:
        if self._watch_hook is None:
            return super().watch(kind, **options)
        return self._watch_hook(self._wrapped, kind, **{**default_options("watch"), **options})
