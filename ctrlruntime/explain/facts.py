"""What the answers are made of: values that go over the wire as JSON, with these names, and are read back by `ctrl why`.

Times (`started`, `seen_at`, `wakes_at`, `now`) are seconds since 1970, all else that is time is a number of seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Trigger(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One reason for which a request was enqueued."""

    text: str
    """The whole of it in words; of a trigger that a user's own source gave, all there is."""

    event: str = ""
    source: str = ""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    old_version: str = ""
    version: str = ""
    seen_at: float = 0.0
    changed: list[str] | None = None
    """Paths of the fields an update changed; None: it is not an update, or too long ago."""


class Call(msgspec.Struct, kw_only=True):
    """One request to the API server."""

    verb: str
    what: str
    """Resource and key."""

    started: float
    seconds: float
    outcome: str
    """ "ok", or the reason it failed for."""


Cause = Literal["events", "retry", "requeue_after", "unknown"]
"""Why a run came: events did it, the backoff after a failure, the run before asked for it, or a source that gave no reason."""


class Run(msgspec.Struct, kw_only=True):
    """One reconcile that has ended."""

    id: str
    started: float
    seconds: float
    outcome: str
    error: str
    attempts: int
    """Failures in a row before it."""

    priority: int
    cause: Cause
    triggers: list[Trigger]
    omitted: int
    """Triggers there were beside those listed."""

    wakes_at: float | None
    calls: list[Call]


class Running(msgspec.Struct, kw_only=True):
    """One reconcile under way."""

    id: str
    request: str
    seconds: float
    stands_at: str
    """The line of user code it waits at, as `file:line in function`."""

    attempts: int
    priority: int
    triggers: list[Trigger]
    omitted: int
    calls: list[Call]


class Queued(msgspec.Struct, kw_only=True):
    """A request that waits in a queue, or is in work."""

    request: str
    state: Literal["ready", "waiting", "in work", "in work, and again"]
    seconds: float
    """For how long it has been ready or in work; of a waiting one, until it becomes ready."""

    priority: int
    attempts: int
    triggers: list[Trigger]
    omitted: int


class Queue(msgspec.Struct, kw_only=True):
    """The queue of one controller."""

    controller: str
    ready: int
    waiting: int
    in_work: int
    oldest_ready: float | None
    by_priority: dict[str, int]
    keys: list[Queued]


class Source(msgspec.Struct, kw_only=True):
    """One source of a controller."""

    name: str
    is_synced: bool


class Controller(msgspec.Struct, kw_only=True):
    """One controller."""

    name: str
    group: str
    kind: str
    is_started: bool
    workers: int
    sources: list[Source]
    running: list[Running]


class Watch(msgspec.Struct, kw_only=True):
    """One list+watch of a cache."""

    kind: str
    cluster: str
    scope: str
    """Namespace and selectors; empty: everything."""

    state: str
    is_synced: bool
    objects: int
    """Of the kind, in all scopes."""

    size_bytes: int
    alive: float | None
    """Seconds since the server last proved that it serves this; None: it never has."""

    watches: int
    lists: int
    version: str
    trouble: str
    subscribers: int


class Loop(msgspec.Struct, kw_only=True):
    """Writes of a controller to one object that lead nowhere, again and again."""

    controller: str
    cluster: str
    kind: str
    object: str
    """Its key, with the subresource that is written."""

    why: str
    """no_op, reverted or contested."""

    writes: int
    fields: list[str]
    others: list[str]
    """Managers that fight over the fields."""


class Recent(msgspec.Struct, kw_only=True):
    """A reconcile in the list of the latest ones."""

    controller: str
    kind: str
    request: str
    namespace: str
    name: str
    started: float
    seconds: float
    outcome: str
    error: str
    attempts: int
    triggers: list[Trigger]
    omitted: int


class Controllers(msgspec.Struct, kw_only=True):
    """The answer of `/controllers`."""

    now: float
    controllers: list[Controller]


class Queues(msgspec.Struct, kw_only=True):
    """The answer of `/queues`."""

    now: float
    queues: list[Queue]


class Watches(msgspec.Struct, kw_only=True):
    """The answer of `/watches`."""

    now: float
    watches: list[Watch]


class Overview(msgspec.Struct, kw_only=True):
    """All of it, as the HTML page shows it."""

    now: float
    controllers: list[Controller]
    queues: list[Queue]
    watches: list[Watch]
    loops: list[Loop]
    recent: list[Recent]


class Answer(msgspec.Struct, kw_only=True):
    """What one controller has to say of one request."""

    controller: str
    group: str
    kind: str
    request: str
    namespace: str
    name: str
    cluster: str
    is_started: bool
    cached_version: str | None
    """The version of the object in the cache; None: it is not there."""

    unseen: str
    """A write of this process that the cache has not shown yet; empty: there is none."""

    unsynced: list[str]
    """Sources of the controller that have not handed over their initial list; no run begins before."""

    loops: list[Loop]
    """Loops of the controller at this object, or at one that its latest runs wrote."""

    running: Running | None
    queued: Queued | None
    failures: int
    """In a row, so far."""

    next: str
    """When it runs next, and why, in words."""

    next_at: float | None
    """The same as a time; None: when something happens."""

    runs: list[Run]
    """The latest first."""


class LedTo(msgspec.Struct, kw_only=True):
    """A reconcile of another object that the one asked for has led to."""

    controller: str
    kind: str
    request: str
    started: float
    outcome: str
    trigger: Trigger


class Why(msgspec.Struct, kw_only=True):
    """The answer of `/why`."""

    now: float
    kind: str
    namespace: str
    name: str
    watches: list[Watch]
    """Those of the kind."""

    answers: list[Answer]
    led_to: list[LedTo]


class Refusal(msgspec.Struct, kw_only=True):
    """The answer to a question that cannot be answered."""

    error: str
    stack: list[str] = []
