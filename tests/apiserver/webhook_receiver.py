"""A webhook server for tests: TLS, on a loop in a thread of its own, so that synchronous tests on either API server can ask what came.

A test says by path what is answered, and reads in `received` what was asked.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web
from servers import LONGEST_WAIT

from ctrlruntime.certificates import Authority, make_authority

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Received:
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int = 0

    @property
    def request(self) -> dict[str, Any]:
        return self.body["request"]


class Raw:
    """An answer as it is to leave: any status, any bytes, after any delay in seconds."""

    def __init__(self, body: bytes = b"", status: int = 200, delay: float = 0.0, headers: dict[str, str] | None = None):
        self.body, self.status, self.delay, self.headers = body, status, delay, headers or {}


def allow(review: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


class WebhookReceiver:
    """Answers AdmissionReviews and ConversionReviews: `answers[path]` gets the review and returns the response."""

    def __init__(self, names: tuple[str, ...] = ("127.0.0.1", "localhost")) -> None:
        self.authority: Authority = make_authority("webhook-test-ca")
        self._pair = self.authority.server(names)
        self.answers: dict[str, Answer] = {}
        self.received: list[Received] = []
        self.port = 0
        self._transports: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="webhook-receiver", daemon=True)

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.pem).decode()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    def client(self, path: str) -> dict[str, Any]:
        return {"url": self.url(path), "caBundle": self.ca_bundle}

    def tls(self) -> ssl.SSLContext:
        """Return the context of a server with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(self._pair.certificate + self._pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def at(self, path: str) -> list[Received]:
        return [one for one in tuple(self.received) if one.path == path]

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(LONGEST_WAIT)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        # The runner cancels what is left, handshakes too, and gives them a turn in which to close their connections.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        context = self.tls()
        runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True), shutdown_timeout=0.2)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        for transport in self._transports:  # a caller that keeps its connections would have us wait for its goodbye
            with contextlib.suppress(
                AttributeError
            ):  # Python 3.11.2: a TLS transport that was closed twice has no protocol
                transport.abort()
        await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        body = json.loads(await request.read() or b"{}")
        if request.transport is not None:
            self._transports.add(request.transport)
        peer = request.transport.get_extra_info("peername")[1] if request.transport else 0
        one = Received(request.path, dict(request.query), dict(request.headers), body, peer)
        self.received.append(one)
        answer = self.answers.get(request.path, allow)
        response = answer(body)
        if isinstance(response, Raw):
            if response.delay:
                await asyncio.sleep(response.delay)
            return web.Response(body=response.body, status=response.status, headers=response.headers)
        if "kind" not in response:
            uid = body["request"]["uid"]
            response = {"kind": body["kind"], "apiVersion": body["apiVersion"], "response": {"uid": uid, **response}}
        return web.json_response(response)
