"""Servers without a network: one that follows a script, and one that behaves (and misbehaves) by itself."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from servers import LONGEST_WAIT

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.cache.informer import Informer
from ctrlruntime.cache.reflector import Listed, Reflector, Replaced, WatchOptions
from ctrlruntime.cache.scope import Scope
from ctrlruntime.errors import Expired
from ctrlruntime.rest.collection import Page
from ctrlruntime.rest.watch import Frame

KIND = GroupVersionKind("", "v1", "Thing")
PAGES = WatchOptions(streaming_list=False)


def obj(name, version, *, namespace="ns", uid=None, **more):
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    metadata |= more.pop("metadata", {})
    return json.dumps({"metadata": metadata, **more}, separators=(",", ":")).encode()


def added(name, version, **more):
    return Frame("ADDED", obj(name, version, **more))


def modified(name, version, **more):
    return Frame("MODIFIED", obj(name, version, **more))


def deleted(name, version, **more):
    return Frame("DELETED", obj(name, version, **more))


def bookmark(version, *, ends_initial=False):
    metadata = {"resourceVersion": str(version)}
    if ends_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return Frame("BOOKMARK", json.dumps({"metadata": metadata}).encode())


def page(*raws, version, token=""):
    return Page(list(raws), str(version), token, None)


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


HANGS = object()  # in a script: nothing comes any more


class Script:
    """A collection that gives prepared answers, in order, and notes what it was asked.

    For a list a `Page` or an error; for a watch a list of batches, seconds that pass, events to wait for, errors and HANGS.
    """

    shards = ""

    def __init__(self, time, *answers):
        self.time = time
        self.answers = list(answers)
        self.asked = []
        self.closed = 0
        self.exhausted = asyncio.Event()

    async def _next(self):
        if not self.answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        return self.answers.pop(0)

    async def page(self, *, limit=None, continue_token="", **_):
        self.asked.append(("list", limit, continue_token))
        answer = await self._next()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Page), f"the script has {answer} where a list is asked for"
        return answer

    async def watch(self, *, resource_version, timeout, timeout_grace, initial_events=False, interrupt=None):
        self.asked.append(("stream" if initial_events else "watch", resource_version))
        answer = await self._next()
        try:
            if isinstance(answer, Exception):
                raise answer
            assert isinstance(answer, list), f"the script has {answer} where a watch is asked for"
            for step in answer:
                if isinstance(step, Exception):
                    raise step
                if step is HANGS:
                    try:
                        async with asyncio.timeout(None) as interrupt.limit:
                            await asyncio.Event().wait()
                    except TimeoutError:
                        return
                elif isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, int | float):
                    self.time.now += step
                else:
                    yield step
        finally:
            self.closed += 1

    @property
    def kinds_asked(self):
        return [asked[0] for asked in self.asked]


def reflector_of(script, *, options=PAGES, resolve=None, **more):
    async def resolved():
        return script

    return Reflector(
        resolve or resolved, options=options, clock=script.time, rng=lambda: 0.0, sleep=script.time.sleep, **more
    )


async def whole(updates):
    """Yield updates with the pages of each list put together, as one `Replaced`."""
    pages = []
    async for update in updates:
        if isinstance(update, Listed):
            assert update.number in (0, len(pages)), "a page is missing"
            pages = [*pages[: update.number], update.items]
        elif isinstance(update, Replaced):
            assert update.pages == 0 or update.pages == len(pages), "a page is missing"
            items = [item for items in [*pages[: update.pages], update.items] for item in items]
            yield update._replace(items=items, pages=0)
        else:
            yield update


async def take(reflector, count):
    """Return the first `count` updates, a list counted as one."""
    taken = []
    async with asyncio.timeout(LONGEST_WAIT), aclosing(reflector.updates()) as pages, aclosing(whole(pages)) as updates:
        async for update in updates:
            taken.append(update)
            if len(taken) == count:
                return taken
    raise AssertionError("unreachable")


def informer_of(*scripts, options=PAGES, **more):
    """An informer over one script for all namespaces, or over a mapping of scopes to scripts."""
    by_scope = scripts[0] if isinstance(scripts[0], dict) else {Scope(): scripts[0]}
    time = next(iter(by_scope.values())).time

    async def plan():
        return {scope: reflector_of(script, options=options) for scope, script in by_scope.items()}

    kept = {"transform": more.pop("transform", None), "sync_period": more.pop("resync_period", None)}
    by_scope = {replace(scope, **kept): script for scope, script in by_scope.items()}
    more = {"clock": time, "rng": lambda: 0.5, "sleep": time.sleep, **more}
    return Informer("Thing.v1", KIND, more.pop("plan", plan), watch=options, **more)


@asynccontextmanager
async def running(informer):
    task = asyncio.create_task(informer.run())
    try:
        yield task
    finally:
        informer.stop()
        async with asyncio.timeout(LONGEST_WAIT):
            await task


async def until(informer, condition):
    """Wait until `condition()` holds, looking after each update."""
    async with asyncio.timeout(LONGEST_WAIT):
        while not condition():
            await informer.changed()


async def eventually(condition):
    """Let others run until `condition()` holds."""
    async with asyncio.timeout(LONGEST_WAIT):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0)


def drain(subscription):
    events = []
    while (event := subscription.pop()) is not None:
        events.append(event)
    return events


def content(store):
    return {(entry.meta.namespace, entry.meta.name): entry.raw for entry in store}


class World:
    """A server with a history: lists in pages, streams, watches, forgets, and fails when told to."""

    shards = ""

    def __init__(self, time):
        self.time = time
        self.revision = 1
        self.objects = {}
        self.log = []
        self.oldest = 0
        self.faults = []
        self.supports_streaming = True
        self.changed = asyncio.Event()
        self.lists = 0
        """The number of lists that an informer began; a live read is not one."""

    def put(self, name, *, uid=None, owner=""):
        known = self.objects.get(name)
        self.revision += 1
        uid = uid or (known["uid"] if known else f"{name}-{self.revision}")
        references = [{"kind": "Root", "name": owner, "uid": f"uid-{owner}"}] if owner else None
        raw = obj(name, self.revision, uid=uid, **({"metadata": {"ownerReferences": references}} if owner else {}))
        self._note("MODIFIED" if known and known["uid"] == uid else "ADDED", name, raw)
        self.objects[name] = {"uid": uid, "raw": raw}

    def delete(self, name):
        if (known := self.objects.pop(name, None)) is not None:
            self.revision += 1
            self._note("DELETED", name, obj(name, self.revision, uid=known["uid"]))

    def _note(self, type, name, raw):
        self.log.append((self.revision, Frame(type, raw)))
        self.changed.set()
        self.changed = asyncio.Event()

    def forget(self):
        """Compact the history: older versions answer 410."""
        self.oldest = self.revision
        self.log.clear()

    def wake(self):
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def content(self):
        return {("ns", name): known["raw"] for name, known in self.objects.items()}

    def _fault(self, place):
        for fault in self.faults:
            if fault[0] == place:
                self.faults.remove(fault)
                raise fault[1]

    async def page(self, *, limit=None, continue_token="", **_):
        await asyncio.sleep(0)
        if not continue_token:
            self._fault("list")
            self.lists += 1
            version, start = self.revision, 0
            self.snapshot = [known["raw"] for _, known in sorted(self.objects.items())]
        else:
            self._fault("page")
            version, start = (int(part) for part in continue_token.split(":"))
            if version < self.oldest:
                raise Expired("the continue token is too old")
        end = min(start + limit, len(self.snapshot))
        token = f"{version}:{end}" if end < len(self.snapshot) else ""
        return page(*self.snapshot[start:end], version=version, token=token)

    async def all(self):
        """Return what a live read of everything returns."""
        await asyncio.sleep(0)
        return [known["raw"] for _, known in sorted(self.objects.items())], str(self.revision)

    async def watch(self, *, resource_version, timeout, timeout_grace, initial_events=False, interrupt=None):
        await asyncio.sleep(0)
        self._fault("stream" if initial_events else "watch")
        if initial_events:
            at = self.revision
            for _, known in sorted(self.objects.items()):
                yield [Frame("ADDED", known["raw"])]
                await asyncio.sleep(0)
                self._fault("stream-middle")
            if at < self.oldest:
                raise Expired("the history of the initial events is gone")
            # What happened meanwhile comes before the end mark.
            for revision, frame in list(self.log):
                if revision > at:
                    yield [frame]
                    at = revision
            yield [bookmark(at, ends_initial=True)]
        else:
            at = int(resource_version)
        ends = self.time.now + timeout
        while True:
            if at < self.oldest:
                raise Expired("too old resource version")
            self._fault("in-stream")
            if any(fault[0] == "end" for fault in self.faults):
                self.faults.remove(next(fault for fault in self.faults if fault[0] == "end"))
                self.time.now = max(self.time.now, ends)
                return
            batch = [(revision, frame) for revision, frame in self.log if revision > at]
            if batch:
                at = batch[-1][0]
                yield [frame for _, frame in batch]
            else:
                await self.changed.wait()
