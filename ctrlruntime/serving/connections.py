"""Limits of a server for unauthenticated callers: connections, durations and bytes.

`Connections` is a state machine without I/O. `listener` reports events of each connection, and applies the results. Rules:

- In every state except HANDLER the server waits for the caller, and the state has a deadline. A handler has its own timeout.
- At a limit of connections, the connection that has delayed the server longest is closed: first one that never got a response (after
  `PATIENCE`), then an idle one (after `IDLE_PATIENCE`). Otherwise the new connection is rejected.
- At the limit of all clients, a client with fewer connections than another replaces one of those at once.
- Each received byte counts until its request has a response. At the limit of bytes, the oldest incomplete request is dropped.
- A request whose handler runs is never closed for another connection.
"""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.metrics.server import ServerMetrics

__all__ = [
    "AT_WORK",
    "DEFAULT_LIMITS",
    "READING",
    "BodyRefusedError",
    "Connection",
    "Connections",
    "ServerLimits",
    "State",
]

MIB: Final = 1024 * 1024
PATIENCE: Final = 1.0
"""Seconds without data after which a connection can be closed for another one."""

IDLE_PATIENCE: Final = 10.0
"""The same between two requests: a client that got responses keeps its connection longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server. Times are in seconds.

    The metric `ctrlruntime_server_limited_total` counts closed or rejected connections by `limit`, and the log has a line at most every ten
    seconds.
    Raises: ConfigError for a value that is not positive.
    """

    connections: int = 320
    """Concurrent connections. One costs about 80 KiB with TLS."""

    connections_per_client: int = 256
    """Concurrent connections from one IP address.

    An API server opens one for each review that waits.
    """

    tls_timeout: float = 10.0
    """Time of the TLS handshake."""

    header_timeout: float = 10.0
    """Time to receive the first line and the headers, from the first byte or from the start of the connection."""

    header_bytes: int = 64 * 1024
    """Size of the first line and the headers."""

    body_timeout: float = 30.0
    """Time to receive the body. An API server waits at most 30 seconds for a review."""

    body_bytes: int = 16 * MIB
    """Total size of all requests without a response.

    `WebhookServer` raises it to the largest `body_limit` of its endpoints, because an API server converts a whole list in one request.
    """

    handler_timeout: float = 30.0
    """Time of a handler, also if the API server sets a longer timeout for a webhook."""

    write_timeout: float = 10.0
    """Time to send the response."""

    idle_timeout: float = 180.0
    """Time between two requests of a connection."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigError(f"ServerLimits.{field.name} is {value}; give a number above 0")


DEFAULT_LIMITS: Final = ServerLimits(connections=64, connections_per_client=32)
"""For metrics, probes and debug pages, which have few callers with few connections."""


class State(enum.Enum):
    """The state of a connection. The value is the option with its time limit."""

    HANDSHAKE = "tls_timeout"
    HEADER = "header_timeout"
    BODY = "body_timeout"
    HANDLER = "handler_timeout"
    ANSWER = "write_timeout"
    IDLE = "idle_timeout"


READING: Final = (State.HEADER, State.BODY)
"""The states in which a request is received. A set would call `Enum.__hash__`, which is Python code, for each look."""

AT_WORK: Final = (State.HANDLER, State.ANSWER)


class BodyRefusedError(Exception):
    """The body of a request was not read: `status` and the message are for the caller."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """One connection.

    `since`: when it entered its `state`. `held`: the bytes of its request without a response. `answers`: the number of responses.
    """

    __slots__ = ("answers", "client", "held", "since", "state")

    def __init__(self, client: str, state: State, since: float) -> None:
        self.client = client
        self.state = state
        self.since = since
        self.held = 0
        self.answers = 0

    def __repr__(self) -> str:
        return f"Connection({self.client}, {self.state.name}, since={self.since}, held={self.held}, answers={self.answers})"


class Connections:
    """The open connections of one server.

    Use it on one event loop; `metrics` may be read in any thread.
    """

    def __init__(
        self,
        limits: ServerLimits,
        metrics: ServerMetrics,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_limit: Callable[[str, Connection], None] = lambda _limit, _connection: None,
    ) -> None:
        self.limits = limits
        self._metrics = metrics
        self._clock = clock
        self._on_limit = on_limit
        self._open: dict[Connection, None] = {}  # in order of `since`
        self._of_client: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._open)

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._open

    @property
    def held(self) -> int:
        """The total size of all requests without a response."""
        return self._metrics.request_bytes

    def admit(self, client: str, state: State) -> tuple[Connection | None, Connection | None]:
        """Add a new connection in `state`.

        Returns: the connection, or None if it is rejected; and the connection to close for it, which is already removed.
        """
        new = Connection(client, state, self._clock())
        closed = None
        if self._of_client.get(client, 0) >= self.limits.connections_per_client:
            closed = self._make_room("connections_per_client", new, client)
        elif len(self._open) >= self.limits.connections:
            most = max(self._of_client, key=self._of_client.__getitem__)
            is_fair = self._of_client[most] > self._of_client.get(client, 0) + 1
            closed = self._make_room("connections", new, most if is_fair else None, at_once=is_fair)
        else:
            return self._add(new), None
        return (None, None) if closed is None else (self._add(new), closed)

    def move(self, connection: Connection, state: State) -> None:
        """Change the state of a connection. In IDLE its bytes no longer count."""
        if state is State.IDLE:
            connection.answers += 1
            self._hold(connection, -connection.held)
        connection.state = state
        connection.since = self._clock()
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def received(self, connection: Connection, size: int) -> Connection | None:
        """Count bytes of a connection.

        Return the connection to close for them, which may be the same.

        The bytes of its unhandled request no longer count. Close one other than `connection` with `remove`.
        """
        if connection not in self._open:
            return None
        self._hold(connection, size)
        if self._metrics.request_bytes <= self.limits.body_bytes:
            return None
        late = (one for one in self._open if one.held and one.state in READING)
        victim = next(late, None)
        if victim is None:  # all that is held is at work, and these bytes are of a request to come
            victim = connection
            self._hold(connection, -size)
        else:
            self._hold(victim, -victim.held)
        self._limited("body_bytes", victim)
        return victim

    def overdue(self) -> list[Connection]:
        """Remove and return the connections that exceed the time limit of their state."""
        now = self._clock()
        late = [
            one
            for one in self._open
            if one.state is not State.HANDLER and now - one.since >= getattr(self.limits, one.state.value)
        ]
        for one in late:
            self._limited(one.state.value, one)
            self.remove(one)
        return late

    def exceeds(self, limit: str, connection: Connection) -> None:
        """Remove a connection that exceeded its own limit."""
        self._limited(limit, connection)
        self.remove(connection)

    def remove(self, connection: Connection) -> None:
        """Remove a connection, if it still exists."""
        if connection not in self._open:
            return
        self._hold(connection, -connection.held)
        del self._open[connection]
        left = self._of_client[connection.client] - 1
        if left:
            self._of_client[connection.client] = left
        else:
            del self._of_client[connection.client]
        self._metrics.connections = len(self._open)

    def _add(self, connection: Connection) -> Connection:
        self._open[connection] = None
        self._of_client[connection.client] = self._of_client.get(connection.client, 0) + 1
        self._metrics.connections = len(self._open)
        return connection

    def _make_room(
        self, limit: str, new: Connection, client: str | None, *, at_once: bool = False
    ) -> Connection | None:
        """Remove and return the connection (of `client`, or any) that made the server wait longest, if one did for long enough."""
        patience, idle_patience = (0.0, 0.0) if at_once else (PATIENCE, IDLE_PATIENCE)
        closed: Connection | None = None
        for one in self._open:
            waited = new.since - one.since
            if waited < patience:
                break
            if one.state is State.HANDLER or client not in {None, one.client}:
                continue
            if not one.answers:
                closed = one
                break
            if closed is None and (one.state is not State.IDLE or waited >= idle_patience):
                closed = one
        self._limited(limit, closed or new)
        if closed is not None:
            self.remove(closed)
        return closed

    def _hold(self, connection: Connection, size: int) -> None:
        connection.held += size
        self._metrics.request_bytes += size

    def _limited(self, limit: str, connection: Connection) -> None:
        self._metrics.limited[limit] = self._metrics.limited.get(limit, 0) + 1
        self._on_limit(limit, connection)
