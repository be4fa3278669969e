"""Parts that stand for a cluster whose cache holds ConfigMaps of its own making."""

from __future__ import annotations

import asyncio
import contextlib
import json

from servers import LONGEST_WAIT

from ctrlruntime.api import GroupVersionKind
from ctrlruntime.api.metadata import metadata_of
from ctrlruntime.cache.reflector import State
from ctrlruntime.cache.scope import Scope
from ctrlruntime.cache.store import Entry, Store
from ctrlruntime.client.gate import Gate
from ctrlruntime.controller.controller import Controller
from ctrlruntime.controller.options import ControllerOptions
from ctrlruntime.explain.explainer import Explainer
from ctrlruntime.explain.loops import WriteLoops
from ctrlruntime.journal import Changes, Journal, Trigger
from ctrlruntime.reconcile import Request
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.workqueue import ItemExponentialFailureRateLimiter

A = Request("ns", "a")


def raw(name, version, **data):
    metadata = {"name": name, "namespace": "ns", "uid": "u", "resourceVersion": version}
    return json.dumps({"metadata": metadata, "data": data}).encode()


class Reflector:
    state = State.WATCHING
    last_activity = 90.0
    watches = 3
    relists = 1
    version = "7"


class Informer:
    is_synced = True
    subscriber_count = 2
    part = None

    def __init__(self, *names, scope=None, trouble=""):
        self.store = Store()
        for name in names:
            body = raw(name, "7")
            self.store.put(Entry(body, metadata_of(body)))
        self.reflectors = {scope or Scope(): Reflector()}
        self._trouble = trouble

    def trouble(self, scope):
        return self._trouble


class Cache:
    def __init__(self, **informers):
        self._informers = {GroupVersionKind("", "v1", kind): informer for kind, informer in informers.items()}

    def informers(self):
        return self._informers

    def all_informers(self):
        return list(self._informers.items())


class Mapper:
    """Discovery that nobody has loaded."""

    def loaded(self):
        return []


class Cluster:
    mapper = Mapper()

    def __init__(self, name="", **informers):
        self.name = name
        self.cache = Cache(**informers)
        self.gate = Gate()


class Feed:
    """A source whose queue the test fills."""

    def __init__(self):
        self.queue = None

    def __repr__(self):
        return "Feed"

    async def start(self, queue):
        self.queue = queue

    async def wait_for_sync(self):
        return

    async def stop(self):
        return


def trigger(event="create", source="ConfigMap", name="a", version="2", before=""):
    return Trigger(event, source, "ns", name, version, "", before, 1000.0)


def changed(name="a"):
    """An update whose old and new bytes are at hand."""
    update = trigger("update", name=name, version="3", before="2")
    Changes().hold(update, raw(name, "2", size="1"), raw(name, "3", size="2"))
    return update


class Setting:
    """One controller of ConfigMaps, what it knows, and who explains it."""

    def __init__(
        self, reconcile, *, clusters=None, kind="ConfigMap", name="configmap", started=True, shard=None, ring=None
    ):
        self.journal = Journal()
        self.feed = Feed()
        self.controller = Controller(
            name,
            reconcile,
            options=ControllerOptions(
                rate_limiter=ItemExponentialFailureRateLimiter(60.0), max_concurrent_reconciles=2
            ),
            journal=self.journal,
            kind=kind,
            shard=shard,
        )
        self.controller.watch(self.feed)
        self.clusters = [Cluster(ConfigMap=Informer("a"), Pod=Informer())] if clusters is None else clusters
        self.loops = [WriteLoops()]
        self.explainer = Explainer(
            self.journal,
            lambda: [self.controller],
            lambda: self.clusters,
            loops=lambda: self.loops,
            ring=lambda: ring,
            clock=lambda: 100.0,
        )

    def add(self, key, trigger=None, **options):
        self.controller.queue.add(key, trigger=trigger, **options)

    async def ran(self, key=A, times=1):
        """Wait until the key was reconciled so often."""
        history = self.journal.history
        await eventually(
            lambda: len(history(self.controller.name, key).runs) >= times, timeout=LONGEST_WAIT, interval=0.001
        )


@contextlib.asynccontextmanager
async def running(setting):
    task = asyncio.create_task(setting.controller.start())
    try:
        yield setting
    finally:
        await setting.controller.stop(0)
        await task


__all__ = [
    "A",
    "Cluster",
    "Informer",
    "Setting",
    "changed",
    "running",
    "trigger",
]
