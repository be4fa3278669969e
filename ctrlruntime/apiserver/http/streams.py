"""Streams to and from a container: `exec` and `attach`, and a log that is followed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.behaviour import log_of
from ctrlruntime.apiserver.containers import Command, CommandError, Containers
from ctrlruntime.apiserver.http.answers import headers_of
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.logs import container_of, log_answer, stamped, status_of
from ctrlruntime.apiserver.http.sessions import Session, start_session
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.errors import BadRequest
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document

_log = get_logger("apiserver")
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
        session = await start_session(request, call, reads_input=target.subresource == "exec")
        if isinstance(session, web.Response):
            return session
        try:
            with contextlib.suppress(ConnectionResetError):  # a client that goes away ends it
                await session.open()
                await session.end(await self._serve(session, resource, target, pod, container, arguments))
        finally:
            await session.close()
        return session.response

    async def _serve(
        self,
        session: Session,
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
        self, session: Session, resource: Resource, target: ResourcePath, pod: Document, container: str
    ) -> None:
        text = log_of(pod, container)
        await session.write(text.encode())
        async for added in self._added(resource, target, container, text, lambda: False):
            await session.write(added.encode())

    def _pod(self, resource: Resource, target: ResourcePath) -> Document:
        tree: Document = resource.tree(self._registry.record(resource, target.namespace, target.name))
        return tree


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


def _runs(pod: Document, container: str) -> bool:
    return (status_of(pod, container).get("state") or {}).get("running") is not None


__all__ = ["Streams"]
