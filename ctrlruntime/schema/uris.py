"""Which texts are URIs for Go: `url.ParseRequestURI` in net/url, which the format `uri` asks."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import unquote

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPES = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*\Z", re.DOTALL)
_USER = re.compile(r"(?:[A-Za-z0-9._:~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})*\Z")
_PORT = re.compile(r"(?::[0-9]*)?\Z")
_HOST = re.compile(r"(?:[^\x00-\x7f]|[A-Za-z0-9._~!$&'()*+,;=\[\]<>\"-]|%(?:[89A-Fa-f][0-9A-Fa-f]|25))*\Z")
"""Escapes are for what is not ASCII, and for the percent sign."""
_ADDRESS, _ZONE = re.compile(r"[0-9A-Fa-f:.]*\Z"), "%25"
"""The address in brackets, and what comes between it and the name of an interface."""


def is_request_uri(text: str) -> bool:
    """Tell whether the text is an absolute URI or an absolute path."""
    if text == "*":
        return True
    if not text or _CONTROL.search(text):
        return False
    scheme = _SCHEME.match(text)
    rest = (text[scheme.end() :] if scheme else text).partition("?")[0]
    if not rest.startswith("/"):
        return scheme is not None
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        return _is_authority(authority) and _ESCAPES.match(slash + path) is not None
    return _ESCAPES.match(rest) is not None


def _is_authority(text: str) -> bool:
    user, _, host = text.rpartition("@")
    if not _USER.match(user):
        return False
    if not host.startswith("["):
        name, colon, port = host.rpartition(":")
        if not colon:
            name, port = host, ""
        return _PORT.match(colon + port) is not None and _HOST.match(name) is not None
    address, bracket, port = host[1:].rpartition("]")
    address, _, zone = address.partition(_ZONE)
    return (
        bool(bracket)
        and bool(_PORT.match(port))
        and bool(_ESCAPES.match(zone))
        and "[" not in zone
        and _is_ipv6(address)
    )


def _is_ipv6(text: str) -> bool:
    try:
        return bool(_ADDRESS.match(unquote(text))) and bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False
