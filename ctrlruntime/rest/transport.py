"""Requests to one API server: bytes out, bytes in, failures as exceptions.

The transport handles HTTP, credentials and timeouts, but no kinds. It has one pool of connections for each event loop; they share the TLS
context and the credential. After a 401 it refreshes the credential once. After a 429 or 503 with Retry-After it waits and sends the request
again, within the request's timeout. It repeats a write for no other reason, because after a lost response its outcome is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import math
import random
import re
import time
import urllib.parse
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.errors import AnswerTooLargeError, APIStatusError, ConfigError, RequestTimeoutError, TransportError
from ctrlruntime.rest.connection import Answer, Connection, ExchangeError, Headers, OversizeError
from ctrlruntime.rest.content import JSON
from ctrlruntime.rest.credentials import Credential
from ctrlruntime.rest.fence import Fence
from ctrlruntime.rest.limits import AnswerLimits, TokenBucket
from ctrlruntime.rest.pool import Address, ConnectTimeoutError, Pool
from ctrlruntime.rest.tls import TLSContexts

if TYPE_CHECKING:
    from ctrlruntime.rest.config import Config

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MAX_RETRIES = 10
FIRST_RETRY = 0.1
"""Minimum seconds before a request is repeated; doubled each time.

A server may send Retry-After: 0.
"""

RETRY_JITTER = 0.2
"""The maximum share of a delay that is added at random, so that clients do not retry all at once."""

MAX_WARNINGS = 1000

STORED_LATE = 5.0
"""Seconds after the time limit of a write without a response; after that the API server does not store it any more."""


Params: TypeAlias = Sequence[tuple[str, str]]
WaitReason: TypeAlias = Literal["connection", "rate"]
"""Why a request waited before it was sent: `max_connections`, or the limit `qps`."""


class Response(NamedTuple):
    """A complete response."""

    status: int
    headers: Headers
    body: bytes

    def __repr__(self) -> str:
        return f"Response(status={self.status}, {len(self.body)} bytes)"  # which may be a Secret's


class RequestCounter(Protocol):
    """Counts responses, such as `metrics.rest`."""

    def request(self, code: str, method: str, host: str) -> None: ...

    def throttled(self, seconds: float, host: str) -> None: ...

    def waited(self, seconds: float, reason: WaitReason, host: str) -> None: ...


class _NoCounter:
    def request(self, code: str, method: str, host: str) -> None:
        return

    def throttled(self, seconds: float, host: str) -> None:
        return

    def waited(self, seconds: float, reason: WaitReason, host: str) -> None:
        return


class _Turn:
    """The place of one request among the concurrent ones."""

    __slots__ = ("_turns", "is_waiting", "waited")

    def __init__(self, turns: asyncio.Semaphore) -> None:
        self._turns = turns
        self.is_waiting = False
        self.waited = 0.0

    async def __aenter__(self) -> None:
        self.waited = 0.0
        if not self._turns.locked():
            await self._turns.acquire()
            return
        loop = asyncio.get_running_loop()
        began, self.is_waiting = loop.time(), True
        await self._turns.acquire()
        self.is_waiting, self.waited = False, loop.time() - began

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self._turns.release()


class Transport:
    """Sends requests to the API server of `config`; close it at the end.

    Safe in several event loops.
    """

    def __init__(
        self,
        config: Config,
        *,
        fence: Fence | None = None,
        tls: TLSContexts | None = None,
        counter: RequestCounter | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.fence = fence or Fence()
        self._counter: RequestCounter = counter or _NoCounter()
        self._sleep = sleep
        self._rng = rng
        self._bucket = None if config.qps is None else TokenBucket(config.qps, config.burst, clock=clock)
        self.tls = tls or TLSContexts(config.tls, config.credential)
        """Shared by all transports to one cluster, in any thread."""

        host = config.host.rstrip("/")
        self._address = Address.parse(host)
        self.host = self._address.url
        """The server's address, for messages."""

        self._prefix = urllib.parse.urlsplit(host).path
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool] = weakref.WeakKeyDictionary()
        self._proxy = Address.parse_proxy(proxy) if (proxy := config.proxy_for()) else None
        # Plain HTTP is forwarded by an HTTP proxy, which reads the request; everything else goes through a tunnel.
        self._is_forwarded = self._proxy is not None and not self._proxy.is_socks and not self._address.is_secure
        self._fixed_headers = _fixed_headers(config, self._address, self._proxy if self._is_forwarded else None)
        self._warned: set[str] = set()
        self._log = log.get_logger("rest")

    def sibling(self, *, is_limited: bool = True) -> Transport:
        """Return a transport to the same server without the fence.

        It shares TLS and metrics, but no connections.

        It has its own rate limit, or none unless `is_limited`.
        """
        config = self.config if is_limited else dataclasses.replace(self.config, qps=None)
        return Transport(config, tls=self.tls, counter=self._counter)

    # --- whole answers -----------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params = (),
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float | None = None,
    ) -> Response:
        """Send one request and return the response of a 2xx.

        `timeout` limits the whole call with its retries (seconds; default: the config's). Raises: APIStatusError, TransportError,
        FencedError, CredentialError.
        """
        limit = timeout if timeout is not None else self.config.timeout
        deadline = asyncio.get_running_loop().time() + limit
        turn = _Turn(self._pool().turns)
        try:
            async with asyncio.timeout_at(deadline):
                return await self._attempts(method, path, params, body, content_type, accept, deadline, turn)
        except TimeoutError as error:
            self._count("<error>", method)
            if turn.is_waiting:
                raise RequestTimeoutError(
                    f"cannot send {method} {path}: all {self.config.max_connections} connections were in use for {limit:g} s. "
                    "Make fewer requests at once, or raise Config.max_connections"
                ) from error
            self.distrust_connections()
            raise RequestTimeoutError(
                f"{method} {path}: no complete response from {self.host} within {limit:g} s"
            ) from error

    async def fetch(self, path: str, accept: str) -> tuple[int, bytes]:
        """GET a path and return status and body, also of a failure, for discovery.

        Raises: TransportError.
        """
        try:
            response = await self.request("GET", path, accept=accept)
        except APIStatusError as error:
            return error.code, msgspec.json.encode(dict(error.status))
        return response.status, response.body

    async def _attempts(
        self,
        method: str,
        path: str,
        params: Params,
        body: bytes | None,
        content_type: str,
        accept: str,
        deadline: float,
        turn: _Turn,
    ) -> Response:
        refreshed = False
        retries = 0
        while True:
            if self._bucket is not None:
                await self._wait_for_token(self._bucket, f"{method} {path}", deadline)
            async with turn:
                headers = await self._headers(accept)
                if body is not None:
                    headers["Content-Type"] = content_type
                response = await self._once(method, path, params, body, headers, deadline)
            if turn.waited:
                self._counter.waited(turn.waited, "connection", self._address.authority)
            if response.status < 300:
                return response
            if response.status == 401 and not refreshed and await self._refresh(headers):
                refreshed = True
                continue
            asked = _retry_after(response.headers)
            wait = max(asked or 0.0, FIRST_RETRY * 2**retries) * (1.0 + RETRY_JITTER * self._rng())
            may_retry = asked is not None and response.status in {429, 503} and retries < MAX_RETRIES
            # A wait that the time limit would cut off is not begun: what the server said would be lost.
            if not may_retry or asyncio.get_running_loop().time() + wait >= deadline:
                raise APIStatusError.from_response(response.status, response.body, retry_after=asked)
            retries += 1
            self._counter.throttled(wait, self._address.authority)
            await self._sleep(wait)

    async def _wait_for_token(self, bucket: TokenBucket, what: str, deadline: float) -> None:
        left = deadline - asyncio.get_running_loop().time()
        wait = bucket.take(left)
        if wait is None:
            raise RequestTimeoutError(
                f"cannot send {what}: the limit of {bucket.qps:g} requests a second leaves no room within {left:.3g} s. "
                "Make fewer requests, or raise Config.qps"
            )
        if wait:
            self._counter.waited(wait, "rate", self._address.authority)
            await self._sleep(wait)

    async def _once(
        self,
        method: str,
        path: str,
        params: Params,
        body: bytes | None,
        headers: Mapping[str, str],
        deadline: float,
    ) -> Response:
        """Send one attempt and read its answer, whatever the status."""
        try:
            with translating(method, path):
                if method in MUTATING and self.fence.time_left() is not None:
                    async with self.fence.enforced(f"{method} {path}", stored_until=deadline + STORED_LATE):
                        response = await self._exchange(method, path, params, body, headers)
                else:
                    response = await self._exchange(method, path, params, body, headers)
        except TransportError:
            self._count("<error>", method)
            raise
        self._count(str(response.status), method)
        self._log_warnings(response.headers)
        return response

    async def _exchange(
        self, method: str, path: str, params: Params, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        pool = self._pool()
        connection, answer = await self._ask(pool, method, self._request(method, path, params, headers, body))
        try:
            content = await answer.whole()
        finally:
            pool.give_back(connection)
        return Response(answer.status, answer.headers, content)

    async def _ask(self, pool: Pool, method: str, request: bytes) -> tuple[Connection, Answer]:
        """Send a request and wait until its answer begins; the connection is the caller's to give back."""
        connection = pool.take()
        if connection is not None:
            try:
                return connection, await self._begin(pool, connection, method, request)
            except ExchangeError as error:
                # Closed by the server while it was idle, most likely. A read may ask another one; what a write has done nobody knows.
                if method in MUTATING or not error.unanswered:
                    raise
        connection = await pool.make()
        return connection, await self._begin(pool, connection, method, request)

    async def _begin(self, pool: Pool, connection: Connection, method: str, request: bytes) -> Answer:
        try:
            answer = connection.send(request, permit=self.fence.time_left if method in MUTATING else None)
            await answer.begun()
        except BaseException:
            pool.give_back(connection)
            raise
        return answer

    # --- answers that go on ------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, *, params: Params = (), accept: str = JSON, headers_within: float = 10.0
    ) -> AsyncGenerator[Answer, None]:
        """Open a GET with a streamed response (a watch, a log) and yield the response, to read with `read`.

        `headers_within`: seconds until the response must start. Raises: APIStatusError, TransportError. While reading, convert
        ExchangeError with `translating`. A response that is not read to its end is aborted.
        """
        pool = self._pool()
        connection, answer = await self._open(pool, path, params, accept, headers_within)
        try:
            if answer.status >= 300:
                raise await self._failure(answer, path, headers_within)
            self._log_warnings(answer.headers)
            yield answer
        finally:
            pool.give_back(connection)

    async def _open(
        self, pool: Pool, path: str, params: Params, accept: str, headers_within: float
    ) -> tuple[Connection, Answer]:
        headers = await self._stream_headers(accept)
        connection, answer = await self._open_once(pool, path, params, headers, headers_within)
        if answer.status != 401:
            return connection, answer
        try:
            if not await self._refresh(headers):
                return connection, answer
        except BaseException:
            pool.give_back(connection)
            raise
        pool.give_back(connection)
        return await self._open_once(pool, path, params, await self._stream_headers(accept), headers_within)

    async def _open_once(
        self, pool: Pool, path: str, params: Params, headers: Mapping[str, str], headers_within: float
    ) -> tuple[Connection, Answer]:
        try:
            with translating("GET", path):
                async with asyncio.timeout(headers_within):
                    connection, answer = await self._ask(pool, "GET", self._request("GET", path, params, headers))
        except TimeoutError as error:
            self._count("<error>", "GET")
            self.distrust_connections()
            raise RequestTimeoutError(f"GET {path}: {self.host} sent no headers within {headers_within:g} s") from error
        except TransportError:
            self._count("<error>", "GET")
            raise
        self._count(str(answer.status), "GET")
        return connection, answer

    async def _failure(self, answer: Answer, path: str, within: float) -> Exception:
        content = b""
        with contextlib.suppress(TimeoutError):  # the status alone says enough
            async with asyncio.timeout(within):
                with translating("GET", path):
                    content = await answer.whole()
        return APIStatusError.from_response(answer.status, content, retry_after=_retry_after(answer.headers))

    # --- other protocols ---------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def switch(
        self, path: str, *, params: Params = (), headers: Mapping[str, str], headers_within: float = 10.0
    ) -> AsyncGenerator[tuple[Connection, Answer], None]:
        """Open a GET that switches to another protocol, and yield the connection and the response with status 101.

        Read its data with `read` of the response, send with `write` of the connection, and convert ExchangeError with `translating`. The
        connection is closed at the end.

        `headers`: those that name the protocol. `headers_within`: seconds until the response must start. Raises: APIStatusError,
        TransportError.
        """
        pool = self._pool()
        # The credential is not refreshed after a 401: the caller has just read an object with it.
        request = self._request("GET", path, params, {**await self._stream_headers("*/*"), **headers})
        with translating("GET", path):
            connection = await pool.make()
        try:
            answer = await self._switch(connection, path, request, headers_within)
            self._count(str(answer.status), "GET")
            if answer.status < 200:
                yield connection, answer
            elif answer.status < 300:
                raise TransportError(f"GET {path}: {self.host} did not switch to another protocol")
            else:
                raise await self._failure(answer, path, headers_within)
        finally:
            pool.give_back(connection)

    async def _switch(self, connection: Connection, path: str, request: bytes, within: float) -> Answer:
        try:
            with translating("GET", path):
                async with asyncio.timeout(within):
                    answer = connection.switch(request)
                    await answer.begun()
                    return answer
        except TimeoutError as error:
            self._count("<error>", "GET")
            raise RequestTimeoutError(f"GET {path}: {self.host} sent no headers within {within:g} s") from error
        except TransportError:
            self._count("<error>", "GET")
            raise

    # --- connections -------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the connections of the running loop; those of other loops are closed there."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def replace_credentials(self, config: Config) -> None:
        """Use the credential and the certificates of another configuration of the same server, also in all siblings.

        The next request uses them, and no idle connection of before. Running requests and watches continue.

        Raises: ConfigError for certificates that cannot be used; then nothing changes.
        """
        self.tls.replace(config.tls, config.credential)
        self.config = config
        for loop, pool in list(self._pools.items()):
            with contextlib.suppress(RuntimeError):  # the loop has ended, and its connections with it
                loop.call_soon_threadsafe(pool.distrust)

    def distrust_connections(self) -> None:
        """Do not reuse any current connection; running requests continue.

        Call it if one was silent for too long. The cause (a load balancer that dropped its connections, a failed node) may affect the idle
        ones too, and each would cost another timeout.
        """
        self._pool().distrust()

    def _pool(self) -> Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            pool = self._pools[loop] = Pool(
                self._address,
                proxy=self._proxy,
                context=self.tls.current,
                server_hostname=self.tls.server_hostname,
                connect_timeout=self.config.connect_timeout,
                limit=self.config.max_connections,
                answers=AnswerLimits(self.config.max_header_size, self.config.max_answer_size),
            )
        return pool

    # --- requests ----------------------------------------------------------------------------------------------------

    def _request(
        self, method: str, path: str, params: Params, headers: Mapping[str, str], body: bytes | None = None
    ) -> bytes:
        target = self._prefix + (path if _is_plain(path) else urllib.parse.quote(path, safe=_PATH_SAFE))
        if params:
            target = f"{target}?{_query(tuple(params))}"
        if self._is_forwarded:
            target = f"http://{self._address.authority}{target}"
        lines = [f"{method} {target} HTTP/1.1\r\n", self._fixed_headers]
        lines += [_header(name, value) for name, value in headers.items()]
        if body is None and method not in MUTATING:
            return "".join((*lines, "\r\n")).encode()
        lines.append(f"Content-Length: {len(body or b'')}\r\n\r\n")
        return "".join(lines).encode() + (body or b"")

    async def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        credential: Credential | None = self.tls.credential
        if credential is not None:
            headers.update(await credential.headers())
        return headers

    async def _stream_headers(self, accept: str) -> dict[str, str]:
        # What stands between may compress a watch, and would then hold frames back until a block is full.
        return {**await self._headers(accept), "Accept-Encoding": "identity"}

    async def _refresh(self, stale: Mapping[str, str]) -> bool:
        credential: Credential | None = self.tls.credential
        return credential is not None and await credential.refresh(stale)

    def _count(self, code: str, method: str) -> None:
        self._counter.request(code, method, self._address.authority)

    def _log_warnings(self, headers: Headers) -> None:
        for text in _warnings(headers):
            # Once for each text: a deprecation would else be logged with every request.
            if text not in self._warned:
                if len(self._warned) < MAX_WARNINGS:
                    self._warned.add(text)
                self._log.warning("warning from the API server", warning=text)


# --- what goes out -------------------------------------------------------------------------------------------------

_PATH_SAFE = "/:@!$&'()*+,;=~"
_is_plain = re.compile(r"[A-Za-z0-9/._-]*", re.ASCII).fullmatch


@functools.lru_cache(maxsize=256)
def _query(params: tuple[tuple[str, str], ...]) -> str:
    return urllib.parse.urlencode(params)  # a program has few: its field manager, mostly


def _fixed_headers(config: Config, address: Address, forwarder: Address | None) -> str:
    """Return the header lines that every request has. `forwarder`: the proxy that reads them."""
    pairs = [("Host", address.authority), ("User-Agent", config.user_agent), *config.impersonation_headers()]
    lines = "".join(_header(name, value) for name, value in pairs)
    return lines if forwarder is None else lines + forwarder.proxy_authorization.decode()


def _header(name: str, value: str) -> str:
    if "\n" in value or "\r" in value:
        raise ConfigError(f"the header {name} would contain a line break; check the token, user agent and user")
    return f"{name}: {value}\r\n"


# --- failures ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translating(method: str, path: str) -> Generator[None, None, None]:
    """Convert an ExchangeError inside the block to a TransportError with the request."""
    try:
        yield
    except ConnectTimeoutError as error:
        raise RequestTimeoutError(f"{method} {path}: {error}") from error
    except OversizeError as error:
        raise AnswerTooLargeError(f"{method} {path}: {error}") from error
    except ExchangeError as error:
        raise TransportError(f"{method} {path}: {error}") from error


def _retry_after(headers: Headers) -> float | None:
    """Return the seconds of a Retry-After header; the API server never sends a date."""
    try:
        seconds = float(headers.get("Retry-After") or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def _warnings(headers: Headers) -> Iterator[str]:
    """Yield the texts of Warning headers (RFC 7234 5.5: `299 - "text"`), of which a proxy may have joined several."""
    for value in headers.all("Warning"):
        for quoted in _WARNING.findall(value):
            yield re.sub(r"\\(.)", r"\1", quoted)
