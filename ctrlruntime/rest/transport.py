"""Requests to one API server: bytes out, bytes in, failures as exceptions.

The transport knows HTTP, credentials and time limits, and nothing of kinds. It keeps one aiohttp session per event loop; TLS context and
credential are shared by them. A 401 refreshes the credential once; a 429 or 503 that carries Retry-After is waited for and sent again, as
long as the request's own time limit allows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import aiohttp
from yarl import URL

from ctrlruntime import log
from ctrlruntime.errors import APIStatusError, RequestTimeoutError, TransportError
from ctrlruntime.rest.fence import Fence
from ctrlruntime.rest.tls import TLSContexts

if TYPE_CHECKING:
    from ctrlruntime.rest.config import Config

JSON = "application/json"
MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE"})
MAX_RETRIES = 10
READ_BUFFER = 1024 * 1024

Params: TypeAlias = Sequence[tuple[str, str]]


class Response(NamedTuple):
    """A complete successful answer."""

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
        self._tls = TLSContexts(config.tls)
        self._base = URL(config.host.rstrip("/"))
        self._sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = (
            weakref.WeakKeyDictionary()
        )
        self._urls: dict[str, URL] = {}
        self._warned: set[str] = set()
        self._log = log.get_logger("rest")

    @property
    def host(self) -> str:
        return str(self._base)

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

        `timeout` bounds the whole call, retries included (seconds; default: the config's). Raises: APIStatusError, TransportError, FencedError.
        """
        limit = timeout if timeout is not None else self.config.timeout
        try:
            async with asyncio.timeout(limit):
                return await self._attempts(method, path, params, body, content_type, accept)
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"{method} {path}: no complete answer from {self.host} within {limit:g} s"
            ) from error

    async def _attempts(
        self, method: str, path: str, params: Params, body: bytes | None, content_type: str, accept: str
    ) -> Response:
        refreshed = False
        for retry in range(MAX_RETRIES + 1):
            headers = await self._headers(accept)
            if body is not None:
                headers["Content-Type"] = content_type
            response = await self._once(method, path, params, body, headers)
            if response.status < 300:
                return response
            if response.status == 401 and not refreshed and await self._refresh(headers):
                refreshed = True
                continue
            wait = _retry_after(response)
            if wait is not None and response.status in {429, 503} and retry < MAX_RETRIES:
                await self._sleep(wait)
                continue
            raise APIStatusError.from_response(response.status, response.body, retry_after=wait)
        raise AssertionError("unreachable")

    async def _once(
        self, method: str, path: str, params: Params, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        # Checked for each attempt, after everything that waits but the connection itself.
        limit = self.fence.time_left() if method in MUTATING else None
        try:
            async with (
                asyncio.timeout(limit),
                self._session().request(
                    method, self._url(path, params), data=body, headers=headers, allow_redirects=False
                ) as answer,
            ):
                content = await answer.read()
        except TimeoutError as error:
            if limit is None:
                raise
            raise RequestTimeoutError(f"{method} {path}: cut off at the fence, {limit:.1f} s after it began") from error
        except (aiohttp.ClientError, OSError) as error:
            self._counter.request("<error>", method, self._base.authority)
            raise TransportError(_explain(method, path, self.host, error)) from error
        self._counter.request(str(answer.status), method, self._base.authority)
        self._log_warnings(answer.headers)
        return Response(answer.status, answer.headers, content)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, *, params: Params = (), accept: str = JSON, headers_within: float = 10.0
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a GET whose answer is read as it comes (a watch, a log) and yield the reader.

        `headers_within`: seconds until the answer must begin. Raises: APIStatusError, TransportError; while reading, aiohttp's errors are
        the caller's to translate with `translating`.
        """
        with translating("GET", path, self.host):
            headers = await self._headers(accept)
            answer = await self._open(path, params, headers, headers_within)
            if answer.status == 401 and await self._refresh(headers):
                answer.close()
                answer = await self._open(path, params, await self._headers(accept), headers_within)
        try:
            if answer.status >= 300:
                with translating("GET", path, self.host):
                    content = await answer.read()
                wait = _retry_after(Response(answer.status, answer.headers, content))
                raise APIStatusError.from_response(answer.status, content, retry_after=wait)
            self._log_warnings(answer.headers)
            yield answer.content
        finally:
            answer.close()

    async def _open(
        self, path: str, params: Params, headers: Mapping[str, str], headers_within: float
    ) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(headers_within):
                answer = await self._session().get(self._url(path, params), headers=headers, allow_redirects=False)
        except TimeoutError as error:
            raise RequestTimeoutError(f"GET {path}: {self.host} sent no headers within {headers_within:g} s") from error
        self._counter.request(str(answer.status), "GET", self._base.authority)
        return answer

    async def fetch(self, path: str, accept: str) -> tuple[int, bytes]:
        """GET a path and return status and body, a failure's too; what discovery asks with. Raises: TransportError."""
        try:
            response = await self.request("GET", path, accept=accept)
        except APIStatusError as error:
            return error.code, str(error).encode()
        return response.status, response.body

    async def close(self) -> None:
        """Close the session of the running loop; sessions of other loops are closed there."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    # --- parts -----------------------------------------------------------------------------------------------------

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            context = self._tls.current() if self._base.scheme == "https" else True
            connector = aiohttp.TCPConnector(
                ssl=context, limit=0, ttl_dns_cache=30, keepalive_timeout=55.0, happy_eyeballs_delay=None
            )
            session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.config.connect_timeout),
                read_bufsize=READ_BUFFER,
                auto_decompress=True,
                skip_auto_headers=("Accept", "Content-Type"),
                headers=[
                    ("User-Agent", self.config.user_agent),
                    ("Accept-Encoding", "gzip"),
                    *self.config.impersonation_headers(),
                ],
                cookie_jar=aiohttp.DummyCookieJar(loop=loop),
                proxy=self.config.proxy_for(),
            )
            self._sessions[loop] = session
        return session

    def _url(self, path: str, params: Params) -> URL:
        # Objects' paths are written once and asked for often; parsing a URL costs more than the look-up.
        url = self._urls.get(path)
        if url is None:
            url = URL.build(
                scheme=self._base.scheme, authority=self._base.authority, path=self._base.path.rstrip("/") + path
            )
            if len(self._urls) > 4096:
                self._urls.clear()
            self._urls[path] = url
        return url.with_query(params) if params else url

    async def _headers(self, accept: str) -> dict[str, str]:
        headers = {"Accept": accept}
        if self.config.credential is not None:
            headers.update(await self.config.credential.headers())
        return headers

    async def _refresh(self, stale: Mapping[str, str]) -> bool:
        credential = self.config.credential
        return credential is not None and await credential.refresh(stale)

    def _log_warnings(self, headers: Mapping[str, str]) -> None:
        if "Warning" not in headers:
            return
        values = headers.getall("Warning") if hasattr(headers, "getall") else [headers["Warning"]]
        for value in values:
            text = _warning_text(value)
            if text and text not in self._warned:
                # Once for each text: a deprecation would else be logged with every request.
                if len(self._warned) < 1000:
                    self._warned.add(text)
                self._log.warning("warning from the API server", warning=text)


@contextlib.contextmanager
def translating(method: str, path: str, host: str) -> Iterator[None]:
    """Turn the HTTP library's errors inside the block into TransportError."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise TransportError(_explain(method, path, host, error)) from error


def _explain(method: str, path: str, host: str, error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"{method} {path}: the certificate of {host} is not trusted ({error.certificate_error}); "
                "check certificate-authority in the kubeconfig"
            )
        case aiohttp.ClientConnectorError():
            return f"{method} {path}: cannot connect to {host} ({error.os_error}); is the API server running and the address right?"
        case _:
            return f"{method} {path}: the connection to {host} failed ({type(error).__name__}: {error})"


def _retry_after(response: Response) -> float | None:
    value = response.headers.get("Retry-After")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        return None


def _warning_text(value: str) -> str:
    """Return the text of a Warning header (RFC 9110 5.5: `299 - "text"`)."""
    parts = value.split(" ", 2)
    if len(parts) < 3 or parts[0] != "299":
        return ""
    return parts[2].strip().strip('"').replace('\\"', '"').replace("\\\\", "\\")
