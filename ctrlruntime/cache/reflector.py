"""The list-watch protocol for one collection, as states.

```text
RESOLVING → LISTING → WATCHING ⟲        a watch that ends is resumed from its last version, without a list
     ↑          ↑________│ 410          a version that is too old: list again
     └── any state: error → wait (backoff with jitter) → the same state again
```

It reads a `Collection` (pages and frames of bytes). An informer iterates over `Listed`, `Replaced`, `Changed` and `Progressed`. The
reflector stores no objects, only the version to resume from. The next page is requested while the informer processes a page.

A watch shows that it is alive when it ends: its timeout is 30 to 45 s, and it is dropped if it has not ended 10 s later. So a dead
connection is replaced within 55 s, without a list (docs/concepts/architecture.md). If a read finds that it lacks an object, or this process
takes over from another one, `refresh` replaces a silent watch at once.
"""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import anyio
import msgspec

from ctrlruntime import log
from ctrlruntime.errors import (
    APIStatusError,
    BadRequest,
    CtrlError,
    Expired,
    Forbidden,
    Gone,
    Invalid,
    NoMatchError,
    NotFound,
    RequestTimeoutError,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from ctrlruntime.rest.collection import Collection, Page
from ctrlruntime.rest.watch import Frame, Interrupt


class State(enum.Enum):
    """The state of a reflector."""

    RESOLVING = "the server is asked which resource the kind is"
    LISTING = "the present objects are fetched"
    WATCHING = "changes arrive"
    WAITING = "after a failure, before the next try"


class Change(NamedTuple):
    """One object was added, modified or deleted."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    raw: bytes

    def __repr__(self) -> str:
        return f"Change({self.type}, {len(self.raw)} bytes)"  # which may be a Secret's


class Listed(NamedTuple):
    """A page of a list, before other pages and `Replaced`. Number 0 starts the list again."""

    items: list[bytes]
    number: int

    def __repr__(self) -> str:
        return f"Listed({len(self.items)} items, number={self.number})"


class Replaced(NamedTuple):
    """The end of a list: the collection has exactly these `items` and those of the previous `pages`.

    `changes` happened during a streaming list; they come after the items, in order.
    """

    items: list[bytes]
    resource_version: str
    changes: Sequence[Change] = ()
    pages: int = 0

    def __repr__(self) -> str:
        return f"Replaced({len(self.items)} items, {self.resource_version!r}, {len(self.changes)} changes, pages={self.pages})"


class Changed(NamedTuple):
    """Changes that arrived together, in order; the last of them has `resource_version`."""

    changes: list[Change]
    resource_version: str


class Progressed(NamedTuple):
    """Nothing else changed up to `resource_version`: a bookmark, or a watch that ended cleanly."""

    resource_version: str


class Failed(NamedTuple):
    """The collection cannot be read now; the reflector continues to try."""

    error: CtrlError
    state: State


Update: TypeAlias = Listed | Replaced | Changed | Progressed | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchOptions:
    """Options of lists and watches. Times in seconds."""

    timeout: tuple[float, float] = (30.0, 45.0)
    """The shortest and longest timeout of a watch. Each watch gets a random value between them, so that watches do not end together."""

    timeout_grace: float = 10.0
    """Seconds that a watch may take to start, and to end after its timeout. A watch that takes longer counts as dead."""

    page_size: int = 500
    streaming_list: bool = False
    """Request a streaming list first (Kubernetes 1.32 and later) and fall back to pages.

    It saves memory of the API server and costs us twice the CPU, because each object is its own chunk and TLS record.
    """

    stream_idle_timeout: float = 10.0
    """The time without data after which a streaming list is replaced by pages."""

    backoff: tuple[float, float] = (0.8, 30.0)
    """The first and longest delay after a failure; doubled each time, times a random factor of 1 to 2."""

    backoff_reset_after: float = 120.0
    """The time without a failure after which the delay starts again from the first."""

    missing_kind_retry_interval: float = 5.0
    """The longest delay for a kind that is not served or not permitted, so that it works soon after a fix."""

    def __post_init__(self) -> None:
        shortest, longest = self.timeout
        if not 1.0 <= shortest <= longest:
            raise ValueError(f"timeout is {self.timeout}: give (shortest, longest) in seconds, 1 or more")
        if self.page_size < 1:
            raise ValueError(f"page_size is {self.page_size}: give 1 or more")


class Backoff:
    """Delays that increase with each failure, and start again after a time without one."""

    def __init__(self, options: WatchOptions, *, clock: Callable[[], float], rng: Callable[[], float]) -> None:
        self._options = options
        self._clock = clock
        self._rng = rng
        self._failures = 0
        self._last = float("-inf")

    def next(self, longest: float | None = None) -> float:
        first, cap = self._options.backoff
        now = self._clock()
        if now - self._last > self._options.backoff_reset_after:
            self._failures = 0
        wait = min(first * 2.0 ** min(self._failures, 30), cap if longest is None else min(cap, longest))
        self._failures += 1
        self._last = now + wait
        return wait * (1.0 + self._rng())

    def reset(self) -> None:
        self._failures = 0


SHORT_WATCH = 1.0
"""Seconds: a watch that ends sooner does not count as working."""

LONGEST_RETRY_AFTER = 60.0
"""The maximum of Retry-After in seconds; after that the request is repeated."""

SILENT_FOR = 5.0
"""Seconds without any data after which `refresh` replaces a watch; doubled each time until data arrives."""

EXPIRY_MEMORY = 30.0
"""Seconds: if a version expires again within them, the next list waits."""

BEHIND_TRIES = 3
"""The number of lists with an older version that are treated as those of a lagging server; the next one means that history was reset."""


_REFUSALS_OF_SHARDS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.INTERNAL_SERVER_ERROR})
"""What a server returns for a shardSelector that it does not accept."""


class Reflector:
    """Lists and watches one collection without end; iterate over `updates()`."""

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
        cluster: str = "",
    ) -> None:
        self._resolve = resolve
        self._options = options or WatchOptions()
        self._clock = clock
        self._rng = rng
        self._sleep = sleep
        self._forget = forget
        self._backoff = Backoff(self._options, clock=clock, rng=rng)
        self._log = log.get_logger("cache").bind(collection=name, **({"cluster": cluster} if cluster else {}))
        self._streaming = self._options.streaming_list
        self.state = State.RESOLVING
        self.version = ""
        self.last_activity = float("-inf")
        """The time (on `clock`) of the last activity: a list, a frame, a clean end."""
        self.relists = 0
        self.watches = 0
        self.restarts: dict[str, int] = {}
        """The number of ended watches by reason; see `_reason`."""

        self.server_ranges = 0
        """The number of ranges in the shardSelector of its requests."""

        self._interrupt = Interrupt()
        self._opened_at = float("-inf")
        self._refreshes = 0
        """The number of watches that were replaced since the last activity."""

        self._seen = 0
        self._behind = 0
        self._last_expiry = float("-inf")

    async def updates(self) -> AsyncGenerator[Update, None]:
        """Yield the updates of the collection without end.

        Errors of the server are yielded, not raised.
        """
        collection: Collection | None = None
        while True:
            try:
                if collection is None:
                    self.state = State.RESOLVING
                    collection = await self._resolve()
                    self.server_ranges = collection.shards.count("shardRange")
                if not self.version:
                    self.state = State.LISTING
                    async with aclosing(self._list(collection)) as updates:
                        async for update in updates:
                            yield update
                self.state = State.WATCHING
                async with aclosing(self._watch(collection)) as updates:
                    async for update in updates:
                        yield update
            except (Expired, Gone) as error:
                self._count_end(error)
                self._log.info("resource version expired, relisting", error=str(error))
                self.version = ""
                if self._is_repeated_expiry():
                    yield Failed(error, self.state)
                    await self._wait(None)
            except CtrlError as error:
                self._count_end(error)
                if collection is not None and self._drops_shards(collection, error):
                    continue
                if isinstance(error, NoMatchError | NotFound):
                    # The CRD may come back under another scope or plural, and with other objects.
                    collection, self.version = None, ""
                    self._forget()
                elif _is_version_too_large(error):
                    # A server that never reached our version: it lags, or was restored from a backup. A list tells.
                    self.version = ""
                yield Failed(error, self.state)
                await self._after(error)

    def _drops_shards(self, collection: Collection, error: CtrlError) -> bool:
        """Stop to send a shardSelector that the server does not accept: it is an alpha feature.

        All objects come then, and the informer drops those of other replicas.
        """
        if not isinstance(error, APIStatusError) or error.code not in _REFUSALS_OF_SHARDS or not collection.shards:
            return False
        self._log.warning("server does not accept shardSelector, listing all objects", error=str(error))
        collection.shards = ""
        self.server_ranges = 0
        return True

    def restart(self) -> None:
        """List again at the next step, because the updates could not be processed."""
        self.version = ""

    def refresh(self) -> None:
        """Replace a watch that has been silent for some seconds, because its connection may be dead. Continue from the last version.

        A quiet collection is silent as well. For it this costs one request.
        """
        silent = self._clock() - max(self.last_activity, self._opened_at)
        if self.state is State.WATCHING and silent >= SILENT_FOR * 2.0**self._refreshes:
            self._refreshes += 1
            self._log.info("silent watch replaced", silentSeconds=round(silent, 1))
            self._interrupt.set()

    # --- listing ---------------------------------------------------------------------------------------------------

    async def _list(self, collection: Collection) -> AsyncGenerator[Update, None]:
        self.relists += 1
        if self._streaming:
            try:
                async with aclosing(self._streaming_list(collection)) as updates:
                    async for update in updates:
                        yield update
            except (Invalid, BadRequest, StreamingListEndedError) as error:
                if self.version:
                    raise
                self._log.debug("streaming list not supported, listing in pages", error=str(error))
                self._streaming = False
            else:
                return
        async with aclosing(self._pages(collection)) as updates:
            async for update in updates:
                yield update

    async def _pages(self, collection: Collection) -> AsyncGenerator[Update, None]:
        """Fetch all pages; when the continue token expires midway, start over with larger ones (never one huge list)."""
        size = self._options.page_size
        while True:
            page: Page | None = None
            try:
                page = await collection.page(limit=size)
                version, number = page.resource_version, 0
                self._alive()
                while page.continue_token:
                    # One page ahead, never two: the server works while we do, and memory holds no more than two pages.
                    async with _under_way(collection.page(limit=size, continue_token=page.continue_token)) as following:
                        yield Listed(page.items, number)
                        page = await following
                    number += 1
                    self._alive()
                    version = version or page.resource_version
            except (Expired, Gone) as error:
                if page is None or size >= 16 * self._options.page_size:
                    raise
                size *= 2
                self._log.info("list expired between pages, relisting in larger pages", limit=size, error=str(error))
            else:
                self._move_to_list(version)
                yield Replaced(page.items, version, pages=number)
                return

    async def _streaming_list(self, collection: Collection) -> AsyncGenerator[Update, None]:
        """Watch from nothing: every object comes as ADDED, then a marked bookmark; it goes on as an ordinary watch."""
        watch = self._open(collection, resource_version="", initial_events=True)
        async with aclosing(watch) as batches:
            replaced, rest = await self._initial_events(batches)
            self._move_to_list(replaced.resource_version)
            yield replaced
            self.state = State.WATCHING
            for update in self._changes(rest):
                yield update
            async for batch in batches:
                self._alive()
                for update in self._changes(batch):
                    yield update
        if self._has_ended():
            yield Progressed(self.version)

    async def _initial_events(self, batches: AsyncGenerator[list[Frame], None]) -> tuple[Replaced, list[Frame]]:
        """Return the list and the frames after its end mark. Raises: StreamingListEndedError."""
        items: list[bytes] = []
        changes: list[Change] = []
        while True:
            try:
                async with asyncio.timeout(self._options.stream_idle_timeout):
                    batch = await anext(batches)
            except TimeoutError:
                raise StreamingListEndedError(
                    f"the streaming list stopped after {len(items)} objects, without its final bookmark"
                ) from None
            except StopAsyncIteration:
                raise StreamingListEndedError(
                    f"the streaming list ended after {len(items)} objects, without its final bookmark"
                ) from None
            self._alive()
            for position, frame in enumerate(batch):
                if frame.type == "ADDED" and not changes:
                    items.append(frame.object)
                elif (change := _change_of(frame)) is not None:
                    # From here on order matters: an object may go and come back before the end mark.
                    changes.append(change)
                elif frame.type == "BOOKMARK" and _ends_initial_events(frame.object):
                    return Replaced(items, _version_of(frame.object), changes), batch[position + 1 :]

    def _move_to_list(self, version: str) -> None:
        """Go on from a list. Raises: ListBehindError when it is older than what was seen, the first few times."""
        number = int(version) if version.isdecimal() else 0
        if 0 < number < self._seen and self._behind < BEHIND_TRIES:
            self._behind += 1
            raise ListBehindError(
                f"the list has version {number}, older than {self._seen} of the last one; listing again"
            )
        if 0 < number < self._seen:
            self._log.warning("resource version of the API server went back, relisted", version=number, seen=self._seen)
            self._seen = 0
        self._behind = 0
        self._move(version)
        self._alive()

    # --- watching --------------------------------------------------------------------------------------------------

    async def _watch(self, collection: Collection) -> AsyncGenerator[Update, None]:
        while True:
            started, changed = self._clock(), False
            watch = self._open(collection, resource_version=self.version)
            async with aclosing(watch) as batches:
                async for batch in batches:
                    self._alive()
                    if self._clock() - started >= SHORT_WATCH:
                        self._backoff.reset()
                    for update in self._changes(batch):
                        changed = changed or isinstance(update, Changed)
                        yield update
            if not self._has_ended():
                continue
            if self.version:
                yield Progressed(self.version)
            if self._clock() - started >= SHORT_WATCH:
                self._backoff.reset()
            else:
                # A server or proxy that ends watches at once must not be asked thousands of times a second.
                await self._wait(SHORT_WATCH if changed else None)

    def _open(
        self, collection: Collection, *, resource_version: str, initial_events: bool = False
    ) -> AsyncGenerator[list[Frame], None]:
        self.watches += 1
        self._interrupt = Interrupt()
        self._opened_at = self._clock()
        return collection.watch(
            resource_version=resource_version,
            timeout=self._timeout(),
            timeout_grace=self._options.timeout_grace,
            initial_events=initial_events,
            interrupt=self._interrupt,
        )

    def _has_ended(self) -> bool:
        """Count the end of a watch. Return whether the server ended it, which shows that it was alive."""
        if self._interrupt.is_set:
            self._count("silent")
            return False
        self._alive()
        self._count_end(None)
        return True

    def _changes(self, batch: list[Frame]) -> list[Update]:
        updates: list[Update] = []
        changes: list[Change] = []
        for frame in batch:
            if (change := _change_of(frame)) is not None:
                changes.append(change)
            elif frame.type == "BOOKMARK":
                if changes:
                    updates.append(self._changed(changes))
                    changes = []
                self._move(_version_of(frame.object))
                updates.append(Progressed(self.version))
            else:
                self._log.warning("watch event of unknown type dropped", type=frame.type)
        if changes:
            updates.append(self._changed(changes))
        return updates

    def _changed(self, changes: list[Change]) -> Changed:
        # An object without readable metadata must not stop the others: the version before it will do.
        self._move(next((version for change in reversed(changes) if (version := _version_of(change.raw))), ""))
        return Changed(changes, self.version)

    def _move(self, version: str) -> None:
        if version:
            self.version = version
            if version.isdecimal():
                self._seen = max(self._seen, int(version))

    def _count_end(self, error: CtrlError | None) -> None:
        if self.state is State.WATCHING:
            self._count(_reason(error))

    def _count(self, reason: str) -> None:
        self.restarts[reason] = self.restarts.get(reason, 0) + 1

    # --- time ------------------------------------------------------------------------------------------------------

    def _timeout(self) -> float:
        shortest, longest = self._options.timeout
        return shortest + (longest - shortest) * self._rng()

    def _alive(self) -> None:
        self.last_activity = self._clock()
        self._refreshes = 0

    def _is_repeated_expiry(self) -> bool:
        # The first relist is immediate; a server that expires every version is asked with growing waits.
        now = self._clock()
        repeated = now - self._last_expiry < EXPIRY_MEMORY
        self._last_expiry = now
        return repeated

    async def _after(self, error: CtrlError) -> None:
        if isinstance(error, TooManyRequests | ServiceUnavailable) and error.retry_after:
            wait = max(self._options.backoff[0], min(error.retry_after, LONGEST_RETRY_AFTER))
            await self._pause(wait * (1.0 + 0.1 * self._rng()))
        elif isinstance(error, NoMatchError | NotFound | Forbidden | Unauthorized):
            await self._wait(self._options.missing_kind_retry_interval)
        else:
            await self._wait(None)

    async def _wait(self, longest: float | None) -> None:
        await self._pause(self._backoff.next(longest))

    async def _pause(self, seconds: float) -> None:
        state, self.state = self.state, State.WAITING
        await self._sleep(seconds)
        self.state = state


class StreamingListEndedError(CtrlError):
    """A streaming list ended or stopped before it was complete."""


class ListBehindError(CtrlError):
    """A list is older than the last one: it came from a server with older data."""


@asynccontextmanager
async def _under_way(request: Coroutine[Any, Any, Page]) -> AsyncGenerator[asyncio.Task[Page], None]:
    """Send a request while something else is done; whoever leaves before its answer ends it."""
    task = asyncio.create_task(request)
    try:
        await asyncio.sleep(0)  # its first step: the request goes out before anything else is done
        yield task
    finally:
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait((task,))
        if not task.cancelled():
            task.exception()  # looked at here, as nobody may be left to raise it to


class _Meta(msgspec.Struct, gc=False, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_decode_object = msgspec.json.Decoder(_Object).decode


def _reason(error: CtrlError | None) -> str:
    """Return in a word why a watch ended."""
    match error:
        case None:
            return "ended"  # as it should: its timeout was over, or the server went down in order
        case Expired() | Gone():
            return "expired"
        case RequestTimeoutError():
            return "stalled"
        case TransportError():
            return "cut"
        case TooManyRequests() | ServiceUnavailable():
            return "throttled"
        case Forbidden() | Unauthorized() | NotFound() | NoMatchError():
            return "refused"
        case _:
            return "failed"


def _change_of(frame: Frame) -> Change | None:
    match frame.type:
        case "ADDED" | "MODIFIED" | "DELETED":
            return Change(frame.type, frame.object)
        case _:
            return None


def _version_of(raw: bytes) -> str:
    """Return an object's version; empty when it cannot be read."""
    try:
        return _decode_object(raw).metadata.resource_version
    except ValueError:
        return ""


def _ends_initial_events(raw: bytes) -> bool:
    try:
        annotations = _decode_object(raw).metadata.annotations
    except ValueError:
        return False
    return annotations is not None and annotations.get("k8s.io/initial-events-end") == "true"


def _is_version_too_large(error: CtrlError) -> bool:
    """Whether a server was asked for a version it does not have yet (apimachinery: IsTooLargeResourceVersion)."""
    return isinstance(error, APIStatusError) and (
        any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes)
        or "Too large resource version" in error.message
    )
