"""The data of explanations, sent as JSON with these names and read by `ctrl why`.

Times (`started`, `seen_at`, `wakes_at`, `now`) are seconds since 1970; durations are seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ctrlruntime.ownership.state import RingState, SlotOwner


class Trigger(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One trigger of a request."""

    text: str
    """The trigger as text. A trigger from a user's own source has only this."""

    event: str = ""
    source: str = ""
    namespace: str = ""
    name: str = ""
    cluster: str = ""
    old_version: str = ""
    version: str = ""
    seen_at: float = 0.0
    changed: list[str] | None = None
    """Paths of the fields that an update changed; None: not an update, or no longer known."""


class Call(msgspec.Struct, kw_only=True):
    """One request to the API server."""

    verb: str
    what: str
    """Resource and key."""

    started: float
    seconds: float
    outcome: str
    """"ok", or the reason of the failure."""


Cause = Literal["events", "retry", "requeue_after", "unknown"]
"""Why a run started: events, the backoff after a failure, a requeue of the previous run, or a source without a trigger."""


class Run(msgspec.Struct, kw_only=True):
    """One finished reconcile."""

    id: str
    started: float
    seconds: float
    outcome: str
    error: str
    reason: str = ""
    """What the request waits for, from `Result.reason`."""

    attempts: int
    """The number of consecutive failures before it."""

    priority: int
    cause: Cause
    triggers: list[Trigger]
    omitted: int
    """The number of triggers that are not listed."""

    wakes_at: float | None
    calls: list[Call]


class Running(msgspec.Struct, kw_only=True):
    """One running reconcile."""

    id: str
    request: str
    seconds: float
    stands_at: str
    """The line of user code at which it waits, as `file:line in function`."""

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
    """The time since it became ready or in work; for a waiting one, the time until it becomes ready."""

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
    """One list-watch of a cache."""

    kind: str
    cluster: str
    scope: str
    """Namespace and selectors; empty: everything."""

    state: str
    is_synced: bool
    objects: int
    """The number of objects of the kind, in all scopes."""

    size_bytes: int
    alive: float | None
    """Seconds since the last activity; None: never."""

    watches: int
    lists: int
    version: str
    trouble: str
    subscribers: int


class Loop(msgspec.Struct, kw_only=True):
    """Repeated no-op, reverted or contested writes of a controller to one object."""

    controller: str
    cluster: str
    kind: str
    object: str
    """Its key, with the subresource."""

    why: str
    """no_op, reverted or contested."""

    writes: int
    fields: list[str]
    others: list[str]
    """Other field managers of these fields."""


class Recent(msgspec.Struct, kw_only=True):
    """A reconcile in the list of recent ones."""

    controller: str
    kind: str
    request: str
    namespace: str
    name: str
    started: float
    seconds: float
    outcome: str
    error: str
    reason: str = ""
    attempts: int
    triggers: list[Trigger]
    omitted: int


class Controllers(msgspec.Struct, kw_only=True):
    """The response of `/controllers`."""

    now: float
    controllers: list[Controller]


class Queues(msgspec.Struct, kw_only=True):
    """The response of `/queues`."""

    now: float
    queues: list[Queue]


class Watches(msgspec.Struct, kw_only=True):
    """The response of `/watches`."""

    now: float
    watches: list[Watch]


class Shards(msgspec.Struct, kw_only=True):
    """The response of `/shards`."""

    now: float
    ring: RingState | None
    """None: the objects are not shared with other replicas."""


class FleetCluster(msgspec.Struct, kw_only=True):
    """One cluster besides that of the manager."""

    name: str
    state: str
    """`Connecting`, `Engaged`, `Degraded` or `Standby`; `Foreign`: another replica has it, and this one is not connected to it."""

    seconds: float
    """The time in this state."""

    silence: float
    """The time since its last response."""

    reason: str
    labels: dict[str, str]
    waiting: int
    """The number of requests that wait until it responds."""

    owner: str = ""
    """The Pod that reconciles it, if replicas divide the clusters."""


class Fleet(msgspec.Struct, kw_only=True):
    """The response of `/fleet`."""

    now: float
    clusters: list[FleetCluster]


class Overview(msgspec.Struct, kw_only=True):
    """All data of the HTML page."""

    now: float
    controllers: list[Controller]
    queues: list[Queue]
    watches: list[Watch]
    loops: list[Loop]
    recent: list[Recent]
    ring: RingState | None = None
    fleet: list[FleetCluster] = []


class Answer(msgspec.Struct, kw_only=True):
    """The facts of one controller about one request."""

    controller: str
    group: str
    kind: str
    request: str
    namespace: str
    name: str
    cluster: str
    is_started: bool
    cached_version: str | None
    """The version of the object in the cache; None: not in the cache."""

    unseen: str
    """A write of this process that the cache does not contain yet; empty without one."""

    unsynced: list[str]
    """Sources of the controller that have not enqueued their initial list; no run starts before."""

    loops: list[Loop]
    """Write loops of the controller at this object, or at one that its last runs wrote."""

    running: Running | None
    queued: Queued | None
    failures: int
    """The number of consecutive failures."""

    next: str
    """The next run and its reason, as text."""

    next_at: float | None
    """The time of the next run; None: at the next change."""

    runs: list[Run]
    """The latest run first."""

    shard: SlotOwner | None = None
    """The replica that reconciles the request; None if the controller is not sharded, or if it is not known here."""

    elsewhere: list[str] = []
    """The Pods of the other replicas that reconcile the request, or may: with `shard_by="uid"`, the replica that has the object knows it."""


class LedTo(msgspec.Struct, kw_only=True):
    """A reconcile of another object that this object triggered."""

    controller: str
    kind: str
    request: str
    started: float
    outcome: str
    trigger: Trigger


class Why(msgspec.Struct, kw_only=True):
    """The response of `/why`."""

    now: float
    kind: str
    namespace: str
    name: str
    watches: list[Watch]
    """The watches of the kind."""

    answers: list[Answer]
    led_to: list[LedTo]


class Refusal(msgspec.Struct, kw_only=True):
    """The response to an invalid query."""

    error: str
    stack: list[str] = []
