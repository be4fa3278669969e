"""URLs as Go's net/url reads them, which is stricter than `urllib.parse` in places, with its words for what is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ctrlruntime.addresses import go_quoted, why_no_address

_WORD: Final = rb"A-Za-z0-9\-._~"
_NOT_IN_HOST: Final = re.compile(rb"[\x00-\x7f](?<![" + _WORD + rb"!$&'()*+,;=:\[\]<>\"%])")
_NOT_IN_PATH: Final = re.compile(rb"[^" + _WORD + rb"$&+,/:;=@]")
_NOT_IN_GIVEN_PATH: Final = re.compile(rb"[^" + _WORD + rb"$&+,/:;=@!'()*\[\]%]")
_NOT_IN_USER: Final = re.compile(rb"[^" + _WORD + rb"$&+,;=]")
_USER: Final = re.compile(rb"[" + _WORD + rb":!$&'()*+,;=%@]*")
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")
_PORT: Final = re.compile(rb"(:[0-9]*)?")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(rb"[\x00-\x1f\x7f]")
_MOST_PARAMETERS: Final = 10_000


class URLError(ValueError):
    """A text that is not a URL."""


@dataclass(frozen=True, slots=True)
class URL:
    """The parts of a URL; `user` and `query` are as they are in it, the other parts are unescaped."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: bytes = b""
    given_path: bytes = b""
    query: str = ""
    fragment: str = ""

    def host_and_port(self) -> tuple[str, str]:
        """Return the host without brackets, and the port; empty if it has none."""
        host, colon, port = self.host.rpartition(":")
        if not colon or not re.fullmatch("[0-9]*", port):
            host, port = self.host, ""
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def escaped_path(self) -> str:
        """Return the path as it is sent: as it was given, if that is valid."""
        if self.path == b"*":
            return "*"
        if self.given_path and not _NOT_IN_GIVEN_PATH.search(self.given_path):
            return self.given_path.decode()
        return _NOT_IN_PATH.sub(_escape, self.path).decode()

    def parameters(self) -> dict[str, list[str]]:
        """Return the values of each parameter of the query; wrong ones are left out."""
        found: dict[str, list[str]] = {}
        parts = self.query.split("&")
        for part in parts if len(parts) <= _MOST_PARAMETERS else ():
            if not part or ";" in part:
                continue
            key, _, value = part.encode().partition(b"=")
            try:
                name, text = (_text(_unescaped(each.replace(b"+", b" "))) for each in (key, value))
            except URLError:
                continue
            found.setdefault(name, []).append(text)
        return found


def parse_url(text: str) -> URL:
    """Return the URL, which may be relative (url.Parse). Raises: URLError."""
    whole, _, fragment = text.partition("#")
    found = _parse(whole, is_request=False)
    try:
        shown = _text(_unescaped(fragment.encode("utf-8", "surrogatepass")))
    except URLError as error:
        raise URLError(f"parse {go_quoted(text)}: {error}") from None
    return URL(found.scheme, found.opaque, found.user, found.host, found.path, found.given_path, found.query, shown)


def parse_request_uri(text: str) -> URL:
    """Return the URL, which has a scheme or starts with a slash (url.ParseRequestURI). Raises: URLError.

    A fragment belongs to the part before it.
    """
    return _parse(text, is_request=True)


def _parse(text: str, *, is_request: bool) -> URL:
    try:
        return _parts(text.encode("utf-8", "surrogatepass"), is_request=is_request)
    except URLError as error:
        raise URLError(f"parse {go_quoted(text)}: {error}") from None


def _parts(url: bytes, *, is_request: bool) -> URL:
    if _CONTROL.search(url):
        raise URLError("net/url: invalid control character in URL")
    if not url and is_request:
        raise URLError("empty url")
    if url == b"*":
        return URL(path=url)
    if url.startswith(b":"):
        raise URLError("missing protocol scheme")
    found = _SCHEME.match(url)
    scheme = found[0].decode().lower() if found else ""
    rest, _, query = url[found.end() + 1 if found else 0 :].partition(b"?")
    shown = _text(query)
    if not rest.startswith(b"/"):
        if scheme:
            return URL(scheme, opaque=_text(rest), query=shown)
        if is_request:
            raise URLError("invalid URI for request")
        if b":" in rest.partition(b"/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith(b"//") and (scheme or not (is_request or rest.startswith(b"///"))):
        authority, slash, path = rest[2:].partition(b"/")
        rest = slash + path
        name, at, address = authority.rpartition(b"@")
        host = _host(scheme, address)
        user = _user(name) if at else None
    return URL(scheme, "", user, host, _unescaped(rest), rest, shown)


def _user(text: bytes) -> str:
    if not _USER.fullmatch(text):
        raise URLError("net/url: invalid userinfo")
    name, colon, password = (_unescaped(part) for part in text.partition(b":"))
    return b"".join((_NOT_IN_USER.sub(_escape, name), colon, _NOT_IN_USER.sub(_escape, password))).decode()


def _host(scheme: str, host: bytes) -> str:
    opening = host.rfind(b"[")
    if opening > 0:
        raise URLError("invalid IP-literal")
    if opening < 0:
        is_strict = scheme in {"http", "https"}
        colon = host.find(b":") if is_strict else host.rfind(b":")
        if colon >= 0:
            _check_port(host[colon:])
        return _text(_unescaped_host(host))
    closing = host.rfind(b"]")
    if closing < 0:
        raise URLError("missing ']' in host")
    _check_port(host[closing + 1 :])
    name = host[1:closing]
    zone = name.find(b"%25")
    address = _unescaped_host(name if zone < 0 else name[:zone])
    if zone >= 0:
        address += _unescaped_host(name[zone:], is_zone=True)
    shown = _text(address)
    why = why_no_address(shown)
    if why is not None:
        raise URLError(f"invalid host: {why}")
    if b":" not in address:
        raise URLError("invalid IP-literal")
    return f"[{shown}]{_text(host[closing + 1 :])}"


def _check_port(port: bytes) -> None:
    if not _PORT.fullmatch(port):
        raise URLError(f"invalid port {go_quoted(_text(port))} after host")


def _unescaped_host(text: bytes, *, is_zone: bool = False) -> bytes:
    """Return a host, in which only other bytes than ASCII are escaped, or its zone, in which all that a host may have is."""
    for found in re.finditer(rb"%(.{0,2})|" + _NOT_IN_HOST.pattern, text, re.DOTALL):
        if found[1] is None:
            raise URLError(f"invalid character {go_quoted(_text(found[0]))} in host name")
        escape = _ESCAPE.fullmatch(found[0])
        value = int(escape[1], 16) if escape else 0
        is_right = value >= 0x80 if not is_zone else value == 0x20 or not _NOT_IN_HOST.match(bytes([value]))
        if escape is None or not (is_right or found[0] == b"%25"):
            raise URLError(f"invalid URL escape {go_quoted(_text(found[0]))}")
    return _ESCAPE.sub(_unescape, text)


def _unescaped(text: bytes) -> bytes:
    for found in re.finditer(rb"%.{0,2}", text, re.DOTALL):
        if not _ESCAPE.fullmatch(found[0]):
            raise URLError(f"invalid URL escape {go_quoted(_text(found[0]))}")
    return _ESCAPE.sub(_unescape, text)


def _unescape(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 16)])


def _escape(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def _text(part: bytes) -> str:
    return part.decode("utf-8", "replace")


__all__ = ["URL", "URLError", "parse_request_uri", "parse_url"]
