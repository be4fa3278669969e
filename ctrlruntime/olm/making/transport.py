"""HTTP requests to registries: safe URLs, responses, and the logins that a response requires."""

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
from typing import Final

from ctrlruntime.errors import ConfigError
from ctrlruntime.rest.redaction import shown_url

__all__ = ["MOST", "Answer", "Challenge", "Transport", "challenges_of", "is_local"]

MOST: Final = 4 * 1024 * 1024
"""The maximum bytes read from a response: no registry accepts a larger manifest."""

_REDIRECTS: Final = 5
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_REPEATABLE: Final = frozenset({"GET", "HEAD"})
_PARTS: Final = re.compile(
    r"(?P<key>[\w-]+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<bare>[^\s,\"]+))|(?P<scheme>[\w-]+)"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Message
    body: bytes
    """At most `MOST` + 1 bytes; with the last one, the body is too large."""

    url: str
    """The URL after redirects."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The authentication of a registry: the scheme, in lower case, and its parameters."""

    scheme: str
    parameters: Mapping[str, str]


class Transport:
    """Sends requests to this machine by http, and to others by https. `patience`: seconds to wait for the next bytes of a response."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        # What is asked by plain http is on this machine, where no proxy leads.
        proxies = {scheme: url for scheme, url in urllib.request.getproxies().items() if scheme == "https"}
        # Put together by hand: there is none for other protocols, no status is an exception, and redirects are ours.
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(proxies),
            urllib.request.HTTPHandler(),
            urllib.request.HTTPSHandler(),
        ):
            self._opener.add_handler(handler)

    def ask(
        self, url: str, *, method: str = "GET", authorization: str = "", accept: str = "*/*", form: bytes | None = None
    ) -> Answer:
        """Return the response with any status. Redirects are followed; credentials are not sent to another host.

        Raises: ConfigError with the host and the cause.
        """
        headers = {"Accept": accept, "User-Agent": "ctrlruntime"}
        answer = self._asked(url, method, {**headers, **_authorized(authorization)}, form)
        for _ in range(_REDIRECTS):
            place = answer.headers.get("Location")
            if answer.status not in _MOVED or method not in _REPEATABLE or not place:
                break
            target = _target(answer.url, place)
            authorization = authorization if _base_of(target) == _base_of(answer.url) else ""
            answer = self._asked(target, method, {**headers, **_authorized(authorization)}, None)
        return answer

    def _asked(self, url: str, method: str, headers: dict[str, str], form: bytes | None) -> Answer:
        host = _host_of(url)
        try:
            request = urllib.request.Request(url, data=form, method=method, headers=headers)  # noqa: S310 - _host_of let it pass
            with self._opener.open(request, timeout=self._patience) as found:
                return Answer(found.status, found.headers, found.read(MOST + 1), url)
        except TimeoutError as error:
            raise ConfigError(self._late(host)) from error
        except urllib.error.URLError as error:
            raise ConfigError(self._unreached(host, error.reason)) from error
        except (HTTPException, ValueError, OverflowError) as error:
            raise ConfigError(f"the response from {host} is not HTTP. Check the registry name and port") from error
        except OSError as error:
            raise ConfigError(self._unreached(host, error)) from error

    def _unreached(self, host: str, reason: object) -> str:
        if isinstance(reason, TimeoutError):
            return self._late(host)
        if isinstance(reason, ssl.SSLCertVerificationError):
            why = f"the certificate of {host} is not trusted ({reason.verify_message})"
            return f"{why}. Add its CA to the CAs of the system, or set SSL_CERT_FILE to a file with it"
        if isinstance(reason, ssl.SSLError):
            why = f"cannot connect to {host} with TLS ({reason.reason or 'no reason given'})"
            return f"{why}, which all registries on other machines require. Pass the digest as an option"
        why = (reason.strerror if isinstance(reason, OSError) else "") or " ".join(str(reason).split())
        return f"cannot reach {host}: {why}. Check its name and the network, or pass the digest as an option"

    def _late(self, host: str) -> str:
        return (
            f"{host} does not respond within {self._patience:g} s. Check the network, or pass the digest as an option"
        )


def _authorized(authorization: str) -> dict[str, str]:
    return {"Authorization": authorization} if authorization else {}


def _base_of(url: str) -> str:
    """Return scheme and host of a URL."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_local(host: str) -> bool:
    """Whether a host, which may have a port, is this machine."""
    try:
        name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _target(url: str, place: str) -> str:
    """Return the target of a redirect. Raises: ConfigError for a URL that is not allowed."""
    try:
        target = urllib.parse.urljoin(url, place)
        _host_of(target)
    except (ValueError, ConfigError):
        raise ConfigError(
            f"cannot follow the redirect from {_host_of(url)} to {shown_url(place)!r}: only https is supported"
        ) from None
    return target


def _host_of(url: str) -> str:
    """Return the host, with its port, of an allowed URL. Raises: ConfigError for another one."""
    try:
        parts = urllib.parse.urlsplit(url)
        is_good = parts.scheme == "https" or (parts.scheme == "http" and is_local(parts.netloc))
    except ValueError:
        parts, is_good = None, False
    if parts is None or not is_good or not parts.hostname:
        raise ConfigError(f"cannot query {shown_url(url)!r}: only https is supported")
    return parts.netloc


def challenges_of(headers: Message) -> list[Challenge]:
    """Return the challenges of a response of status 401."""
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
