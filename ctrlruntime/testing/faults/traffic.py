"""What the proxy knows while it runs: the faults in force, the connections, what was seen and what was answered.

Everything here belongs to the proxy's own loop; `FaultProxy` comes to it from other threads by calls on that loop.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from ctrlruntime.testing.connection import Connection
from ctrlruntime.testing.faults import plan
from ctrlruntime.testing.faults.connections import Connections
from ctrlruntime.testing.faults.match import Match, SeenRequest

__all__ = ["Client", "Stream", "Traffic", "Upstream", "reset"]

F = TypeVar("F", bound=plan.Fault)
_RECORDINGS = 500


@dataclass(frozen=True, slots=True, eq=False)
class Upstream:
    """The API server, as one user."""

    host: str
    port: int
    prefix: str
    tls: ssl.SSLContext | None
    server_name: str | None
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """Among them the one that authenticates."""

    @classmethod
    def of(cls, connection: Connection) -> Upstream:
        parts = urlsplit(connection.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        headers = tuple(pair for pair in connection.headers if pair[0] != "Accept")
        return cls(parts.hostname or "", port, parts.path, connection.tls, connection.server_name, headers)

    async def connect(self, connections: Connections) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises: OSError."""
        return await connections.connect(self.host, self.port, self.tls, self.server_name or self.host)


class Stream(Protocol):
    """A request under way, as the faults see it."""

    request: SeenRequest
    is_dead: bool
    is_stream: bool

    def cut_after(self, size: int) -> None: ...

    def stall_after(self, size: int) -> None: ...

    def drip(self, fault: plan.Drip) -> None: ...

    def inject(self, frame: bytes) -> None: ...

    def finish(self) -> None: ...


class Client(Protocol):
    """A client's connection, as the faults see it."""

    is_dead: bool

    @property
    def exchange(self) -> Stream | None: ...

    def reset(self) -> None: ...


class Traffic:
    """The state of a proxy."""

    def __init__(self) -> None:
        self.faults: list[plan.Fault] = []
        self.seen: list[SeenRequest] = []
        self.clients: set[Client] = set()
        self.connections = Connections()
        self.recorded: dict[str, plan.Reply] = {}
        self.anonymous: Upstream | None = None
        self.target: Upstream | None = None
        self._users: dict[str, Upstream] = {}
        self._kept: set[asyncio.Task[plan.Reply]] = set()

    # --- who asks ----------------------------------------------------------------------------------------------------

    def know(self, token: str, user: Upstream, anonymous: Upstream) -> None:
        """Map this token to a user; the first one is the target's own. Another token is treated as `anonymous`."""
        self._users[token] = user
        self.target = self.target or user
        self.anonymous = self.anonymous or anonymous

    def user(self, authorization: str) -> tuple[Upstream | None, bool]:
        """Return the caller (None: rejected), and whether the proxy authenticates it."""
        token = authorization.removeprefix("Bearer ").strip()
        only = [fault for fault in self.faults if isinstance(fault, plan.OnlyToken)]
        if only and authorization:
            if token == only[-1].token:
                return self.target, True
            only[-1].hits += 1
            return None, False
        known = self._users.get(token)
        return (known, True) if known is not None else (self.anonymous, False)

    # --- what outlives its client ------------------------------------------------------------------------------------

    def keep(self, work: Coroutine[Any, Any, plan.Reply]) -> asyncio.Task[plan.Reply]:
        """Run something to its end, also if the caller no longer waits."""
        task = asyncio.create_task(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # its failure may be nobody's
        return task

    async def close(self) -> None:
        for task in self._kept:
            task.cancel()
        await asyncio.gather(*self._kept, return_exceptions=True)
        self.connections.abort()

    # --- faults ------------------------------------------------------------------------------------------------------

    def in_force(self, kind: type[F], request: SeenRequest) -> list[F]:
        """Return the faults of a type that match this request, used up or not, in the order in which they were started."""
        return [fault for fault in self.faults if isinstance(fault, kind) and fault.match.covers(request)]

    def struck(self, kind: type[F], request: SeenRequest) -> Iterator[F]:
        """Yield the faults of a kind that strike this request; each one taken counts."""
        for fault in list(self.faults):
            if isinstance(fault, kind) and fault.strikes(request):
                fault.hits += 1
                yield fault

    def strike(self, kind: type[F], request: SeenRequest) -> F | None:
        """Return the first of them."""
        return next(self.struck(kind, request), None)

    def has(self, kind: type[plan.Fault]) -> bool:
        return any(isinstance(fault, kind) for fault in self.faults)

    # --- faults that begin while requests are under way ------------------------------------------------------------

    def streams(self, match: Match) -> list[Stream]:
        return [exchange for exchange in self._exchanges(match) if exchange.is_stream and not exchange.is_dead]

    def stall(self, fault: plan.Stall) -> None:
        for exchange in self._exchanges(fault.match):
            if fault.strikes(exchange.request) and not exchange.is_dead:
                fault.hits += 1
                exchange.stall_after(fault.after)

    def stall_all(self, fault: plan.BlackHole) -> None:
        for client in self.clients:
            fault.hits += not client.is_dead
            client.is_dead = True
            if client.exchange is not None:
                client.exchange.is_dead = True

    def cut(self, fault: plan.Cut) -> None:
        for exchange in self._exchanges(fault.match):
            if fault.strikes(exchange.request):
                fault.hits += 1
                exchange.cut_after(fault.after)

    def drip(self, fault: plan.Drip) -> None:
        for exchange in self._exchanges(fault.match):
            if fault.strikes(exchange.request):
                fault.hits += 1
                exchange.drip(fault)

    def end(self, fault: plan.Ending) -> None:
        for exchange in self.streams(fault.match):
            fault.hits += 1
            exchange.finish()

    def expire(self, fault: plan.ExpiryEvent) -> None:
        for exchange in self.streams(fault.match):
            if fault.strikes(exchange.request):
                fault.hits += 1
                exchange.inject(expired_frame(exchange.request, fault.reason))
                exchange.finish()

    def reset_all(self) -> None:
        for client in list(self.clients):
            client.reset()

    def _exchanges(self, match: Match) -> list[Stream]:
        exchanges = [client.exchange for client in self.clients if client.exchange is not None]
        return [exchange for exchange in exchanges if match.covers(exchange.request)]

    # --- recordings --------------------------------------------------------------------------------------------------

    def record(self, target: str, reply: plan.Reply) -> None:
        self.recorded.pop(target, None)
        self.recorded[target] = reply
        if len(self.recorded) > _RECORDINGS:
            del self.recorded[next(iter(self.recorded))]


def expired_frame(request: SeenRequest, reason: str) -> bytes:
    status = plan.status_body(request, 410, reason=reason, message="too old resource version: 1 (2)")
    return b'{"type":"ERROR","object":' + status + b"}\n"


def reset(transport: asyncio.WriteTransport) -> None:
    """Close a connection with an RST, as a middlebox does."""
    found: socket.socket | None = transport.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
