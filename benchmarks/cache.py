"""The cache by itself, from prepared answers: `python -m benchmarks.cache` prints each figure beside its bar.

20,000 custom resources of 1.3 KB (and half as much again of managedFields) in pages of 500: what it costs to list, cut
and store them, to read them, and to tell subscribers of changes. Metadata alone of 20,000 and 50,000 objects of 2 KiB:
what an object takes, and how much more while they are listed. No network and no server: CPU time of this process.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, cast

from ctrlruntime import log
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName, envelope_of, metadata_of
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object, PartialObjectMetadata
from ctrlruntime.cache import cache as cache_module
from ctrlruntime.cache.cache import Cache, running
from ctrlruntime.cache.managed_fields import cut_managed_fields
from ctrlruntime.cache.options import CacheOptions
from ctrlruntime.cache.reflector import WatchOptions
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import Expired
from ctrlruntime.rest.collection import Collection
from ctrlruntime.rest.connection import Headers
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.transport import Response, Transport
from ctrlruntime.rest.watch import Frame
from ctrlruntime.scheme import Scheme

OBJECTS = 20_000
PAGE = 500
ROUNDS = 5
EVENTS = 20_000


class GadgetSpec(Model):
    size: int = 0
    image: str = ""
    parameters: list[str] = []  # noqa: RUF012 - pydantic copies it


class Gadget(Object, group="bench.example.com", version="v1"):
    spec: GadgetSpec = GadgetSpec()


def gadget(number: int, version: int) -> bytes:
    tree = {
        "apiVersion": "bench.example.com/v1",
        "kind": "Gadget",
        "metadata": {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
            "labels": {"app": f"app-{number % 10}", "tier": "backend"},
            "managedFields": [
                {"apiVersion": "bench.example.com/v1", "fieldsType": "FieldsV1", "manager": "bench", "operation": "Update",
                 "fieldsV1": {"f:spec": {f"f:parameter-{n}": {} for n in range(25)}}},
            ],
            "name": f"gadget-{number:05}",
            "namespace": f"ns-{number % 20}",
            "resourceVersion": str(version),
            "uid": f"6f0bd5b2-0000-4000-8000-{number:012}",
        },
        "spec": {"size": number, "image": "registry/image:1", "parameters": [f"parameter {n:02} {'x' * 30}" for n in range(18)]},
    }  # fmt: skip
    return json.dumps(tree, separators=(",", ":")).encode()


def metadata_alone(number: int, version: int) -> bytes:
    """2 KiB as the server sends it, a quarter of it managedFields."""
    tree = json.loads(gadget(number, version))
    annotations = {f"example.com/note-{n}": f"note {n:02} of {number:06} {'x' * 60}" for n in range(10)}
    metadata = tree["metadata"] | {"annotations": annotations}
    tree = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
    return json.dumps(tree, separators=(",", ":")).encode()


class Prepared:
    """A transport that answers lists from memory; each answer is a copy, as one from the network is."""

    def __init__(self, make: Callable[[int, int], bytes] = gadget, count: int = OBJECTS) -> None:
        self.count = count
        raws = [make(number, number + 1) for number in range(count)]
        self.pages = [
            b'{"kind":"GadgetList","metadata":{"resourceVersion":"30000"%s},"items":[%s]}'
            % (b"" if start + PAGE >= count else b',"continue":"%d"' % (start + PAGE), b",".join(raws[start : start + PAGE]))
            for start in range(0, count, PAGE)
        ]  # fmt: skip

    async def request(
        self, _method: str, _path: str, *, params: Sequence[tuple[str, str]], **_options: Any
    ) -> Response:
        start = int(dict(params).get("continue", 0))
        return Response(200, Headers(), bytes(bytearray(self.pages[start // PAGE])))


class Mapper:
    async def resource_for(self, gvk: GroupVersionKind) -> APIResource:
        return APIResource(group=gvk.group, version=gvk.version, plural="gadgets", kind=gvk.kind, namespaced=True)

    def invalidate(self, group: str | None = None) -> None:
        return


class Changes:
    """What the watches yield: batches put by the benchmark."""

    def __init__(self) -> None:
        self.batches: asyncio.Queue[list[Frame] | Expired] = asyncio.Queue()

    def expire(self) -> None:
        """Have the watch end so that the kind is listed again."""
        self.batches.put_nowait(Expired("too old"))

    def collection(self, *arguments: Any, **options: Any) -> Collection:
        collection = Collection(*arguments, **options)
        vars(collection)["watch"] = self.watch
        return collection

    async def watch(self, **_asked: Any) -> AsyncGenerator[list[Frame], None]:
        while True:
            batch = await self.batches.get()
            if isinstance(batch, Expired):
                raise batch
            yield batch


def new_cache(transport: Prepared, changes: Changes) -> Cache:
    vars(cache_module)["Collection"] = changes.collection
    options = CacheOptions(watch=WatchOptions(streaming_list=False), sync_period=None)
    return Cache(cast("Transport", transport), cast("RESTMapper", Mapper()), Scheme(Gadget), options=options)


async def sync(transport: Prepared, subscribers: int = 0) -> float:
    """CPU seconds from nothing to a synced store."""
    changes = Changes()
    async with running(new_cache(transport, changes)) as cache:
        began = time.process_time()
        subscriptions = [await cache.subscribe(Gadget, name="bench") for _ in range(subscribers)]
        await cache.list(Gadget, limit=1)
        for subscription in subscriptions:
            while subscription.pop() is not None:
                pass
        return time.process_time() - began


async def memory(transport: Prepared, kind: type = Gadget) -> tuple[float, float, float]:
    """KiB an object at rest, at the peak of the list, and at the peak of a list of the same objects later on."""
    changes = Changes()
    async with running(new_cache(transport, changes)) as cache:
        tracemalloc.start()
        await cache.list(kind, limit=1)
        rest, peak = tracemalloc.get_traced_memory()
        (informer,) = cache.informers().values()
        tracemalloc.reset_peak()
        changes.expire()
        while sum(reflector.relists for reflector in informer.reflectors.values()) < 2:
            await informer.changed()
        _, later = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return rest / transport.count / 1024, peak / transport.count / 1024, later / transport.count / 1024


async def reads(transport: Prepared) -> tuple[float, float, float]:
    """Typed gets and metadata gets a second, and seconds for a list of 2,000 by label read through metas."""
    async with running(new_cache(transport, Changes())) as cache:
        await cache.list(Gadget, limit=1)
        keys = [NamespacedName(f"ns-{number % 20}", f"gadget-{number:05}") for number in range(OBJECTS)]
        metadata = PartialObjectMetadata.of(Gadget)
        rates = []
        for kind in (Gadget, metadata):
            began = time.process_time()
            for key in keys:
                await cache.get(kind, key)
            rates.append(OBJECTS / (time.process_time() - began))
        began = time.process_time()
        names = [meta.name for meta in (await cache.list(Gadget, labels={"app": "app-3"})).metadata]
        assert len(names) == OBJECTS // 10
        return rates[0], rates[1], time.process_time() - began


async def events(transport: Prepared, subscribers: int) -> float:
    """Microseconds an update costs with so many subscribers that take it and look at its metadata."""
    changes = Changes()
    async with running(new_cache(transport, changes)) as cache:
        subscriptions = [await cache.subscribe(Gadget, name="bench") for _ in range(subscribers)]
        await cache.list(Gadget, limit=1)
        (informer,) = cache.informers().values()
        frames = [Frame("MODIFIED", gadget(number, 40_000 + number)) for number in range(EVENTS)]

        async def take(subscription: Subscription[Gadget]) -> None:
            while await subscription.ready():
                while (event := subscription.pop()) is not None:
                    assert event.meta.name

        takers = [asyncio.create_task(take(subscription)) for subscription in subscriptions]
        await asyncio.sleep(0)
        began = time.process_time()
        for start in range(0, EVENTS, 10):
            changes.batches.put_nowait(frames[start : start + 10])
            await asyncio.sleep(0)
        while informer.version("ns-0") < 40_000 + EVENTS - 1:
            await informer.changed()
        spent = time.process_time() - began
        for taker in takers:
            taker.cancel()
        return spent / EVENTS * 1e6


def decoded() -> tuple[float, float]:
    """Microseconds for the metadata record of an object without managedFields, alone and with its kind."""
    raws = [cut_managed_fields(gadget(number, number)) for number in range(5_000)]
    best = {metadata_of: math.inf, envelope_of: math.inf}
    for _ in range(7):
        for decode, least in best.items():
            began = time.process_time()
            for raw in raws:
                decode(raw)
            best[decode] = min(least, (time.process_time() - began) / len(raws) * 1e6)
    alone, with_kind = best.values()
    return alone, with_kind


def line(what: str, figure: str, bar: str = "") -> None:
    print(f"{what:58} {figure:>14}   {bar}")


def memory_lines(what: str, transport: Prepared, kind: type, bar: str = "") -> None:
    rest, peak, later = asyncio.run(memory(transport, kind))
    line(f"memory an object{what}, at rest", f"{rest:.2f} KiB", bar)
    line("  at the peak of the first list", f"{peak:.2f} KiB", f"{peak / rest:.2f} times, bar 1.3")
    line("  at the peak of a list later on", f"{later:.2f} KiB", f"{later / rest:.2f} times, bar 1.3")


def main() -> None:
    log.setup(log.Options(log_level="error"))
    transport = Prepared()
    best = min(asyncio.run(sync(transport)) for _ in range(ROUNDS))
    line(f"list, cut and store {OBJECTS:,} objects", f"{best:.3f} s CPU", "bar 0.14 s")
    for count in (1, 5):
        with_subscribers = min(asyncio.run(sync(transport, count)) for _ in range(ROUNDS))
        line(f"  the same with {count} subscriber{'s' * (count > 1)}", f"{with_subscribers:.3f} s CPU")
    alone, with_kind = decoded()
    line("metadata record of an object", f"{alone:.2f} µs")
    line("  the same with its kind", f"{with_kind:.2f} µs", f"{with_kind / alone:.2f} times")
    memory_lines("", transport, Gadget, "bar 2.6 KiB")
    metadata_kind = PartialObjectMetadata.of(Gadget)
    for count in (20_000, 50_000):
        memory_lines(f" of metadata, {count:,} of 2 KiB", Prepared(metadata_alone, count), metadata_kind)
    measured = [asyncio.run(reads(transport)) for _ in range(3)]
    typed, metadata = max(gets for gets, _, _ in measured), max(gets for _, gets, _ in measured)
    listed = min(seconds for _, _, seconds in measured)
    line("typed get", f"{typed:,.0f}/s", "bar 60,000/s")
    line("metadata get", f"{metadata:,.0f}/s")
    line(f"list {OBJECTS // 10:,} of {OBJECTS:,} by label, read metas", f"{listed * 1e3:.1f} ms", "bar 10 ms")
    for count in (0, 1, 5, 20):
        cost = min(asyncio.run(events(transport, count)) for _ in range(3))
        line(f"an update with {count} subscribers", f"{cost:.1f} µs")


if __name__ == "__main__":
    main()
