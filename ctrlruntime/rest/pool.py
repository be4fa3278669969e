"""The connections of one event loop to one API server: opened, reused while idle, and closed.

The transport takes one connection for each exchange and returns it. A connection is opened in steps on one socket: TCP, then the proxy's
tunnel if there is a proxy, then TLS. If a step is abandoned, the socket is closed.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import urllib.parse
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from ctrlruntime.errors import ConfigError
from ctrlruntime.rest import socks
from ctrlruntime.rest.connection import Connection, ExchangeError, new_buffer
from ctrlruntime.rest.limits import DEFAULT_ANSWER_LIMITS, AnswerLimits
from ctrlruntime.rest.redaction import shown_url
from ctrlruntime.rest.session import TLSSession
from ctrlruntime.tls import client_context

SOCKS = frozenset({"socks5", "socks5h"})
"""Schemes of SOCKS proxies. With both the proxy resolves the host, as in Go."""

_PORTS = {"http": 80, "https": 443}
_PROXY_PORTS = {**_PORTS, **dict.fromkeys(SOCKS, 1080)}

IDLE_FOR = 55.0
"""Seconds for which an idle connection is kept; load balancers drop idle ones after 60 and more."""


_buffers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview] = weakref.WeakKeyDictionary()
"""The buffer of all connections of a loop: one for each of a thousand clusters would be half of their memory."""


class ConnectTimeoutError(ExchangeError):
    """No connection was opened within its timeout."""


@dataclass(frozen=True, slots=True)
class Address:
    """The parts of a URL to connect to."""

    url: str
    """The URL without secrets."""

    scheme: str
    host: str
    port: int
    credentials: str = field(default="", repr=False)
    """`user:password`, decoded; only used for a proxy."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse an http:// or https:// URL. Raises: ConfigError."""
        try:
            return cls._parse(url, _PORTS)
        except ValueError:
            raise ConfigError(f"{shown_url(url)} is not an address; write https://host:port") from None

    @classmethod
    def parse_proxy(cls, url: str) -> Address:
        """Parse the URL of a proxy, which may also be socks5:// or socks5h://.

        Raises: ConfigError.
        """
        try:
            return cls._parse(url, _PROXY_PORTS)
        except ValueError:
            raise ConfigError(
                f"the proxy {shown_url(url)} is not supported; write http://host:port, https://host:port or socks5://host:port"
            ) from None

    @classmethod
    def _parse(cls, url: str, ports: Mapping[str, int]) -> Address:
        parts = urllib.parse.urlsplit(url)
        port = parts.port  # ValueError, whose text may quote a password
        if parts.scheme not in ports or not parts.hostname or port == 0:
            raise ValueError
        credentials = urllib.parse.unquote(parts.netloc.rpartition("@")[0])
        return cls(shown_url(url), parts.scheme, parts.hostname, port or ports[parts.scheme], credentials)

    @property
    def is_socks(self) -> bool:
        return self.scheme in SOCKS

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """`host:port` for requests, without the default port of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"

    @property
    def tunnel(self) -> str:
        """`host:port` for CONNECT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def proxy_authorization(self) -> bytes:
        """The header line with the credentials for a proxy; empty without credentials."""
        if not self.credentials:
            return b""
        return b"Proxy-Authorization: Basic " + base64.b64encode(self.credentials.encode()) + b"\r\n"


class _Tickets:
    """The TLS session that the next connections resume. It is valid with the context that made it.

    A handshake of OpenSSL takes half a millisecond of CPU time, a resumed one two thirds of it: a cache of 1,000 namespaces has 1,000.

    Each ticket that is taken costs 6 KB for ever, because `SSLObject.session` leaks a copy (python/cpython#116810, repaired in 3.12.8 and
    3.13.1). So a ticket is taken only after several connections, and each further one after twice as many.
    """

    def __init__(self, context: ssl.SSLContext | None, first_after: int) -> None:
        self.context = context
        self.session: ssl.SSLSession | None = None
        self.made = 0
        self._next_after = first_after

    def take(self, session: TLSSession) -> None:
        """Take the ticket of a connection that has received its first response, if it is time for one."""
        if self.session is None and self.made >= self._next_after:
            self._next_after *= 2
            self.session = session.ticket


class Pool:
    """The connections to `server`, through `proxy` if set.

    It belongs to the event loop of its first use.

    context: returns the TLS context, before each use; a connection with another context is not used again.
    server_hostname: the name in the certificate, if it differs from the address.
    connect_timeout: seconds.
    limit: the maximum number of concurrent exchanges.
    answers: the maximum size of a response.
    first_ticket_after: the number of connections before the first TLS ticket is taken.
    """

    def __init__(
        self,
        server: Address,
        *,
        proxy: Address | None = None,
        context: Callable[[], ssl.SSLContext],
        server_hostname: str | None = None,
        connect_timeout: float = 10.0,
        idle_for: float = IDLE_FOR,
        limit: int = 100,
        answers: AnswerLimits = DEFAULT_ANSWER_LIMITS,
        first_ticket_after: int = 8,
    ) -> None:
        self._server = server
        self._proxy = proxy
        self._context = context
        self._server_hostname = server_hostname or server.host
        self._connect_timeout = connect_timeout
        self._idle_for = idle_for
        self._answers = answers
        self._connections: set[Connection] = set()
        self._idle: list[Connection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._generation = 0
        self._first_ticket_after = first_ticket_after
        self._tickets = _Tickets(None, first_ticket_after)
        self.is_closed = False
        self.turns = asyncio.Semaphore(limit)
        """Held by each exchange with an end, in order of requests.

        A watch holds a connection for long, and no turn.
        """

    def take(self) -> Connection | None:
        """Return the idle connection that was used last, or None."""
        context = self._context() if self._server.is_secure else None
        while self._idle:
            connection = self._idle.pop()
            if connection.is_idle and connection.context is context:
                return connection
            self._drop(connection)
        return None

    async def make(self) -> Connection:
        """Open a connection.

        Raises: ExchangeError, ConfigError if certificates cannot be read.
        """
        context = self._context() if self._server.is_secure else None
        connection = Connection(self._server.url, buffer=_shared_buffer(), limits=self._answers)
        self._connections.add(connection)
        try:
            async with asyncio.timeout(self._connect_timeout):
                await self._connect(connection, context)
        except TimeoutError as error:
            self._drop(connection)
            raise ConnectTimeoutError(
                f"no connection to {self._server.url} in time (within {self._connect_timeout:g} s)"
            ) from error
        except BaseException:
            self._drop(connection)
            raise
        if self.is_closed:
            self._drop(connection)
            raise ExchangeError(f"the connection to {self._server.url} was closed before it was used")
        connection.context, connection.generation = context, self._generation
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for reuse, or close it: inside an exchange, after `distrust`, or when the pool is closed."""
        if self.is_closed or not connection.is_idle or connection.generation != self._generation:
            self._drop(connection)
            return
        self._keep_ticket(connection)
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._timer is None:
            self._timer = loop.call_later(self._idle_for, self._reap)

    def distrust(self) -> None:
        """Do not reuse any current connection; running exchanges continue to their end."""
        self._generation += 1
        while self._idle:
            self._drop(self._idle.pop())

    async def close(self) -> None:
        """Close every connection, including those in use and those being opened; then no socket is open."""
        self.is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._idle.clear()
        for connection in list(self._connections):
            self._drop(connection)
        for _ in range(3):  # the loop closes what was aborted in its next rounds
            await asyncio.sleep(0)

    def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        connection.abort()

    def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        while self._idle and loop.time() - self._idle[0].idle_since >= self._idle_for:
            self._drop(self._idle.pop(0))
        self._timer = None
        if self._idle:
            self._timer = loop.call_at(self._idle[0].idle_since + self._idle_for, self._reap)

    # --- making one ---------------------------------------------------------------------------------------------------

    async def _connect(self, connection: Connection, context: ssl.SSLContext | None) -> None:
        if self._proxy is None:
            hint = "is the API server running and the address right?"
            await _reach(connection, self._server, f"cannot connect to {self._server.url} ({{}}); {hint}")
        else:
            await self._connect_proxy(connection, self._proxy, tunnel=context is not None)
        if context is not None:
            await self._secure_server(connection, context)

    async def _secure_server(self, connection: Connection, context: ssl.SSLContext) -> None:
        if self._tickets.context is not context:
            self._tickets = _Tickets(context, self._first_ticket_after)
        tickets, kept, was_resumed = self._tickets, self._tickets.session, False
        hint = "check certificate-authority and tls-server-name in the kubeconfig"
        try:
            await _secure(connection, context, self._server_hostname, self._server.url, hint, kept)
            was_resumed = connection.session is not None and connection.session.was_resumed
            tickets.made += 1
        finally:
            if not was_resumed and tickets.session is kept:
                tickets.session = None  # it is not offered again

    def _keep_ticket(self, connection: Connection) -> None:
        if connection.session is not None and connection.context is self._tickets.context:
            self._tickets.take(connection.session)

    async def _connect_proxy(self, connection: Connection, proxy: Address, *, tunnel: bool) -> None:
        server = self._server
        if proxy.is_socks:
            await self._connect_socks(connection, proxy)
            return
        await _reach(connection, proxy, f"cannot connect to the proxy {proxy.url} in front of {server.url} ({{}})")
        if proxy.is_secure:
            hint = "only the certificate authorities of the system are trusted for a proxy"
            await _secure(connection, client_context(), proxy.host, f"the proxy {proxy.url}", hint)
        if not tunnel:
            return
        target = server.tunnel.encode()
        head = b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n" + proxy.proxy_authorization + b"\r\n"
        answer = connection.send(head)
        await answer.begun()
        if answer.status != HTTPStatus.OK:
            raise ExchangeError(
                f"the proxy {proxy.url} in front of {server.url} refused the connection (status {answer.status})"
            )

    async def _connect_socks(self, connection: Connection, proxy: Address) -> None:
        server = self._server
        try:
            made = await socks.dial(proxy.host, proxy.port, server.host, server.port, credentials=proxy.credentials)
        except OSError as error:
            raise ExchangeError(
                f"cannot connect to the proxy {proxy.url} in front of {server.url} ({error})"
            ) from error
        except ExchangeError as error:
            raise ExchangeError(f"the proxy {proxy.url} did not connect to {server.url}: {error}") from error
        try:
            await asyncio.get_running_loop().create_connection(lambda: connection, sock=made)
        except BaseException:
            made.close()
            raise


async def _secure(
    connection: Connection,
    context: ssl.SSLContext,
    hostname: str,
    peer: str,
    hint: str,
    ticket: ssl.SSLSession | None = None,
) -> None:
    try:
        await connection.secure(context, hostname, ticket)
    except ssl.SSLCertVerificationError as error:
        raise ExchangeError(f"the certificate of {peer} is not trusted ({error}); {hint}") from error
    except (ssl.SSLError, ExchangeError) as error:
        raise ExchangeError(f"no TLS connection with {peer} ({error}); check that it serves HTTPS") from error


async def _reach(connection: Connection, address: Address, complaint: str) -> None:
    try:
        await asyncio.get_running_loop().create_connection(lambda: connection, address.host, address.port)
    except OSError as error:
        raise ExchangeError(complaint.format(error)) from error


def _shared_buffer() -> memoryview:
    loop = asyncio.get_running_loop()
    if loop not in _buffers:
        _buffers[loop] = new_buffer()
    return _buffers[loop]
