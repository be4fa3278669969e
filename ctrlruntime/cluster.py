"""One cluster: configuration, scheme, mapper, gate, clients, cache and recorders.

The manager has one for its own cluster. You can add more; their caches start and stop with the manager.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import anyio
from typing_extensions import override

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.api.object import Unstructured
from ctrlruntime.cache.cache import Cache
from ctrlruntime.cache.observer import CacheObserver
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.cache.unreadable import Unreadable
from ctrlruntime.client.api import APIClient
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.interfaces import Client, Reader
from ctrlruntime.client.observers import CallObservers
from ctrlruntime.client.split import SplitClient
from ctrlruntime.client.unchanged import DECIDING_GROUPS, UnchangedWrites
from ctrlruntime.metrics import Metrics
from ctrlruntime.recorder import EventRecorder
from ctrlruntime.rest.config import Config
from ctrlruntime.rest.contact import Contact
from ctrlruntime.rest.fence import Fence
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme


class Cluster:
    """One API server, with its clients and cache.

    Args:
        name: "" for the manager's own; part of each request.
        disable_cache_for: classes that `client` always reads live.
        read_your_writes_timeout: seconds that a cached read waits for this process's own writes. After that it is a live read.

    """

    def __init__(
        self,
        config: Config,
        *,
        name: str = "",
        scheme: Scheme | None = None,
        cache: CacheOptions | None = None,
        disable_cache_for: Collection[type[Any]] = (),
        read_your_writes_timeout: float = 5.0,
        fence: Fence | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.config = config
        self.name = name
        self.scheme = scheme or Scheme()
        self.metrics = metrics = metrics or Metrics()
        """The metrics of the cluster. A manager serves them with its own."""

        self.fence = fence or Fence(refused=metrics.fence.refused)
        """Rejects writes that need leadership. The manager enables it if it elects a leader."""

        self.contact = Contact(metrics.rest)
        """Whether the API server responds."""

        self.transport = Transport(config, fence=self.fence, counter=self.contact)
        # Events and reviews must go on while writes that belong to the leader are refused.
        self._unfenced = self.transport.sibling(is_limited=False)
        self.mapper = RESTMapper(self.transport.fetch)
        self.gate = Gate(wait=read_your_writes_timeout, waits=metrics.client(name))
        self.observers = CallObservers(cluster=name)
        """Observers of the calls of `client`, `api_reader` and the cache, and of their results."""

        self._api = APIClient(
            self.transport, self.mapper, self.scheme, gate=self.gate, observers=self.observers, cluster=name
        )
        self.cache = Cache(
            self.transport,
            self.mapper,
            self.scheme,
            options=cache,
            metrics=metrics,
            cluster=name,
            observer=_CacheDiagnostics(self.observers, self._api.unchanged_writes, self._record_unreadable),
        )
        self.gate.watch_views(self.cache.views)
        self.observers.use_cache(self.cache.whole_object)
        self.client: Client = SplitClient(
            self._api, self.cache, self.gate, disable_cache_for=disable_cache_for, reads_live=self.cache.reads_live
        )
        self._recorders: dict[str, EventRecorder] = {}
        self._recorder_added = asyncio.Event()

    @property
    def api_reader(self) -> Reader:
        """A reader that always reads from the API server. Also works before the start."""
        return self._api

    def distrust_cache(self) -> None:
        """Compare each cached kind with the API server before its next read.

        A new leader calls it.

        The previous leader may have written objects that no watch has delivered yet. Each kind and namespace is compared by the first read
        of it, so one that cannot be compared fails only its own reads, with StaleReadError. Connections that may have died are
        replaced: idle ones, and those of silent watches.
        """
        self.transport.distrust_connections()
        self.cache.refresh()
        self.gate.distrust(self.cache.contents())

    def replace_credentials(self, config: Config) -> bool:
        """Use other credentials and certificates from the next request on.

        The cache and its watches stay. Returns False, and changes nothing, if the configurations differ in anything else, such as the address.

        Raises: ConfigError for certificates that cannot be used; then nothing changes.
        """
        if not self.config.differs_in_credentials_only(config):
            return False
        self.transport.replace_credentials(config)
        self._unfenced.replace_credentials(dataclasses.replace(config, qps=None))
        self.config = config
        return True

    def check_writes(self, check: Callable[[GroupVersionKind, str, str], None], /) -> None:
        """Call `check` before each write, except dry runs.

        It gets kind, namespace and name; the name is empty for all objects of the namespace. An error that it raises is the
        result of the write. A manager with sharding uses it.
        """
        self._api.check_write = check

    def unfenced_client(self) -> Client:
        """Return a direct client whose writes need no leadership.

        Use it for leader election, Events and reviews only.
        """
        observers = CallObservers(origin="unfenced", cluster=self.name)
        return APIClient(self._unfenced, self.mapper, self.scheme, observers=observers, cluster=self.name)

    def event_recorder(self, controller: str) -> EventRecorder:
        """Return the event recorder of `controller`, one for each name.

        It writes while the cluster runs.
        """
        recorder = self._recorders.get(controller)
        if recorder is None:
            counters = self.metrics.events(controller, self.name)
            recorder = self._recorders[controller] = EventRecorder(self.unfenced_client(), controller, metrics=counters)
            self._recorder_added.set()
        return recorder

    def _record_unreadable(self, found: Unreadable) -> None:
        """Record a Warning Event about an object that does not fit its class: who can repair it looks there."""
        kind, meta = found.kind, found.meta
        identity = {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        subject = Unstructured.from_dict({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": identity})
        recorder = self.event_recorder("ctrlruntime")
        recorder.event(subject, type="Warning", reason="DecodeFailed", action="Decode", note=str(found.error))

    async def start(self) -> None:
        """Run the cache and the recorders until cancelled.

        Only for a cluster outside a manager.
        """
        async with anyio.create_task_group() as group:
            group.start_soon(self._run_recorders)
            await self.cache.run()

    async def _run_recorders(self) -> None:
        """Write recorded Events until cancelled; then what is queued is still tried for a moment."""
        started = 0
        async with anyio.create_task_group() as group:
            while True:
                self._recorder_added.clear()
                for recorder in tuple(self._recorders.values())[started:]:
                    group.start_soon(recorder.run)
                started = len(self._recorders)
                await self._recorder_added.wait()

    async def wait_running(self) -> None:
        """Wait until the cache accepts reads."""
        await self.cache.wait_running()

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self.mapper.close()
        await self.transport.close()
        await self._unfenced.close()


class _CacheDiagnostics(CacheObserver):
    """Passes events of the cache to the observers of the cluster, and undecodable objects to its event recorder.

    Changes of CRDs, webhooks and policies, and resyncs, end the memory of unchanged writes.
    """

    def __init__(
        self,
        observers: CallObservers,
        unchanged_writes: UnchangedWrites,
        record_unreadable: Callable[[Unreadable], None],
    ) -> None:
        self._observers = observers
        self._unchanged_writes = unchanged_writes
        self._record_unreadable = record_unreadable

    @override
    def requesting(self, verb: str, resource: APIResource, namespace: str) -> None:
        self._observers.record(verb, resource.group, resource.plural, namespace=namespace, origin="cache")

    @override
    def changed(self, kind: GroupVersionKind, meta: Metadata, raw: bytes) -> None:
        if kind.group in DECIDING_GROUPS:
            self._unchanged_writes.forget()
        self._observers.changed(kind, meta, raw)

    @override
    def showing_again(self, kind: GroupVersionKind) -> None:
        self._unchanged_writes.forget()

    @override
    def unreadable(self, found: Unreadable) -> None:
        self._record_unreadable(found)
