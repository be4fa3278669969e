"""What kube-apiserver finds wrong with the text of a URL, before anything in it is judged.

It reads URLs as Go's net/url does, which is stricter than `urllib.parse` in places and has words of its own.
"""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Final

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_NOT_IN_HOST: Final = re.compile(r"[\x00-\x7f](?<![A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%])")
_PORT: Final = re.compile(r"(:[0-9]*)?")


def url_fault(url: str) -> str | None:
    """Return what is wrong with a URL, or None when it can be parsed."""
    fault = _fault(url)
    if fault is None:
        return None
    shown = json.dumps(url, ensure_ascii=False).replace("\x7f", "\\x7f")
    return f"parse {shown}: {fault}"


def _fault(url: str) -> str | None:
    if _CONTROL.search(url):
        return "net/url: invalid control character in URL"
    if url.startswith(":"):
        return "missing protocol scheme"
    rest = url.partition("#")[0].partition("?")[0]
    scheme = _SCHEME.match(rest)
    if scheme is not None:
        rest = rest[scheme.end() :]
    elif ":" in rest.partition("/")[0]:
        return "first path segment in URL cannot contain colon"
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return _host_fault(authority.rpartition("@")[2]) or _escape_fault(slash + path)
    return _escape_fault(rest)


def _host_fault(host: str) -> str | None:
    if host.startswith("["):
        address, bracket, port = host[1:].rpartition("]")
        if not bracket:
            return "missing ']' in host"
        if not _PORT.fullmatch(port):
            return f'invalid port "{port}" after host'
        return _address_fault(address.replace("%25", "%", 1))
    port = host[host.rindex(":") :] if ":" in host else ""
    if not _PORT.fullmatch(port):
        return f'invalid port "{port}" after host'
    if (fault := _escape_fault(host)) is not None:
        return fault
    stranger = _NOT_IN_HOST.search(host)
    return None if stranger is None else f'invalid character "{stranger.group()}" in host name'


def _address_fault(address: str) -> str | None:
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return f'invalid host: ParseAddr("{address}"): unable to parse IP'
    return None


def _escape_fault(text: str) -> str | None:
    start = text.find("%")
    while start >= 0:
        if not _ESCAPE.match(text, start):
            return f'invalid URL escape "{text[start : start + 3]}"'
        start = text.find("%", start + 1)
    return None
