"""Requests to registries over HTTP: what is safe to ask, what is answered, and how an answer says that it wants a login."""

from __future__ import annotations

import ipaddress
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import IO, Final

from typing_extensions import override

from ctrlruntime.errors import ConfigError

__all__ = ["MOST", "Answer", "Challenge", "Transport", "base_of", "challenges_of"]

MOST: Final = 4 * 1024 * 1024
"""Bytes that are read of an answer: no registry takes a larger manifest."""

_AUTHORIZATION: Final = "Authorization"
_PARTS: Final = re.compile(r"(?P<key>[\w-]+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s,\"]+))|(?P<scheme>[A-Za-z]+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Message
    body: bytes
    """At most `MOST` bytes and one, which tells that there are more."""

    url: str
    """Where it came from, redirects followed."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """How a registry wants to be asked: the scheme, in lower case, and what it says beside."""

    scheme: str
    parameters: Mapping[str, str]


class Transport:
    """Asks what is on this machine by http and all else by https. `patience`: seconds to wait for the next bytes of an answer."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        # What is asked by plain http is on this machine, where no proxy leads.
        proxies = {scheme: url for scheme, url in urllib.request.getproxies().items() if scheme == "https"}
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), _Redirects())

    def ask(
        self, url: str, *, method: str = "GET", authorization: str = "", accept: str = "*/*", form: bytes | None = None
    ) -> Answer:
        """Return the answer, whatever its status. Raises: ConfigError, which says whom it could not ask, and why."""
        host = _host_of(url)
        request = urllib.request.Request(  # noqa: S310 - _host_of let the URL pass
            url, data=form, method=method, headers={"Accept": accept, "User-Agent": "ctrlruntime"}
        )
        if authorization:
            request.add_unredirected_header(_AUTHORIZATION, authorization)
        try:
            return self._answer(request)
        except TimeoutError as error:
            raise ConfigError(self._late(host)) from error
        except urllib.error.URLError as error:
            raise ConfigError(self._unreached(host, error.reason)) from error
        except (HTTPException, ValueError) as error:
            raise ConfigError(f"what answers at {host} speaks no HTTP; is it a registry?") from error
        except OSError as error:
            raise ConfigError(self._unreached(host, error)) from error

    def _answer(self, request: urllib.request.Request) -> Answer:
        try:
            with self._opener.open(request, timeout=self._patience) as found:
                return Answer(found.status, found.headers, found.read(MOST + 1), found.url)
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read(MOST + 1), error.url)

    def _unreached(self, host: str, reason: object) -> str:
        if isinstance(reason, TimeoutError):
            return self._late(host)
        if isinstance(reason, ssl.SSLCertVerificationError):
            why = f"the certificate of {host} is not trusted ({reason.verify_message})"
            return f"{why}: add its authority to the system's, or name a file with it in SSL_CERT_FILE"
        why = (reason.strerror if isinstance(reason, OSError) else "") or " ".join(str(reason).split())
        return f"{host} cannot be reached ({why}): check its name and the network, or give the digests in a file"

    def _late(self, host: str) -> str:
        return f"{host} does not answer within {self._patience:g} s: check the network, or give the digests in a file"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Keeps the method, and does not tell another host what is only for the one that was asked."""

    @override
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if req.get_method() not in {"GET", "HEAD"}:
            return None
        try:
            _host_of(newurl)
        except ConfigError as error:
            raise urllib.error.URLError(str(error)) from error
        again = urllib.request.Request(newurl, method=req.get_method(), headers=req.headers)  # noqa: S310 - as above
        authorization = req.get_header(_AUTHORIZATION)
        if authorization and base_of(newurl) == base_of(req.full_url):
            again.add_unredirected_header(_AUTHORIZATION, authorization)
        return again


def base_of(url: str) -> str:
    """Return scheme and host of a URL."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_local(host: str) -> bool:
    """Whether a host, which may have a port, is this machine."""
    name = urllib.parse.urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str:
    """Return the host, with its port, of a URL that may be asked. Raises: ConfigError for another."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_good = parts.scheme == "https" or (parts.scheme == "http" and is_local(parts.netloc))
    except ValueError as error:
        raise ConfigError(f"it points to {url!r}, which is no URL; is it a registry?") from error
    if not is_good or not parts.hostname:
        raise ConfigError(f"it points to {url!r}, and only https is safe to follow; ask who runs it")
    return parts.netloc


def challenges_of(headers: Message) -> list[Challenge]:
    """Return the ways an answer of status 401 offers."""
    return [challenge for text in headers.get_all("WWW-Authenticate") or () for challenge in _challenges(str(text))]


def _challenges(text: str) -> Iterator[Challenge]:
    scheme, parameters = "", dict[str, str]()
    for part in _PARTS.finditer(text):
        if part["scheme"] is None:
            quoted = part["quoted"]
            parameters[part["key"].lower()] = part["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            continue
        if scheme:
            yield Challenge(scheme, parameters)
        scheme, parameters = part["scheme"].lower(), {}
    if scheme:
        yield Challenge(scheme, parameters)
