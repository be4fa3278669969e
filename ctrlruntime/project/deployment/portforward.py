"""One HTTP request to a port of a Pod, through the API server and the kubelet of its node.

The API server passes a WebSocket with the protocol `v4.channel.k8s.io` to the kubelet, which connects to the port inside the Pod. The first
byte of a message is its channel: 0 for data, 1 for an error. The first message of each channel is the port, as two bytes, little-endian
(k8s.io/cri-streaming/pkg/streaming/portforward). An error is the text of the kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from typing_extensions import override

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import CtrlError
from ctrlruntime.rest.connection import Connection, ExchangeError
from ctrlruntime.rest.limits import AnswerLimits
from ctrlruntime.rest.transport import Transport
from ctrlruntime.rest.websocket import WebSocket, websocket

__all__ = ["PROTOCOL", "Page", "PortForwardError", "get_from_pod"]

PROTOCOL: Final = "v4.channel.k8s.io"

_DATA, _ERROR = 0, 1
_SHOWN: Final = 500
"""Characters of an error that are shown."""

_LIMITS: Final = AnswerLimits(head=64 * 1024, body=16 * 1024 * 1024)


class PortForwardError(CtrlError):
    """A port of a Pod sent no complete response; the message has the text of the kubelet."""


class Page(NamedTuple):
    """A complete response."""

    status: int
    body: bytes


async def get_from_pod(
    transport: Transport, pod: NamespacedName, port: int, target: str, *, timeout: float, limits: AnswerLimits = _LIMITS
) -> Page:
    """Send GET `target` to a port of a Pod and return the response, whatever its status.

    `timeout`: seconds for all of it. `limits`: the maximum size of the response.

    Raises: PortForwardError if the Pod does not respond, APIStatusError (Forbidden without the permission to forward ports), TransportError.
    """
    peer = f"port {port} of Pod {pod}"
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/portforward"
    request = f"GET {target} HTTP/1.1\r\nHost: localhost:{port}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    try:
        async with (
            asyncio.timeout(timeout),
            websocket(
                transport, path, params=[("ports", str(port))], protocol=PROTOCOL, opens_within=timeout
            ) as socket,
        ):
            return await _exchange(socket, Connection(peer, limits=limits), port, request.encode())
    except TimeoutError as error:
        raise PortForwardError(f"no response from {peer} within {timeout:g} s") from error


async def _exchange(socket: WebSocket, connection: Connection, port: int, request: bytes) -> Page:
    channel = _Channel(socket)
    connection.connection_made(channel)
    heads = {_DATA: port.to_bytes(2, "little"), _ERROR: port.to_bytes(2, "little")}  # of channels without a message yet
    with _telling(connection.peer):
        answer = connection.send(request)
    while not answer.complete and not channel.is_closing():
        message = await socket.receive()
        if message is None:
            connection.connection_lost(None)
            break
        number, data = message[:1], message[1:]
        known = number[0] if number and number[0] in {_DATA, _ERROR} else None
        head = heads.pop(known, None) if known is not None else None
        if known is None or head not in {None, data}:
            raise PortForwardError(f"{connection.peer}: the API server does not forward ports as {PROTOCOL} does")
        if head is not None:
            continue
        if known == _ERROR:
            raise PortForwardError(f"{connection.peer}: {_text(data)}")
        connection.received(data)
    with _telling(connection.peer):
        return Page(answer.status, await answer.whole())


class _Channel(asyncio.Transport):
    """The data channel, as the transport of a connection."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__()
        self._socket = socket
        self._is_closed = False

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        # Lost already: what came before, such as the kubelet's error, is still to be read.
        with suppress(ExchangeError):
            self._socket.send(bytes((_DATA,)) + bytes(data))

    @override
    def get_write_buffer_size(self) -> int:
        return 0

    @override
    def is_closing(self) -> bool:
        return self._is_closed

    @override
    def abort(self) -> None:
        self._is_closed = True

    @override
    def pause_reading(self) -> None:
        return

    @override
    def resume_reading(self) -> None:
        return


@contextmanager
def _telling(peer: str) -> Generator[None]:
    """Turn failures of the exchange with the Pod into PortForwardError; those of the WebSocket are the API server's."""
    try:
        yield
    except ExchangeError as error:
        raise PortForwardError(f"{peer}: {error}") from error


def _text(data: bytes) -> str:
    text = " ".join(data.decode("utf-8", "replace").split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
