"""Streams to and from a container: `exec` and `attach` over WebSocket, and a log that is followed.

The channels of a WebSocket are those of the kubelet (k8s.io/apimachinery's pkg/util/remotecommand): each message begins with the number of
its channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final, TypeVar

from aiohttp import WSMsgType, web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.behaviour import log_of
from ctrlruntime.apiserver.containers import Command, CommandError, Containers
from ctrlruntime.apiserver.http.answers import headers_of
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.logs import container_of, log_answer, stamped, status_of
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.errors import BadRequest
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document

_log = get_logger("apiserver")
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_PROTOCOLS: Final = (
    "v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io",
)  # fmt: skip
_WITH_STATUS: Final = frozenset({"v5.channel.k8s.io", "v4.channel.k8s.io"})
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
"""Bytes. One message of standard input waits for the command to read it; then the connection waits."""
_LOOK: Final = 10.0
"""Seconds between two looks whether the client of a log is still there."""


class Streams:
    def __init__(self, registry: Registry, containers: Containers, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._now = now
        self._containers = containers

    # Logs

    async def follow(
        self, request: web.BaseRequest, call: Call, resource: Resource, target: ResourcePath
    ) -> web.StreamResponse:
        """Send the log, and what is added to it until the container ends or the Pod goes. Raises: as `log_answer`."""
        pod = self._pod(resource, target)
        first = log_answer(call, pod, self._now())
        if first.status != 200:
            return first
        container = container_of(call, pod)
        response = web.StreamResponse(headers=headers_of(call.warnings))
        response.headers["Content-Type"] = "text/plain"
        response.enable_chunked_encoding()
        with contextlib.suppress(ConnectionResetError):  # a client that goes away ends it
            await response.prepare(request)
            assert isinstance(first.body, bytes)
            await response.write(first.body)
            transport = request.transport
            seen = log_of(pod, container)
            async for text in self._added(
                resource, target, container, seen, lambda: transport is None or transport.is_closing()
            ):
                await response.write(stamped(call, pod, container, text).encode())
            await response.write_eof()
        return response

    async def _added(
        self, resource: Resource, target: ResourcePath, container: str, seen: str, is_gone: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Yield what is appended to the log of a container, while it runs and the client is there."""
        async for pod in self._versions(resource, target, is_gone):
            text = log_of(pod, container)
            if text != seen:
                added = text.removeprefix(seen) if text.startswith(seen) else text
                seen = text
                yield added
            if not _runs(pod, container):
                return

    async def _versions(
        self, resource: Resource, target: ResourcePath, is_gone: Callable[[], bool]
    ) -> AsyncIterator[Document]:
        """Yield the Pod, and each later version of it, until it is deleted or replaced."""
        key = (target.namespace, target.name)
        table = self._registry.store.table(*resource.stored_as)
        subscription = table.subscribe(target.namespace, key)
        try:
            uid = None
            while not subscription.closed and not is_gone():
                record = table.records.get(key)
                if record is None or (uid is not None and record.uid != uid):
                    return
                uid = record.uid
                yield resource.tree(record)
                while not subscription.events and not subscription.closed and not is_gone():
                    subscription.wake.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(subscription.wake.wait(), _LOOK)
                subscription.clear()
        finally:
            table.unsubscribe(subscription)

    # Commands

    async def open(
        self, request: web.BaseRequest, call: Call, resource: Resource, target: ResourcePath
    ) -> web.StreamResponse:
        """Run a command, or attach to a container. Raises: BadRequest, and InternalError when the container does not run."""
        pod = self._pod(resource, target)
        container = container_of(call, pod)
        if not (pod.get("spec") or {}).get("nodeName"):
            raise BadRequest(f"pod {target.name} does not have a host assigned")
        arguments = call.queries.get("command") or []
        if target.subresource == "exec" and not arguments:
            raise BadRequest("you must specify at least one command for the container")
        if not any(call.asks(name) for name in ("stdin", "stdout", "stderr")):
            raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
        if not _runs(pod, container):
            raise failures.plain_internal(f'unable to upgrade connection: container not found ("{container}")')
        socket = web.WebSocketResponse(protocols=_PROTOCOLS, max_msg_size=_LARGEST_MESSAGE)
        if not socket.can_prepare(request).ok:
            raise BadRequest("Upgrade request required: the embedded API server streams over WebSocket")
        await socket.prepare(request)
        session = _Session(socket, call, reads_input=target.subresource == "exec")
        try:
            with contextlib.suppress(ConnectionResetError):  # a client that goes away ends it
                status = await self._serve(session, resource, target, pod, container, arguments)
                if socket.ws_protocol in _WITH_STATUS:
                    await session.send(_ERROR, json.dumps(status).encode())
                await socket.close()
        finally:
            await session.close()
        return socket

    async def _serve(
        self,
        session: _Session,
        resource: Resource,
        target: ResourcePath,
        pod: Document,
        container: str,
        arguments: list[str],
    ) -> Document:
        if target.subresource == "attach":
            await session.unless_gone(self._attach(session, resource, target, pod, container))
            return _SUCCESS
        command = Command(pod, container, arguments, session.stdin(), session.write, session.write_error)
        try:
            code = await session.unless_gone(self._containers.run(command))
        except CommandError as error:
            return _not_run(str(error))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - a defect of a function of `handle` is the answer of its command
            _log.exception("command failed", pod=target.name, container=container, command=arguments)
            return _not_run(f"{type(error).__name__}: {error}")
        return _SUCCESS if not code else _failed(code)

    async def _attach(
        self, session: _Session, resource: Resource, target: ResourcePath, pod: Document, container: str
    ) -> None:
        text = log_of(pod, container)
        await session.write(text.encode())
        async for added in self._added(resource, target, container, text, lambda: False):
            await session.write(added.encode())

    def _pod(self, resource: Resource, target: ResourcePath) -> Document:
        tree: Document = resource.tree(self._registry.record(resource, target.namespace, target.name))
        return tree


_T = TypeVar("_T")
_SUCCESS: Final[Document] = {"metadata": {}, "status": "Success"}


def _not_run(problem: str) -> Document:
    return {**failures.internal(f"error executing command in container: {problem}").status, "metadata": {}}


def _failed(code: int) -> Document:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class _Session:
    """One WebSocket: the channels that the client asked for."""

    def __init__(self, socket: web.WebSocketResponse, call: Call, *, reads_input: bool) -> None:
        """Input is dropped if nothing reads it: a simulated container that is attached to."""
        self._socket = socket
        self._asked = {name for name in ("stdin", "stdout", "stderr", "tty") if call.asks(name)}
        self._takes_input = reads_input and "stdin" in self._asked
        self._input: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._gone = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def send(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + data)

    async def write(self, data: bytes) -> None:
        if data and "stdout" in self._asked:
            await self.send(_STDOUT, data)

    async def write_error(self, data: bytes) -> None:
        if "tty" in self._asked:
            await self.write(data)
        elif data and "stderr" in self._asked:
            await self.send(_STDERR, data)

    async def stdin(self) -> AsyncIterator[bytes]:
        while "stdin" in self._asked:
            data = await self._input.get()
            if data is None:
                return
            yield data

    async def _read(self) -> None:
        """Take messages until the client goes; sizes of the terminal are of no use here."""
        try:
            async for message in self._socket:
                if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT) or not message.data:
                    continue
                received = message.data.encode() if message.type is WSMsgType.TEXT else message.data
                channel, data = received[0], received[1:]
                if channel == _STDIN and self._takes_input and data:
                    await self._input.put(data)
                elif channel == _CLOSE and data[:1] == bytes((_STDIN,)):  # of v5: no more of a channel
                    await self._input.put(None)
        finally:
            self._gone.set()

    async def unless_gone(self, work: Coroutine[None, None, _T]) -> _T:
        """Return the result of the work; it is cancelled when the client goes. Raises: ConnectionResetError then."""
        running, gone = asyncio.create_task(work), asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait((running, gone), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise ConnectionResetError
            return running.result()
        finally:
            gone.cancel()
            if not running.done():
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)


def _runs(pod: Document, container: str) -> bool:
    return (status_of(pod, container).get("state") or {}).get("running") is not None


__all__ = ["Streams"]
