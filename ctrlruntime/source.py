"""Sources of requests: `source.Kind` (a watched kind), `Channel` (your own events) and `Func` (anything else).

A source receives events from a cache subscription or an `EventChannel`, calls the predicates and the handler, and adds requests with
`queue.add(request, priority=…, trigger=…)`. Each source has one task that receives events. A plain handler runs inside it, without a task
or an await for each event. An async handler gets its own task, so that a slow one delays only its own object.

Failing user code loses no event: if a predicate raises, the event passes; if a handler raises, it is called again with the same event.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

from ctrlruntime.api.metadata import Metadata
from ctrlruntime.cache.subscription import Subscription
from ctrlruntime.errors import DecodeError
from ctrlruntime.event import CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent
from ctrlruntime.frames import name_of
from ctrlruntime.handler import EventHandler
from ctrlruntime.journal import Changes, Trigger
from ctrlruntime.log import get_logger
from ctrlruntime.predicate import Predicate, PredicateLike, predicate_of
from ctrlruntime.reconcile import Request

__all__ = [
    "Channel",
    "EventChannel",
    "Func",
    "Informers",
    "Kind",
    "Queue",
    "Source",
]

T = TypeVar("T", default=Any)
R = TypeVar("R", default=Request)
R_co = TypeVar("R_co", covariant=True, default=Request)
R_contra = TypeVar("R_contra", contravariant=True, default=Request)

Reason: TypeAlias = Literal["for", "owns", "watches"]
"""Why a controller watches a kind: it reconciles it, it owns it, or it only watches it."""

LOW_PRIORITY = -100
"""The priority of objects from start-up and resync; live changes overtake them."""

CHANNEL_BUFFER = 1024
"""The number of events that an EventChannel stores for each receiver."""

HANDLER_TIMEOUT = 60.0
"""The timeout in seconds of an async handler for one event."""

RETRY_DELAYS = (0.1, 60.0)
"""The first and the longest delay in seconds before a failed handler is called again.

The delay doubles each time.
"""

RETRY_LIMIT = 20
"""The number of calls (about 12 minutes) after which a failing handler is given up until the next event or resync."""

_SLICE = 0.005  # seconds of events in a row before other tasks get their turn
_MAX_BUSY = 64  # keys whose async handlers run at once
_MAX_WAITING = 1_000  # events that wait for an earlier one of their key
_PATIENCE = 5.0  # seconds user code gets to end once it is cancelled

_log = get_logger("source")


class Queue(Protocol[R_contra]):
    """The part of the controller's queue that a source uses."""

    def add(
        self,
        key: R_contra,
        *,
        priority: int = 0,
        after: float = 0.0,
        rate_limited: bool = False,
        trigger: object | None = None,
    ) -> None: ...


class Source(Protocol[R_co]):
    """Adds requests to a controller's queue.

    Implement it for sources that are neither a watch nor a channel.
    """

    async def start(self, queue: Queue[R_co], /) -> None:
        """Start to add requests. Must not block: start tasks for the work."""
        ...

    async def wait_for_sync(self) -> None:
        """Wait until all objects that existed at the start are in the queue."""
        ...

    async def stop(self) -> None:
        """Stop, and end all tasks of the source. May be called twice, and without a start."""
        ...


class Informers(Protocol):
    """The part of a cache that a watched kind uses.

    `subscribe` returns at once. If the kind is not synced or not served yet, the informer waits, logs this, and starts later.
    """

    async def subscribe(self, kind: type[T], *, name: str, share: object = None) -> Subscription[T]: ...


class Kind(Generic[T, R]):
    """Watches a kind through a cache.

    Events pass `predicates` in order, then `handler`. `reason` is shown on the debug pages. `share`: that of a sharded controller which gets
    the events of its own objects only. Raises: TypeError for a missing part.
    """

    def __init__(
        self,
        informers: Informers,
        kind: type[T],
        handler: EventHandler[R, T],
        *,
        predicates: Sequence[PredicateLike[T]] = (),
        name: str = "",
        reason: Reason = "watches",
        cluster: str = "",
        share: object = None,
        retry_delays: tuple[float, float] = RETRY_DELAYS,
        handler_timeout: float = HANDLER_TIMEOUT,
    ) -> None:
        if not hasattr(informers, "subscribe"):
            raise TypeError(f"source.Kind needs a cache, got {informers!r}; pass mgr.cache")
        if not isinstance(cast("object", kind), type):
            raise TypeError(f"source.Kind needs the class of a kind, got {kind!r}")
        self.kind = kind
        self.name = f"kind {kind.__name__}"
        self.reason: Final = reason
        self.cluster: Final = cluster
        self._subscriber = name or kind.__name__
        self._informers = informers
        self._share = share
        self._dispatcher: _Dispatcher[T, R] = _Dispatcher(
            kind.__name__, handler, predicates, cluster, retry_delays, handler_timeout
        )
        self._subscription: Subscription[T] | None = None
        self._subscribed = asyncio.Event()
        self._is_used = False
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"source.Kind({self.kind.__name__})"

    @property
    def informers(self) -> Informers:
        """The cache of this source."""
        return self._informers

    async def start(self, queue: Queue[R], /) -> None:
        """Subscribe and start.

        Raises: RuntimeError if it was started before, NotRegisteredError.
        """
        if self._is_used:
            raise RuntimeError(f"{self!r} was started before; make one source for each controller")
        self._is_used = True
        self._dispatcher.queue = queue
        subscription = await self._subscribe()
        self._subscription = subscription
        self._subscribed.set()
        self._task = _spawn(lambda: self._take(subscription), f"source {self._subscriber}/{self.kind.__name__}")

    async def warm(self) -> None:
        """Start the informer of the kind, without events.

        The kind is then cached when this source starts. Raises: NotRegisteredError.
        """
        if not self._is_used:
            (await self._subscribe()).stop()

    async def _subscribe(self) -> Subscription[T]:
        if self._share is None:
            return await self._informers.subscribe(self.kind, name=self._subscriber)
        return await self._informers.subscribe(self.kind, name=self._subscriber, share=self._share)

    async def show(self, wanted: Callable[[Metadata], bool]) -> None:
        """Handle the wanted objects of the cache again, as in the initial list."""
        if self._subscription is not None:
            await self._subscription.show(wanted)

    async def wait_for_sync(self) -> None:
        await self._subscribed.wait()
        assert self._subscription is not None
        await self._subscription.wait_for_sync()
        # Async handlers of the initial list may still be at work: their requests belong to it.
        await self._dispatcher.settled()

    @property
    def predicate_failures(self) -> int:
        """The number of errors of predicates; those events passed."""
        return self._dispatcher.predicate_failures

    async def stop(self) -> None:
        if self._subscription is not None:
            self._subscription.stop()
        await _end(self._task)
        await self._dispatcher.stop()

    async def _take(self, subscription: Subscription[T]) -> None:
        dispatcher = self._dispatcher
        turn_ends = 0.0
        while await subscription.ready():
            while (event := subscription.pop()) is not None:
                dispatcher.dispatch(event)
                if dispatcher.is_full:
                    await dispatcher.room()
                elif (now := time.monotonic()) >= turn_ends:
                    # Nothing here suspends while there are events: without this a long initial list would hold the loop.
                    await asyncio.sleep(0)
                    turn_ends = max(now, time.monotonic()) + _SLICE


class EventChannel(Generic[T]):
    """Sends your own events to the controllers that watch it.

    Each of them receives every event.

    Events from before the first watch are kept for it. Each receiver stores up to `buffer` events; `put` waits for the slowest.
    """

    def __init__(self, buffer: int = CHANNEL_BUFFER) -> None:
        if buffer < 1:
            raise ValueError(f"the buffer of an EventChannel is {buffer}: give 1 or more")
        self._buffer = buffer
        self._backlog: deque[GenericEvent[T]] = deque()
        self._receivers: list[deque[GenericEvent[T]]] = []
        self._changed = asyncio.Event()
        self._closed = False

    async def put(self, event: GenericEvent[T]) -> None:
        """Send the event to all receivers.

        Waits while one of them is full. Raises: RuntimeError after close.
        """
        while not self._closed and self.is_full:
            await self._wait()
        self.put_nowait(event)

    def put_nowait(self, event: GenericEvent[T]) -> None:
        """Send the event to all receivers.

        Raises: asyncio.QueueFull if one of them is full, RuntimeError after close.
        """
        if self._closed:
            raise RuntimeError("the EventChannel is closed")
        if self.is_full:
            raise asyncio.QueueFull(
                f"a receiver of this EventChannel is {self._buffer} events behind; use `await put(event)` to wait for it"
            )
        for receiver in self._receivers or (self._backlog,):
            receiver.append(event)
        self._wake()

    @property
    def is_full(self) -> bool:
        return any(len(receiver) >= self._buffer for receiver in self._receivers or (self._backlog,))

    def close(self) -> None:
        """Accept no more events. Receivers take the remaining events and end."""
        self._closed = True
        self._wake()

    def attach(self) -> deque[GenericEvent[T]]:
        """Add a receiver. The first one gets the earlier events. Called by `Channel`."""
        receiver: deque[GenericEvent[T]] = deque()
        if not self._receivers:
            receiver, self._backlog = self._backlog, receiver
        self._receivers.append(receiver)
        return receiver

    def detach(self, receiver: deque[GenericEvent[T]]) -> None:
        """Remove a receiver and its remaining events. Called by `Channel`."""
        self._receivers = [other for other in self._receivers if other is not receiver]
        self._wake()

    async def take(self, receiver: deque[GenericEvent[T]]) -> GenericEvent[T] | None:
        """Return the receiver's next event, or None if the channel is closed and empty.

        Called by `Channel`.
        """
        while not receiver:
            if self._closed:
                return None
            await self._wait()
        event = receiver.popleft()
        self._wake()
        return event

    async def _wait(self) -> None:
        await self._changed.wait()

    def _wake(self) -> None:
        # A fresh event each time: whoever waits now is woken, whoever comes later looks at the state first.
        self._changed.set()
        self._changed = asyncio.Event()


class Channel(Generic[T, R]):
    """Receives the events of an EventChannel.

    They pass `predicates` in order, then `handler`. Raises: TypeError for a missing part.
    """

    def __init__(
        self,
        channel: EventChannel[T],
        handler: EventHandler[R, T],
        *,
        predicates: Sequence[PredicateLike[T]] = (),
        name: str = "channel",
        cluster: str = "",
        retry_delays: tuple[float, float] = RETRY_DELAYS,
        handler_timeout: float = HANDLER_TIMEOUT,
    ) -> None:
        if not isinstance(cast("object", channel), EventChannel):
            raise TypeError(f"source.Channel needs an EventChannel, got {channel!r}")
        self.name = name
        self._dispatcher: _Dispatcher[T, R] = _Dispatcher(
            name, handler, predicates, cluster, retry_delays, handler_timeout
        )
        self._channel = channel
        self._receiver = channel.attach()
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"source.Channel({self.name})"

    async def start(self, queue: Queue[R], /) -> None:
        """Start to receive events, including earlier ones.

        Raises: RuntimeError if it was started before.
        """
        if self._task is not None:
            raise RuntimeError(f"{self!r} was started before; make one source for each controller")
        self._dispatcher.queue = queue
        self._task = _spawn(self._take, f"source {self.name}")

    async def wait_for_sync(self) -> None:
        return

    async def stop(self) -> None:
        self._channel.detach(self._receiver)
        await _end(self._task)
        await self._dispatcher.stop()

    async def _take(self) -> None:
        turn_ends = 0.0
        while (event := await self._channel.take(self._receiver)) is not None:
            self._dispatcher.dispatch(event)
            if self._dispatcher.is_full:
                await self._dispatcher.room()
            elif (now := time.monotonic()) >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = max(now, time.monotonic()) + _SLICE


class Func(Generic[R]):
    """Runs an async function `(queue)` as a task.

    It runs until it returns or the controller stops.

    If the function raises, the error is logged and it is called again after a delay. A run that is longer than the longest delay resets the
    delay. `clock` measures that in seconds. Use it for timers, message queues and other sources that know their requests.
    """

    def __init__(
        self,
        function: Callable[[Queue[R]], Coroutine[Any, Any, None]],
        *,
        retry_delays: tuple[float, float] = RETRY_DELAYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not callable(function):
            raise TypeError(f"source.Func needs an async function of the queue, got {function!r}")
        self.name = f"function {name_of(function)}"
        self._function = function
        self._retry_delays = retry_delays
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"source.Func({name_of(self._function)})"

    async def start(self, queue: Queue[R], /) -> None:
        """Call the function in a task. Raises: RuntimeError if it was started before."""
        if self._task is not None:
            raise RuntimeError(f"{self!r} was started before; make one source for each controller")
        self._task = asyncio.create_task(self._run(queue), name=f"source {self.name}")

    async def wait_for_sync(self) -> None:
        return

    async def stop(self) -> None:
        await _end(self._task)

    async def _run(self, queue: Queue[R]) -> None:
        failures = 0
        while True:
            began = self._clock()
            try:
                outcome: object = self._function(queue)
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as error:  # noqa: BLE001 - any failure of user code is repeated
                if self._clock() - began > self._retry_delays[1]:
                    failures = 0
                delay = _delay(failures, self._retry_delays)
                failures += 1
                _log.error("source function failed, retrying", source=self.name, retryIn=delay, exc_info=error)
                await asyncio.sleep(delay)
            else:
                return


class _Enqueue(msgspec.Struct, Generic[R], eq=False):
    """`handler.Enqueue` for one event."""

    queue: Queue[R]
    priority: int
    trigger: Trigger
    cluster: str

    def __call__(self, request: R, /, *, priority: int | None = None, after: float = 0.0) -> None:
        self.queue.add(
            request, priority=self.priority if priority is None else priority, after=after, trigger=self.trigger
        )


class _Dispatcher(Generic[T, R]):
    """Predicates, handler and retries between one event and the queue, for Kind and Channel."""

    queue: Queue[R]

    def __init__(
        self,
        name: str,
        handler: EventHandler[R, T],
        predicates: Sequence[PredicateLike[T]],
        cluster: str,
        retry_delays: tuple[float, float],
        handler_timeout: float,
    ) -> None:
        if not callable(getattr(handler, "handle", None)):
            raise TypeError(
                f"the source of {name} needs an event handler with a method handle(event, enqueue), got {handler!r}"
            )
        self._name = name
        self._handler = handler
        self._predicates: tuple[Predicate[T], ...] = tuple(predicate_of(predicate) for predicate in predicates)
        self._cluster = cluster
        self._retry_delays = retry_delays
        self._handler_timeout = handler_timeout
        self._predicate_failures: dict[int, int] = {}
        self._changes = Changes()
        # Keys whose async handler runs, with the events (and the calls they had) that wait for their turn.
        self._busy: dict[tuple[str, str], deque[tuple[Event[T], int]]] = {}
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._freed = asyncio.Event()
        self._is_stopped = False

    def dispatch(self, event: Event[T]) -> None:
        """Call the predicates, then the handler."""
        for predicate in self._predicates:
            try:
                verdict = predicate.passes(event)
                if verdict is not True and verdict is not False:
                    verdict = _as_bool(verdict)
            except Exception as error:  # noqa: BLE001 - user code; an event too many does no harm, a lost one does
                self._predicate_failed(predicate, event, error)
                continue
            if not verdict:
                return
        self._handle(event, 1)

    @property
    def is_full(self) -> bool:
        """Whether too many async handlers are running: await `room()` before the next event."""
        return len(self._busy) >= _MAX_BUSY or self._waiting >= _MAX_WAITING

    async def room(self) -> None:
        while self.is_full:
            self._freed.clear()
            await self._freed.wait()

    async def settled(self) -> None:
        """Wait for the async handlers that are running."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def stop(self) -> None:
        self._is_stopped = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if not self._tasks:
            return
        for task in self._tasks:
            task.cancel()
        _, pending = await asyncio.wait(set(self._tasks), timeout=_PATIENCE)
        if pending:
            _log.warning("event handlers ignore cancellation and are abandoned", source=self._name, count=len(pending))

    def _handle(self, event: Event[T], call: int) -> None:
        if self._busy and (waiting := self._busy.get((event.meta.namespace, event.meta.name))) is not None:
            waiting.append((event, call))
            self._waiting += 1
            return
        try:
            awaitable = self._handler.handle(event, self._enqueue(event))
        except Exception as error:  # noqa: BLE001 - user code
            self._failed(event, call, error)
            return
        if awaitable is not None:
            meta = event.meta
            key = (meta.namespace, meta.name)
            self._busy[key] = deque()
            task = asyncio.create_task(
                self._finish(key, event, call, awaitable), name=f"handler {self._name} {meta.key}"
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _enqueue(self, event: Event[T]) -> _Enqueue[R]:
        meta = event.meta
        priority = 0
        version = meta.resource_version
        if isinstance(event, UpdateEvent):
            old = event.old_snapshot
            before = old.meta.resource_version
            trigger = Trigger(
                "update", self._name, meta.namespace, meta.name, version, self._cluster, before, time.time()
            )
            if version and before == version:
                priority = LOW_PRIORITY
            else:
                self._changes.hold(trigger, old.raw, event.new_snapshot.raw)
            return _Enqueue(self.queue, priority, trigger, self._cluster)
        if isinstance(event, CreateEvent):
            word = "create"
            if event.is_in_initial_list:
                priority = LOW_PRIORITY
        else:
            word = "delete" if isinstance(event, DeleteEvent) else "generic"
        trigger = Trigger(word, self._name, meta.namespace, meta.name, version, self._cluster, "", time.time())
        return _Enqueue(self.queue, priority, trigger, self._cluster)

    async def _finish(
        self, key: tuple[str, str], event: Event[T], call: int, awaitable: Awaitable[None] | None
    ) -> None:
        """Await the handler of one event, then handle the events of its key that came meanwhile, in order."""
        try:
            while True:
                await self._await_handler(event, call, awaitable)
                if not self._busy[key]:
                    return
                event, call = self._busy[key].popleft()
                self._waiting -= 1
                try:
                    awaitable = self._handler.handle(event, self._enqueue(event))
                except Exception as error:  # noqa: BLE001 - user code
                    self._failed(event, call, error)
                    awaitable = None
        finally:
            self._waiting -= len(self._busy.pop(key))
            self._freed.set()

    async def _await_handler(self, event: Event[T], call: int, awaitable: Awaitable[None] | None) -> None:
        if awaitable is None:
            return
        limit = asyncio.timeout(self._handler_timeout)
        try:
            async with limit:
                await awaitable
        except Exception as error:  # noqa: BLE001 - user code
            if isinstance(error, TimeoutError) and limit.expired():
                error = TimeoutError(f"{self._handler!r} took longer than {self._handler_timeout:g} s for one event")
            self._failed(event, call, error)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._failed(event, call, RuntimeError("the handler cancelled itself"))

    def _failed(self, event: Event[T], call: int, error: Exception) -> None:
        if self._is_stopped:
            return
        meta = event.meta
        fields: dict[str, Any] = {
            "source": self._name,
            "namespace": meta.namespace,
            "name": meta.name,
            "handler": repr(self._handler),
        }
        if isinstance(error, DecodeError):
            # The same bytes will not decode next time either; the object's repair is an event of its own.
            _log.warning(
                "cannot decode object of an event",
                hint="no request is enqueued until the object is fixed",
                error=str(error),
                **fields,
            )
            return
        if call >= RETRY_LIMIT:
            _log.error("event handler failed too often, event dropped", calls=call, exc_info=error, **fields)
            return
        delay = _delay(call - 1, self._retry_delays)
        if call == 1:
            _log.error("event handler failed, retrying", retryIn=delay, exc_info=error, **fields)
        timer: asyncio.TimerHandle

        def again() -> None:
            self._timers.discard(timer)
            self._handle(event, call + 1)

        timer = asyncio.get_running_loop().call_later(delay, again)
        self._timers.add(timer)

    def _predicate_failed(self, predicate: Predicate[T], event: Event[T], error: Exception) -> None:
        count = self._predicate_failures.get(id(predicate), 0) + 1
        self._predicate_failures[id(predicate)] = count
        if count == 1:
            meta = event.meta
            _log.error(
                "predicate failed, event passed on",
                hint="later failures of this predicate are counted, not logged",
                source=self._name,
                predicate=repr(predicate),
                namespace=meta.namespace,
                name=meta.name,
                exc_info=error,
            )

    @property
    def predicate_failures(self) -> int:
        return sum(self._predicate_failures.values())


def _as_bool(verdict: object) -> bool:
    if inspect.isawaitable(verdict):
        if inspect.iscoroutine(verdict):
            verdict.close()
        raise TypeError("the predicate returned an awaitable; a predicate must be a plain function")
    return bool(verdict)


def _delay(failures: int, delays: tuple[float, float]) -> float:
    first, longest = delays
    return min(longest, first * 2.0 ** min(failures, 40))


def _spawn(take: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[None]:
    async def keep_taking() -> None:
        while True:
            try:
                return await take()
            except Exception as error:  # noqa: BLE001 - user code is guarded below, so this is a bug of ours: a source must not fall silent
                _log.error("source failed, restarting", task=name, exc_info=error)
                await asyncio.sleep(1.0)

    return asyncio.create_task(keep_taking(), name=name)


async def _end(task: asyncio.Task[None] | None) -> None:
    if task is None:
        return
    task.cancel()
    _, pending = await asyncio.wait({task}, timeout=_PATIENCE)
    if pending:
        _log.warning("source ignores cancellation and is abandoned", task=task.get_name())
