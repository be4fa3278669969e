"""A small HTTP server: handlers by path, on one address, started and stopped by the manager. aiohttp is imported at the start."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from typing_extensions import override

from ctrlruntime import log
from ctrlruntime.errors import ConfigError
from ctrlruntime.metrics.server import ServerMetrics
from ctrlruntime.serving.connections import DEFAULT_LIMITS, ServerLimits
from ctrlruntime.serving.tls import ServingCertificate

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Middleware

    from ctrlruntime.serving.listener import Listener

Handler: TypeAlias = "Callable[[web.Request], Awaitable[web.StreamResponse]]"
"""An aiohttp handler."""

MAX_BODY: Final = 64 * 1024
"""The maximum bytes of a request's body; the response to more is 413."""

SHUTDOWN: Final = 5.0
"""Seconds that running responses may take at a stop."""


class Address(NamedTuple):
    """The address to listen on; an empty host is every interface."""

    host: str
    port: int

    @override
    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, flag: str) -> Address | None:
    """Return the address in `host:port`, `:port` or `[IPv6]:port`.

    None for "0" and "", which turn a server off.

    Raises: ConfigError with `flag` for anything else.
    """
    if text.strip() in {"", "0"}:
        return None
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"{flag} is {text!r}: give host:port or :port (port 0 is any free port; write an IPv6 address in brackets), "
            'or "0" to turn it off'
        )
    return Address(host, int(port))


class HTTPServer:
    """Serves `handlers` (by path, with or without a trailing slash.

    GET and HEAD) at an address.

    name, flag: the server, and the flag with its address, for messages.
    certificate: serves only HTTPS.
    on_stop: called at the end of a stop, on the serving loop.

    After `limits.handler_timeout` the response is 504.
    """

    def __init__(
        self,
        address: Address,
        handlers: Mapping[str, Handler],
        *,
        name: str,
        flag: str,
        certificate: ServingCertificate | None = None,
        on_stop: Callable[[], Awaitable[None]] | None = None,
        limits: ServerLimits = DEFAULT_LIMITS,
        metrics: ServerMetrics | None = None,
    ) -> None:
        self._wanted = address
        self._handlers = dict(handlers)
        self._name = name
        self._flag = flag
        self._certificate = certificate
        self._on_stop = on_stop
        self._limits = limits
        self._metrics = metrics
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self._address: Address | None = None
        self._log = log.get_logger("serving")

    def __repr__(self) -> str:
        return f"HTTPServer({self._name} at {self._address or self._wanted})"

    @property
    def address(self) -> Address:
        """The address with the actual port. Raises: RuntimeError if it does not listen."""
        if self._address is None:
            raise RuntimeError(f"the {self._name} server is not running")
        return self._address

    @property
    def address_if_running(self) -> Address | None:
        """The address with the actual port; None if it does not listen."""
        return self._address

    async def start(self) -> None:
        """Listen and serve in the background.

        Raises: ConfigError if the address or the certificate cannot be used, RuntimeError if it runs.
        """
        from aiohttp import web

        if self._runner is not None:
            raise RuntimeError(f"the {self._name} server is running already")
        from ctrlruntime.serving.listener import Listener

        listening = self._listen()
        listener = Listener(self._name, self._limits, metrics=self._metrics)
        app = web.Application(client_max_size=MAX_BODY, middlewares=[web.middleware(self._bounded(listener))])
        app.on_response_prepare.append(_forbid_guessing)
        for path, handler in self._handlers.items():
            app.router.add_get(path, handler)
            if not path.endswith("/"):
                app.router.add_get(path + "/", handler)
        runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
        try:
            tls = None if self._certificate is None else self._certificate.start()
            await runner.setup()
            assert runner.server is not None
            await listener.start(runner.server, listening, tls)
        except BaseException:
            listening.close()
            await runner.cleanup()
            await self._stop_parts()
            raise
        self._listener = listener
        self._runner = runner
        self._address = Address(*listening.getsockname()[:2])
        self._log.info(
            "serving",
            server=self._name,
            address=str(self._address),
            paths=sorted(self._handlers),
            **({} if self._certificate is None else {"secure": True}),
        )

    async def stop(self) -> None:
        """Stop listening, finish running responses, close.

        May be called twice, and without a start.
        """
        runner, self._runner, self._address = self._runner, None, None
        if runner is not None:
            assert self._listener is not None
            await self._listener.stop(SHUTDOWN)
            await runner.cleanup()
            await self._stop_parts()

    def _bounded(self, listener: Listener) -> Middleware:
        from aiohttp import web

        seconds = self._limits.handler_timeout

        async def bounded(request: web.Request, handler: Handler) -> web.StreamResponse:
            async def in_time(request: web.Request) -> web.StreamResponse:
                limit = asyncio.timeout(seconds)
                try:
                    async with limit:
                        return await handler(request)
                except TimeoutError:
                    if not limit.expired():
                        raise
                    return web.Response(status=504, text=f"no answer within {seconds:g} seconds\n")

            return await listener.answer(request, in_time)

        return bounded

    async def _stop_parts(self) -> None:
        if self._certificate is not None:
            await self._certificate.stop()
        if self._on_stop is not None:
            await self._on_stop()

    def _listen(self) -> socket.socket:
        host, port = self._wanted
        try:
            if host:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                family, _, _, _, where = found[0]
                return socket.create_server((str(where[0]), port), family=family, backlog=128)
            if socket.has_dualstack_ipv6():
                try:
                    return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128)
                except OSError as error:
                    # A kernel may know IPv6 and have it turned off.
                    if error.errno not in {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}:
                        raise
            return socket.create_server(("", port), backlog=128)
        except OSError as error:
            raise ConfigError(
                f"the {self._name} server cannot listen on {self._wanted} ({error.strerror or error}): another process may use the "
                f'port. Give a free address with {self._flag}, or "0" to turn the server off'
            ) from error


async def _forbid_guessing(_request: web.Request, response: web.StreamResponse) -> None:
    """Keep browsers from guessing content types."""
    response.headers["X-Content-Type-Options"] = "nosniff"
