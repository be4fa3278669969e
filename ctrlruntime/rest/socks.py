"""Connections through a SOCKS 5 proxy (RFC 1928, user name and password as in RFC 1929).

The proxy resolves the host, as in kubectl, so that names of its network work. Each response has a known length, so no byte of the server is
consumed.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from ctrlruntime.rest.connection import ExchangeError

_VERSION: Final = 5
_NO_AUTHENTICATION, _PASSWORD = 0, 2
_CONNECT: Final = 1
_IPV4, _NAME, _IPV6 = 1, 3, 4
_FAILURES: Final = {
    1: "a general failure",
    2: "its rules do not allow it",
    3: "the network cannot be reached",
    4: "the host cannot be reached",
    5: "the connection was refused",
    6: "the time to live ended",
    7: "it does not know the command",
    8: "it does not know this sort of address",
}


async def dial(proxy_host: str, proxy_port: int, host: str, port: int, *, credentials: str = "") -> socket.socket:
    """Return a socket that is connected to `host` through a proxy.

    `credentials`: `user:password`, or "".

    Raises: OSError if the proxy cannot be reached, ExchangeError with its response if it does not connect.
    """
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, address in await loop.getaddrinfo(proxy_host, proxy_port, type=socket.SOCK_STREAM):
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, address)
        except OSError as error:
            made.close()
            failure = error
        except BaseException:
            made.close()
            raise
        else:
            try:
                await _negotiate(made, host, port, credentials)
            except BaseException:
                made.close()
                raise
            return made
    assert failure is not None
    raise failure


async def _negotiate(made: socket.socket, host: str, port: int, credentials: str) -> None:
    loop = asyncio.get_running_loop()
    methods = bytes((_NO_AUTHENTICATION, _PASSWORD) if credentials else (_NO_AUTHENTICATION,))
    await loop.sock_sendall(made, bytes((_VERSION, len(methods))) + methods)
    version, method = await _read(made, 2)
    if version != _VERSION:
        raise ExchangeError("it is not a SOCKS 5 proxy")
    if method == _PASSWORD and credentials:
        await loop.sock_sendall(made, _login(credentials))
        if (await _read(made, 2))[1] != 0:
            raise ExchangeError("it does not accept the user name and password of its URL")
    elif method != _NO_AUTHENTICATION:
        hint = "" if credentials else ": put a user name and password into its URL"
        raise ExchangeError(f"it accepts no supported authentication method{hint}")
    await loop.sock_sendall(made, bytes((_VERSION, _CONNECT, 0)) + _address(host) + port.to_bytes(2, "big"))
    _, failure, _, kind = await _read(made, 4)
    if failure:
        raise ExchangeError(_FAILURES.get(failure, f"failure {failure}"))
    length = {_IPV4: 4, _IPV6: 16}.get(kind)
    await _read(made, (length if length is not None else (await _read(made, 1))[0]) + 2)


def _login(credentials: str) -> bytes:
    name, _, password = credentials.partition(":")
    parts = [name.encode(), password.encode()]
    if any(len(part) > 255 for part in parts):
        raise ExchangeError("the user name or the password in its URL is longer than 255 bytes")
    return b"\x01" + b"".join(bytes((len(part),)) + part for part in parts)


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            name = host.encode("idna")
        except UnicodeError as error:
            raise ExchangeError(f"{host!r} is not a host name ({error})") from None
        if len(name) > 255:
            raise ExchangeError("the host name is longer than 255 bytes") from None
        return bytes((_NAME, len(name))) + name
    return bytes((_IPV4 if address.version == 4 else _IPV6,)) + address.packed


async def _read(made: socket.socket, count: int) -> bytes:
    loop, read = asyncio.get_running_loop(), b""
    while len(read) < count:
        part = await loop.sock_recv(made, count - len(read))
        if not part:
            raise ExchangeError("it closed the connection")
        read += part
    return read
