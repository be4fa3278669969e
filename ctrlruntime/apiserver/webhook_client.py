"""Calls to webhooks, of admission and of conversion: one POST over TLS, and failures in kube-apiserver's words.

The rooms above hand in where a webhook listens (`Endpoint`, from a `clientConfig`) and the bytes of a review; they get the bytes of the
answer. A webhook that is named by a Service is looked up in a table, since nothing routes to Services here. Connections are kept.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import socket
import ssl
import weakref
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from multidict import CIMultiDictProxy

from ctrlruntime.apiserver.encoding import decode_body
from ctrlruntime.apiserver.go_json import NO_HEAD, read_head
from ctrlruntime.apiserver.yaml_reader import read_yaml
from ctrlruntime.schema.trees import Document
from ctrlruntime.tls import client_context

_KEPT = 90.0
"""Seconds an idle connection is kept."""
_RETRIES = 10
_UNVERIFIED = "tls: failed to verify certificate: x509:"
_CLOSING = 3
"""Iterations of the event loop until it has closed the sockets that were shut down."""
_CONTEXTS = 64
_HEADERS = {
    "Accept": "application/json, */*",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",
    "User-Agent": "kube-apiserver-admission",
}
_GENERIC = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_LOOK = 2.0
"""Seconds for a second look at a certificate."""
_WRONG_NAME = frozenset({62, 64})
"""OpenSSL's codes for a certificate of another host or address."""
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's codes for a chain that ends in an untrusted certificate."""


class WebhookCallError(Exception):
    """A webhook gave no usable answer; the message is the one kube-apiserver has for it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a webhook listens: `url` as it is named, the Service behind it (`namespace/name:port`, or empty), whom to trust (PEM)."""

    url: str
    service: str = ""
    ca: bytes = b""


def endpoint_of(config: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint of a `clientConfig`, which has been validated."""
    ca = base64.b64decode(config.get("caBundle") or "")
    service: Mapping[str, Any] | None = config.get("service")
    if service is None:
        return Endpoint(str(config.get("url", "")), "", ca)
    namespace, name, port = service.get("namespace", ""), service.get("name", ""), service.get("port", 443)
    path = "/" + str(service.get("path") or "").lstrip("/")
    return Endpoint(f"https://{name}.{namespace}.svc:{port}{path}", f"{namespace}/{name}:{port}", ca)


class WebhookClient:
    """Calls webhooks, from one event loop. `services` maps `namespace/name:port` to `host:port` and may change while it runs."""

    def __init__(self, services: Mapping[str, str] | None = None) -> None:
        self.services: MutableMapping[str, str] = dict(services or {})
        self.find_service: Callable[[str, str], Mapping[str, Any] | None] | None = None
        """Returns a Service by namespace and name, for the error of one that is in no table."""
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._contexts: dict[bytes, ssl.SSLContext] = {}

    async def call(self, endpoint: Endpoint, body: bytes, timeout: int) -> bytes:
        """Post the review and return the body of the answer; `timeout` is in seconds. Raises: WebhookCallError."""
        shown = f"{endpoint.url}?timeout={timeout}s"
        try:
            async with asyncio.timeout(timeout):
                return await self._post(endpoint, body, f"?timeout={timeout}s")
        except TimeoutError:
            raise WebhookCallError(f'Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError) as error:
            why = await self._wrong_name(error, endpoint) or _why(error)
            raise WebhookCallError(f'Post "{shown}": {why}') from error

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is None:
            return
        await session.close()
        # aiohttp forgets the connection of an abandoned call, and TLS waits for the webhook to close it.
        for each in list(self._sockets):
            with contextlib.suppress(OSError):  # it is closed
                each.shutdown(socket.SHUT_RDWR)
        for _ in range(_CLOSING):
            await asyncio.sleep(0)

    def _new_socket(self, address: tuple[int, int, int, str, Any]) -> socket.socket:
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made

    async def _post(self, endpoint: Endpoint, body: bytes, query: str) -> bytes:
        session = self._opened()
        parts = urlsplit(endpoint.url)
        url, headers, server_name = endpoint.url + query, _HEADERS, parts.hostname
        if endpoint.service:
            url = f"https://{self._located(endpoint)}{parts.path}{query}"
            headers = {**_HEADERS, "Host": parts.netloc}
        context = self._context(endpoint.ca)
        for attempt in range(_RETRIES + 1):
            async with session.post(
                url, data=body, headers=headers, ssl=context, server_hostname=server_name, allow_redirects=True
            ) as answer:
                wait = answer.headers.get("Retry-After", "") if answer.status == 429 or answer.status >= 500 else ""
                if not wait.isdigit() or attempt == _RETRIES:
                    return _body(answer.status, answer.headers, await answer.read())
            await asyncio.sleep(int(wait))
        raise AssertionError("the last attempt returns")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT, socket_factory=self._new_socket)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    def _located(self, endpoint: Endpoint) -> str:
        address = self.services.get(endpoint.service)
        if address is None:
            namespace, _, rest = endpoint.service.partition("/")
            name = rest.rpartition(":")[0]
            service = self.find_service(namespace, name) if self.find_service is not None else None
            address = ((service or {}).get("spec") or {}).get("clusterIP", "")
            if service is None:
                raise OSError(f'service "{name}" not found')
            if address in {"", "None"}:
                raise OSError(f'cannot route to service with ClusterIP "{address}"')
            raise OSError(
                f'service "{name}" exists, but the embedded API server runs no Pods behind it. Run the operator on this machine with '
                "`ctrl run --webhooks development`, or set clientConfig.url"
            )
        return address

    async def _wrong_name(self, error: Exception, endpoint: Endpoint) -> str:
        """Return for whom a certificate is, when it is for somebody else; that takes a second look at it."""
        if not isinstance(error, aiohttp.ClientConnectorCertificateError):
            return ""
        failure = error.certificate_error
        if not isinstance(failure, ssl.SSLCertVerificationError) or failure.verify_code not in _WRONG_NAME:
            return ""
        context = _trusting(endpoint.ca)
        context.check_hostname = False
        try:
            async with asyncio.timeout(_LOOK):
                _, writer = await asyncio.open_connection(error.host, error.port, ssl=context)
        except OSError:
            return _why(error)
        certificate = writer.get_extra_info("peercert") or {}
        writer.transport.abort()
        return _valid_for(certificate, urlsplit(endpoint.url).hostname or "")

    def _context(self, ca: bytes) -> ssl.SSLContext:
        context = self._contexts.get(ca)
        if context is None:
            if len(self._contexts) >= _CONTEXTS:
                self._contexts.clear()
            context = self._contexts[ca] = _trusting(ca)
        return context


def _trusting(ca: bytes) -> ssl.SSLContext:
    try:
        return client_context(ca or None)
    except ValueError:
        raise WebhookCallError("unable to load root certificates: unable to parse bytes as PEM block") from None


def _body(code: int, headers: CIMultiDictProxy[str], body: bytes) -> bytes:
    """Return the body of a good answer. Raises: WebhookCallError."""
    kind = headers.get("Content-Type") or "application/json"
    if 200 <= code < 300:
        if not body:
            raise WebhookCallError(f"0-length response with status code: {code} and content type: {kind}")
        return body
    status = _status_message(body)
    if status:
        raise WebhookCallError(status)
    text = body.decode("utf-8", "replace").strip() if kind.startswith("text/") else "unknown"
    if code in {403, 406, 415}:
        raise WebhookCallError(text)
    if code in _GENERIC:
        raise WebhookCallError(_GENERIC[code])
    if code >= 500:
        shown = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        raise WebhookCallError(f'an error on the server ("{shown}") has prevented the request from succeeding')
    raise WebhookCallError(f"the server responded with the status code {code} but did not return more information")


def read_review(body: bytes) -> Document:
    """Return the review that a webhook answered, as client-go reads it: what does not begin as JSON is YAML.

    Raises: ValueError with the message of the decoder.
    """
    if body.lstrip().startswith(b"{"):
        try:
            tree = decode_body(body)
        except ValueError as error:
            raise ValueError(f"{NO_HEAD}: {error}") from None
    else:
        tree, _ = read_yaml(body)
    read_head(tree)
    return tree or {}


def _status_message(body: bytes) -> str:
    """Return the message of a body that is a failure Status."""
    try:
        status: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    if not isinstance(status, dict) or status.get("kind") != "Status" or status.get("status") == "Success":
        return ""
    return str(status.get("message") or "unknown")


def _why(error: Exception) -> str:
    """Return what Go would say of a connection that failed."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _untrusted(error.certificate_error)
        case aiohttp.ClientConnectorSSLError():
            return f"tls: {error.os_error.reason}" if isinstance(error.os_error, ssl.SSLError) else f"tls: {error}"
        case aiohttp.ClientConnectorError():
            return _unreachable(error)
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case _:
            return str(error) or type(error).__name__


def _unreachable(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {error.host}:{error.port}: connect: connection refused"
    return f"dial tcp {error.host}:{error.port}: {(cause.strerror or str(cause)).lower()}"


def _untrusted(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f"{_UNVERIFIED} {error}"
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return f"{_UNVERIFIED} certificate signed by unknown authority"
    if error.verify_code in {9, 10}:
        return f"{_UNVERIFIED} certificate has expired or is not yet valid"
    return f"{_UNVERIFIED} {error.verify_message}"


def _valid_for(certificate: Mapping[str, Any], host: str) -> str:
    names: list[tuple[str, str]] = list(certificate.get("subjectAltName") or ())
    addresses = [name for kind, name in names if kind == "IP Address"]
    try:
        ipaddress.ip_address(host)
    except ValueError:
        found = [name for kind, name in names if kind == "DNS"]
        if not found:
            return f"{_UNVERIFIED} certificate is not valid for any names, but wanted to match {host}"
    else:
        found = addresses
        if not found:
            return f"{_UNVERIFIED} cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return f"{_UNVERIFIED} certificate is valid for {', '.join(found)}, not {host}"


__all__ = ["Endpoint", "WebhookCallError", "WebhookClient", "endpoint_of"]
