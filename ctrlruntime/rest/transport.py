"""Requests to one API server: bytes out, bytes in, failures as exceptions.

The transport knows HTTP, credentials and time limits, and nothing of kinds. It keeps one aiohttp session per event
loop; TLS context and credential are shared by them. A 401 refreshes the credential once; a 429 or 503 that carries
Retry-After is waited for and sent again, as long as the request's own time limit allows it. A write is sent again for
no other reason: when its answer is lost nobody knows what it did.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import aiohttp
import msgspec
from multidict import CIMultiDictProxy
from typing_extensions import override
from yarl import URL

from ctrlruntime import log
from ctrlruntime.errors import APIStatusError, RequestTimeoutError, TransportError
from ctrlruntime.rest.content import JSON
from ctrlruntime.rest.fence import Fence
from ctrlruntime.rest.tls import TLSContexts

if TYPE_CHECKING:
    from aiohttp.connector import Connection

    from ctrlruntime.rest.config import Config

MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MAX_RETRIES = 10
MAX_WARNINGS = 1000
READ_BUFFER = 1024 * 1024

Params: TypeAlias = Sequence[tuple[str, str]]


class Response(NamedTuple):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RequestCounter(Protocol):
    """Counts answers; `metrics.rest` is one."""

    def request(self, code: str, method: str, host: str) -> None: ...


class _NoCounter:
    def request(self, code: str, method: str, host: str) -> None:
        return


class Transport:
    """Sends requests to the API server of `config`; close it when done. Safe to use from several event loops."""

    def __init__(
        self,
        config: Config,
        *,
        fence: Fence | None = None,
        counter: RequestCounter | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.config = config
        self.fence = fence or Fence()
        self._counter: RequestCounter = counter or _NoCounter()
        self._sleep = sleep
        self._tls = TLSContexts(config.tls, config.credential)
        self._base = URL(config.host.rstrip("/"))
        self._prefix = self._base.path.rstrip("/")
        self._request_class = _request_class(self.fence)
        self._sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = (
            weakref.WeakKeyDictionary()
        )
        self._warned: set[str] = set()
        self._log = log.get_logger("rest")

    @property
    def host(self) -> str:
        return str(self._base)

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
        """Send one request and return the answer of a 2xx.

        `timeout` bounds the whole call, retries included (seconds; default: the config's). Raises: APIStatusError,
        TransportError, FencedError, CredentialError.
        """
        limit = timeout if timeout is not None else self.config.timeout
        deadline = asyncio.get_running_loop().time() + limit
        try:
            async with asyncio.timeout_at(deadline):
                return await self._attempts(method, path, params, body, content_type, accept, deadline)
        except TimeoutError as error:
            self._count("<error>", method)
            raise RequestTimeoutError(
                f"{method} {path}: no complete answer from {self.host} within {limit:g} s"
            ) from error

    async def fetch(self, path: str, accept: str) -> tuple[int, bytes]:
        """GET a path and return status and body, a failure's too; what discovery asks with. Raises: TransportError."""
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
    ) -> Response:
        refreshed = False
        retries = 0
        while True:
            headers = await self._headers(accept)
            if body is not None:
                headers["Content-Type"] = content_type
            response = await self._once(method, path, params, body, headers)
            if response.status < 300:
                return response
            if response.status == 401 and not refreshed and await self._refresh(headers):
                refreshed = True
                continue
            wait = _retry_after(response.headers)
            may_retry = response.status in {429, 503} and retries < MAX_RETRIES
            # A wait that the time limit would cut off is not begun: what the server said would be lost.
            if wait is None or not may_retry or asyncio.get_running_loop().time() + wait >= deadline:
                raise APIStatusError.from_response(response.status, response.body, retry_after=wait)
            retries += 1
            await self._sleep(wait)

    async def _once(
        self, method: str, path: str, params: Params, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """Send one attempt and read its answer, whatever the status."""
        try:
            with translating(method, path, self.host):
                if method in MUTATING and self.fence.time_left() is not None:
                    async with self.fence.enforced(f"{method} {path}"):
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
        async with self._session().request(
            method, self._url(path, params), data=body, headers=headers, allow_redirects=False, **self._tls_options()
        ) as answer:
            content = await answer.read()
        return Response(answer.status, answer.headers, content)

    # --- answers that go on ------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, *, params: Params = (), accept: str = JSON, headers_within: float = 10.0
    ) -> AsyncGenerator[aiohttp.StreamReader, None]:
        """Open a GET whose answer is read as it comes (a watch, a log) and yield the reader.

        `headers_within`: seconds until the answer must begin. Raises: APIStatusError, TransportError; while reading,
        aiohttp's errors are the caller's to translate with `translating`.
        """
        answer = await self._begin(path, params, accept, headers_within)
        try:
            if answer.status >= 300:
                raise await self._failure(answer, path, headers_within)
            self._log_warnings(answer.headers)
            yield answer.content
        finally:
            _cut(answer)

    async def _begin(self, path: str, params: Params, accept: str, headers_within: float) -> aiohttp.ClientResponse:
        headers = await self._stream_headers(accept)
        answer = await self._open(path, params, headers, headers_within)
        if answer.status != 401:
            return answer
        try:
            if not await self._refresh(headers):
                return answer
        except BaseException:
            answer.close()
            raise
        answer.close()
        return await self._open(path, params, await self._stream_headers(accept), headers_within)

    async def _open(
        self, path: str, params: Params, headers: Mapping[str, str], headers_within: float
    ) -> aiohttp.ClientResponse:
        try:
            with translating("GET", path, self.host):
                async with asyncio.timeout(headers_within):
                    answer = await self._session().get(
                        self._url(path, params), headers=headers, allow_redirects=False, **self._tls_options()
                    )
        except TimeoutError as error:
            self._count("<error>", "GET")
            raise RequestTimeoutError(f"GET {path}: {self.host} sent no headers within {headers_within:g} s") from error
        except TransportError:
            self._count("<error>", "GET")
            raise
        self._count(str(answer.status), "GET")
        return answer

    async def _failure(self, answer: aiohttp.ClientResponse, path: str, within: float) -> Exception:
        content = b""
        with contextlib.suppress(TimeoutError):  # the status alone says enough
            async with asyncio.timeout(within):
                with translating("GET", path, self.host):
                    content = await answer.read()
        return APIStatusError.from_response(answer.status, content, retry_after=_retry_after(answer.headers))

    # --- the session -------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Close the session of the running loop; sessions of other loops are closed there."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is None:
            return
        if isinstance(session.connector, aiohttp.TCPConnector):
            # A TLS connection that is closed politely waits for the server's answer, and would outlive its event loop.
            await session.connector.close(abort_ssl=True)
        await session.close()
        await _settle()

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            session = self._sessions[loop] = self._new_session(loop)
        return session

    def _new_session(self, loop: asyncio.AbstractEventLoop) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=30, keepalive_timeout=55.0, happy_eyeballs_delay=None
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=self.config.connect_timeout),
            read_bufsize=READ_BUFFER,
            skip_auto_headers=("Accept", "Content-Type"),
            headers=[
                ("User-Agent", self.config.user_agent),
                ("Accept-Encoding", "gzip"),
                *self.config.impersonation_headers(),
            ],
            cookie_jar=aiohttp.DummyCookieJar(loop=loop),
            proxy=self.config.proxy_for(),
            request_class=self._request_class,
            middlewares=(_send_writes_once,),
        )

    def _tls_options(self) -> dict[str, Any]:
        if self._base.scheme != "https":
            return {}
        # Asked for each request: the context is another one after a certificate was replaced.
        return {"ssl": self._tls.current(), "server_hostname": self._tls.server_hostname}

    def _url(self, path: str, params: Params) -> URL:
        base = self._base
        return URL.build(scheme=base.scheme, authority=base.authority, path=self._prefix + path, query=params or None)

    async def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if self.config.credential is not None:
            headers.update(await self.config.credential.headers())
        return headers

    async def _stream_headers(self, accept: str) -> dict[str, str]:
        # What stands between may compress a watch, and would then hold frames back until a block is full.
        return {"Accept-Encoding": "identity", **await self._headers(accept)}

    async def _refresh(self, stale: Mapping[str, str]) -> bool:
        credential = self.config.credential
        return credential is not None and await credential.refresh(stale)

    def _count(self, code: str, method: str) -> None:
        self._counter.request(code, method, self._base.authority)

    def _log_warnings(self, headers: Mapping[str, str]) -> None:
        if "Warning" not in headers:
            return
        for text in _warnings(headers):
            # Once for each text: a deprecation would else be logged with every request.
            if text not in self._warned:
                if len(self._warned) < MAX_WARNINGS:
                    self._warned.add(text)
                self._log.warning("warning from the API server", warning=text)


def _cut(answer: aiohttp.ClientResponse) -> None:
    """End an answer that was not read to its end, and its connection at once: nobody waits for the rest of a watch."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


async def _settle() -> None:
    """Let the loop run the callbacks of connections that were cut; afterwards no socket is left open."""
    for _ in range(3):
        await asyncio.sleep(0)


# --- aiohttp's own behaviour, mended -------------------------------------------------------------------------------


def _request_class(fence: Fence) -> type[aiohttp.ClientRequest]:
    class Request(aiohttp.ClientRequest):
        """Asks the fence when a connection is held, before the first byte: connecting may have taken its time."""

        @override
        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            if self.method in MUTATING:
                fence.time_left()
            return await super().send(conn)

    return Request


class _AnswerLostError(aiohttp.ClientError):
    """A write's connection broke; its cause says how."""


async def _send_writes_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending PUT and DELETE again when a connection breaks: the first one may have been done."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method in MUTATING:
            raise _AnswerLostError from error
        raise


# --- failures ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def translating(method: str, path: str, host: str) -> Generator[None, None, None]:
    """Turn the HTTP library's errors inside the block into TransportError; time limits set by us pass."""
    try:
        yield
    except aiohttp.ServerTimeoutError as error:
        raise RequestTimeoutError(f"{method} {path}: no connection to {host} in time ({error})") from error
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError) as error:
        cause = error.__cause__ if isinstance(error, _AnswerLostError) else None
        raise TransportError(_explain(method, path, host, cause or error)) from error


def _explain(method: str, path: str, host: str, error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"{method} {path}: the certificate of {host} is not trusted ({error.certificate_error}); "
                "check certificate-authority and tls-server-name in the kubeconfig"
            )
        case aiohttp.ClientHttpProxyError():
            return f"{method} {path}: the proxy in front of {host} refused ({error.status} {error.message})"
        case aiohttp.ClientProxyConnectionError():
            return f"{method} {path}: cannot connect to the proxy in front of {host} ({error.os_error})"
        case aiohttp.ClientConnectorSSLError():
            return f"{method} {path}: no TLS with {host} ({error.os_error}); does that address speak HTTPS?"
        case aiohttp.ClientConnectorError():
            return (
                f"{method} {path}: cannot connect to {host} ({error.os_error}); "
                "is the API server running and the address right?"
            )
        case aiohttp.ServerDisconnectedError():
            return f"{method} {path}: {host} closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return f"{method} {path}: the answer of {host} broke off ({error})"
        case _:
            return f"{method} {path}: the connection to {host} failed ({type(error).__name__}: {error})"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; the API server never sends a date."""
    try:
        return max(0.0, float(headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def _warnings(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts of Warning headers (RFC 7234 5.5: `299 - "text"`), of which a proxy may have joined several."""
    values = headers.getall("Warning") if isinstance(headers, CIMultiDictProxy) else [headers["Warning"]]
    for value in values:
        for quoted in _WARNING.findall(value):
            yield re.sub(r"\\(.)", r"\1", quoted)
