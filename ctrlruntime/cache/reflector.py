"""The protocol of list and watch for one collection, as states.

```text
RESOLVING → LISTING → WATCHING ⟲        a watch that ends is resumed from its last version, without a list
     ↑          ↑________│ 410          a version that is too old: list again
     └── any state: error → wait (back-off with jitter) → the same state again
```

Below it is a `Collection` (pages and frames of bytes); above it an informer iterates over `Replaced`, `Changed` and `Progressed`. The
reflector holds no objects: its only memory is the version to resume from.

A watch proves its life by ending: it is asked for a length of 30 to 45 s and is dropped when it has not ended 10 s later, so a connection
that silently swallows everything is replaced within 55 s, without a list (docs/architecture.md, watches).
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.errors import (
    BadRequest,
    CtrlError,
    Expired,
    Forbidden,
    Gone,
    Invalid,
    NoMatchError,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from ctrlruntime.rest.collection import Collection
from ctrlruntime.rest.watch import Frame


class State(enum.Enum):
    """Where a reflector stands."""

    RESOLVING = "the server is asked which resource the kind is"
    LISTING = "the present objects are fetched"
    WATCHING = "changes arrive"
    WAITING = "after a failure, before the next try"


class Replaced(NamedTuple):
    """A complete list: what the collection holds at `resource_version`, and nothing else."""

    items: list[bytes]
    resource_version: str


class Change(NamedTuple):
    """One object was added, modified or deleted."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    raw: bytes


class Changed(NamedTuple):
    """Changes that arrived together, in order."""

    changes: list[Change]


class Progressed(NamedTuple):
    """Nothing changed up to `resource_version` (a bookmark)."""

    resource_version: str


class Failed(NamedTuple):
    """The collection cannot be read at the moment; the reflector goes on trying."""

    error: CtrlError
    state: State


Update: TypeAlias = Replaced | Changed | Progressed | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """How a collection is listed and watched. Times in seconds."""

    length: tuple[float, float] = (30.0, 45.0)
    """The shortest and longest length asked for; a random one between them, so that watches do not end together."""

    grace: float = 10.0
    """How long after its length a watch may end before it is taken for dead."""

    page_size: int = 500
    streaming_list: bool = False
    """Ask for a streaming list first (Kubernetes 1.32 and later serve it) and fall back to pages."""

    backoff: tuple[float, float] = (0.8, 30.0)
    """First and longest wait after a failure; doubled each time, times a random factor of 1 to 2."""

    calm: float = 120.0
    """After this long without a failure the wait starts from the first one again."""

    absent_poll: float = 5.0
    """The longest wait for a kind that is not served or not permitted: it should work soon after somebody mended it."""


class Backoff:
    """Waits that grow from one failure to the next and start over after a calm time."""

    def __init__(self, options: WatchOptions, *, clock: Callable[[], float], rng: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._rng = rng
        self._failures = 0
        self._last = float("-inf")

    def next(self, longest: float | None = None) -> float:
        first, cap = self._options.backoff
        now = self._clock()
        if now - self._last > self._options.calm:
            self._failures = 0
        wait = min(first * 2.0 ** min(self._failures, 30), cap if longest is None else min(cap, longest))
        self._failures += 1
        self._last = now + wait
        return wait * (1.0 + self._rng())

    def reset(self) -> None:
        self._failures = 0


class Reflector:
    """Follows one collection for ever; iterate over `updates()`."""

    def __init__(
        self,
        resolve: Callable[[], Awaitable[Collection]],
        *,
        options: WatchOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        forget: Callable[[], None] = lambda: None,
        name: str = "",
    ) -> None:
        self._resolve = resolve
        self._options = options or WatchOptions()
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._forget = forget
        self._backoff = Backoff(self._options, clock=clock, rng=rng)
        self._log = log.get_logger("cache").bind(collection=name)
        self._streaming = self._options.streaming_list
        self.state = State.RESOLVING
        self.version = ""
        self.last_proof_of_life = float("-inf")
        """When (by `clock`) the server last showed that it serves this collection: a list, a complete frame, a clean end."""
        self.relists = 0
        self.watches = 0
        self._last_expiry = float("-inf")

    async def updates(self) -> AsyncIterator[Update]:
        """Yield what happens to the collection; never ends by itself, and every failure of the server is yielded, not raised."""
        collection: Collection | None = None
        while True:
            state = self.state
            try:
                if collection is None:
                    self.state = state = State.RESOLVING
                    collection = await self._resolve()
                    self.state = state = State.WATCHING if self.version else State.LISTING
                if not self.version:
                    self.state = state = State.LISTING
                    async for update in self._list(collection):
                        yield update
                self.state = state = State.WATCHING
                async for update in self._watch(collection):
                    yield update
            except (Expired, Gone) as error:
                self._log.info("the version to resume from is too old, listing again", error=str(error))
                self.version = ""
                self.state = State.LISTING
                if self._is_repeated_expiry():
                    await self._wait(None)
            except CtrlError as error:
                longest: float | None = None
                if isinstance(error, NoMatchError | NotFound | Forbidden | Unauthorized):
                    longest = self._options.absent_poll
                if isinstance(error, NoMatchError | NotFound):
                    # The CRD may come back under another scope or plural, and with other objects.
                    collection, self.version = None, ""
                    self._forget()
                yield Failed(error, state)
                if isinstance(error, TooManyRequests) and error.retry_after:
                    await self._pause(error.retry_after)
                else:
                    await self._wait(longest)

    # --- listing -----------------------------------------------------------------------------------------------------

    async def _list(self, collection: Collection) -> AsyncIterator[Update]:
        self.relists += 1
        if self._streaming:
            try:
                async for update in self._streaming_list(collection):
                    yield update
                return
            except (Invalid, BadRequest) as error:
                self._log.debug("no streaming list here, listing in pages", error=str(error))
                self._streaming = False
        items, version = await self._pages(collection)
        self._alive()
        self.version = version
        yield Replaced(items, version)

    async def _pages(self, collection: Collection) -> tuple[list[bytes], str]:
        """Fetch all pages; when the continue token expires midway, start over from the first page (bounded, never one huge list)."""
        items: list[bytes] = []
        token = version = ""
        while True:
            page = await collection.page(limit=self._options.page_size, continue_token=token)
            self._alive()
            items += page.items
            version = version or page.resource_version
            token = page.continue_token
            if not token:
                return items, version

    async def _streaming_list(self, collection: Collection) -> AsyncIterator[Update]:
        """Watch from nothing: every object arrives as ADDED, then a marked bookmark, and the watch goes on as an ordinary one."""
        initial: list[bytes] | None = []
        self.watches += 1
        started = self._clock()
        async for batch in collection.watch(
            resource_version="", length=self._length(), grace=self._options.grace, initial_events=True
        ):
            self._alive()
            if initial is None:
                for update in self._changes(batch):
                    yield update
                continue
            for position, frame in enumerate(batch):
                if frame.type == "ADDED":
                    initial.append(frame.object)
                elif frame.type == "BOOKMARK" and _ends_initial_events(frame.object):
                    self.version = _version_of(frame.object)
                    yield Replaced(initial, self.version)
                    initial = None
                    self.state = State.WATCHING
                    for update in self._changes(batch[position + 1 :]):
                        yield update
                    break
                elif frame.type != "BOOKMARK":
                    # A change during the initial events: apply it in order by listing it as what it is, last one wins.
                    initial = _amended(initial, frame)
        self._alive()
        if initial is not None:
            raise StreamingListEndedError(
                f"the streaming list ended after {self._clock() - started:.1f} s and {len(initial)} objects, before its end mark"
            )

    # --- watching ----------------------------------------------------------------------------------------------------

    async def _watch(self, collection: Collection) -> AsyncIterator[Update]:
        while True:
            started, events = self._clock(), 0
            self.watches += 1
            async for batch in collection.watch(
                resource_version=self.version, length=self._length(), grace=self._options.grace
            ):
                self._alive()
                events += len(batch)
                for update in self._changes(batch):
                    yield update
            self._alive()
            if events == 0 and self._clock() - started < 1.0:
                # A server or proxy that ends watches at once must not be asked thousands of times a second.
                await self._wait(None)
            else:
                self._backoff.reset()

    def _changes(self, batch: list[Frame]) -> list[Update]:
        updates: list[Update] = []
        changes: list[Change] = []
        for frame in batch:
            match frame.type:
                case "ADDED" | "MODIFIED" | "DELETED":
                    changes.append(Change(frame.type, frame.object))
                case "BOOKMARK":
                    if changes:
                        updates.append(Changed(changes))
                        changes = []
                    self.version = _version_of(frame.object)
                    updates.append(Progressed(self.version))
                case other:
                    self._log.warning("a watch frame of unknown type is dropped", type=other)
        if changes:
            updates.append(Changed(changes))
            self.version = _version_of(changes[-1].raw)
        return updates

    # --- time ----------------------------------------------------------------------------------------------------------

    def _length(self) -> float:
        shortest, longest = self._options.length
        return shortest + (longest - shortest) * self._rng()

    def _alive(self) -> None:
        self.last_proof_of_life = self._clock()

    def _is_repeated_expiry(self) -> bool:
        # The first relist is immediate; a server that expires every version at once is asked with growing waits.
        now = self._clock()
        repeated = now - self._last_expiry < 1.0
        self._last_expiry = now
        return repeated

    async def _wait(self, longest: float | None) -> None:
        await self._pause(self._backoff.next(longest))

    async def _pause(self, seconds: float) -> None:
        state, self.state = self.state, State.WAITING
        await self._sleep(seconds)
        self.state = state


class StreamingListEndedError(CtrlError):
    """A streaming list ended before it was complete; it is asked for again."""


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_object = msgspec.json.Decoder(_Object).decode


def _version_of(raw: bytes) -> str:
    return _decode_object(raw).metadata.resource_version


def _ends_initial_events(raw: bytes) -> bool:
    annotations = _decode_object(raw).metadata.annotations
    return annotations is not None and annotations.get("k8s.io/initial-events-end") == "true"


def _amended(items: list[bytes], frame: Frame) -> list[bytes]:
    changed = _decode_object(frame.object).metadata
    key = (changed.namespace, changed.name)
    kept = [raw for raw in items if ((meta := _decode_object(raw).metadata).namespace, meta.name) != key]
    return kept if frame.type == "DELETED" else [*kept, frame.object]
