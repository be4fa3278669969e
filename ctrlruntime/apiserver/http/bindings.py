"""Bindings over HTTP, of a Pod or of its namespace."""

from __future__ import annotations

from collections.abc import Callable

from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.posted import Posted
from ctrlruntime.apiserver.interfaces import PODS
from ctrlruntime.apiserver.registry import Registry, WriteOptions
from ctrlruntime.apiserver.registry.bindings import BINDINGS, bind, check_binding
from ctrlruntime.schema.trees import Document


class Bindings(Posted):
    """Assigns Pods of one registry to Nodes."""

    kind = BINDINGS
    keeps_system = True

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        self._registry = registry
        self._now = now

    def check(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> None:
        name = body["metadata"].get("name") or ""
        check_binding(body, target.name if target.subresource else name)

    def act(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> Document | None:
        pods = self._registry.canonical(*PODS)
        bind(self._registry.writer, pods, body, timestamp(self._now()), dry_run=options.dry_run)
        return None


__all__ = ["Bindings"]
