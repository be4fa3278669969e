"""The webhook server: endpoints at paths, over TLS with a certificate that can change.

The manager starts it before the caches and stops it after the controllers, on every replica. aiohttp is imported at the start.
"""

from __future__ import annotations

import asyncio
import re
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from ctrlruntime import log
from ctrlruntime.api.object import Object, kind_of
from ctrlruntime.certwatcher import ShownCertificate
from ctrlruntime.client.interfaces import Client
from ctrlruntime.errors import ConfigError
from ctrlruntime.serving.connections import BodyRefusedError, ServerLimits
from ctrlruntime.tls import client_context
from ctrlruntime.webhook.certificates import Certificates, FileCertificates
from ctrlruntime.webhook.conversion import Conversion, ConversionEndpoint
from ctrlruntime.webhook.development import DevelopmentCertificates, DevelopmentMode
from ctrlruntime.webhook.endpoint import Endpoint, HandlerTimeoutError, NotReadyError
from ctrlruntime.webhook.metrics import PathMetrics, make_collector
from ctrlruntime.webhook.registration import Registration, WebhookRule
from ctrlruntime.webhook.secret import SecretCertificates, SecretStore

if TYPE_CHECKING:
    from aiohttp import web

    from ctrlruntime.metrics import Metrics
    from ctrlruntime.serving.listener import Listener

__all__ = ["CONVERT_PATH", "WebhookOptions", "WebhookServer", "default_cert_dir"]

CONVERT_PATH: Final = "/convert"

_DIAL: Final = 10.0  # seconds a look at ourselves may take
_MARGIN: Final = 0.5  # seconds of the API server's patience that the way back may take
_TIMEOUT = re.compile(r"(?:^|&)timeout=(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?(?:$|&)")

Synced: TypeAlias = Callable[[type[Object]], Awaitable[None]]
"""Returns when a kind has synced."""


def default_cert_dir() -> Path:
    """Return the default folder in which cert-manager and OLM mount the certificate."""
    return Path(tempfile.gettempdir(), "k8s-webhook-server", "serving-certs")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Address and certificate of the webhook server.

    The certificate comes from files by default, else from `development` or `secret`.
    """

    host: str = ""
    """The address to listen on; empty: every interface, in development mode only `DevelopmentMode.host`."""

    port: int = 9443
    """0 is any free port."""

    cert_dir: str | Path | None = None
    """Default: `<tmp>/k8s-webhook-server/serving-certs`."""

    cert_name: str = "tls.crt"
    key_name: str = "tls.key"
    client_ca: str | Path | None = None
    """A PEM file, in `cert_dir` unless absolute: callers need a certificate of this CA."""

    development: DevelopmentMode | None = None
    secret: SecretCertificates | None = None
    shutdown_timeout: float = 60.0
    """Seconds that running reviews may take when the server stops; a manager also limits them by its grace period."""

    limits: ServerLimits = field(default_factory=ServerLimits)
    """Limits of connections, durations and bytes."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"the webhook port is {self.port}; give one from 0 (a free one) to 65535")
        if self.development is not None and self.secret is not None:
            raise ConfigError("WebhookOptions has both development and secret; remove one of them")
        if (self.development or self.secret) and self.cert_dir is not None:
            raise ConfigError("WebhookOptions has cert_dir together with development or secret; remove one of them")


class WebhookServer:
    """Serves webhooks by path. The manager has one: `mgr.webhook_server`.

    Args:
        client: writes registrations and Secrets, and needs no leadership.
        synced: waits until a kind is cached.
        metrics: receives the metrics.

    """

    def __init__(
        self,
        options: WebhookOptions | None = None,
        *,
        client: Client | None = None,
        synced: Synced | None = None,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        certificates: Certificates | None = None,
    ) -> None:
        self.options = options or WebhookOptions()
        self._certificates = certificates or self._choose_certificates(client)
        self._synced = synced
        self._metrics = metrics
        self._clock = clock
        self._endpoints: dict[str, Endpoint] = {}
        self._paths: dict[str, PathMetrics] = {}
        self._registrations: dict[str, Registration] = {}
        self._awaited: dict[type[Object], asyncio.Task[None]] = {}
        self._shown = ShownCertificate(client_ca=self._client_ca)
        self._runner: web.ServerRunner | None = None
        self._listener: Listener | None = None
        self._follower: asyncio.Task[None] | None = None
        self._address: tuple[str, int] | None = None
        self._was_started = False
        self._log = log.get_logger("webhook")

    def __repr__(self) -> str:
        return f"WebhookServer({self._address or (self.options.host, self.options.port)})"

    # --- what is served -----------------------------------------------------------------------------------------------

    def register(
        self,
        path: str,
        endpoint: Endpoint,
        *,
        webhook: WebhookRule | None = None,
        target: type[Object] | None = None,
    ) -> None:
        """Serve an endpoint at a path, before or after the start.

        Args:
            path: the path of the URL, such as `/mutate-v1-pod`.
            endpoint: the handler of its requests.
            webhook: the requests for which an admission webhook is called, for development mode and generated manifests.
            target: the kind of a typed webhook.

        Raises: ConfigError for a path that is in use or invalid.

        """
        if not path.startswith("/") or "?" in path or "#" in path:
            raise ConfigError(f"{path!r} is not a webhook path: it must start with '/' and have no query")
        if path in self._endpoints:
            raise ConfigError(f"cannot register a second webhook at {path}. Use another path")
        if webhook is not None and endpoint.kind != "admission":
            raise ConfigError(f"{path}: a WebhookRule is for admission, but the handler is for {endpoint.kind}")
        if self._was_started and webhook is not None and self.options.development is not None:
            self._log.warning(
                "webhook registered after start is not in the cluster",
                hint="register webhooks before start in development mode",
                path=path,
            )
        self._endpoints[path] = endpoint
        self._paths[path] = PathMetrics(path)
        info = None if target is None else kind_of(target)
        self._registrations[path] = Registration(path=path, kind=endpoint.kind, rule=webhook, target=info)
        self._log.debug("webhook registered", path=path)
        if self._listener is not None:
            self._listener.make_room_for(endpoint.body_limit)
            self._await_reads(endpoint)

    def register_conversion(self, conversion: Conversion[Any]) -> None:
        """Convert the versions of a kind, at `/convert`.

        Raises: ConfigError for a second conversion of a kind.
        """
        endpoint = self._endpoints.get(CONVERT_PATH)
        if endpoint is None:
            endpoint = ConversionEndpoint()
            self.register(CONVERT_PATH, endpoint)
        if not isinstance(endpoint, ConversionEndpoint):
            raise ConfigError(f"cannot serve conversions: {CONVERT_PATH} is used by {endpoint!r}")
        endpoint.add(conversion)
        converted = tuple(each.versions for each in endpoint.conversions)
        self._registrations[CONVERT_PATH] = Registration(path=CONVERT_PATH, kind="conversion", converted=converted)

    def serves(self, path: str) -> bool:
        """Return whether an endpoint is registered at this path."""
        return path in self._endpoints

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """The registrations, in order."""
        return tuple(self._registrations.values())

    @property
    def is_empty(self) -> bool:
        return not self._endpoints

    # --- life -----------------------------------------------------------------------------------------------------------

    @property
    def address(self) -> tuple[str, int]:
        """Host and port. Raises: RuntimeError if it does not listen."""
        if self._address is None:
            raise RuntimeError("the webhook server is not running")
        return self._address

    @property
    def port(self) -> int:
        """The port. Raises: RuntimeError if it does not listen."""
        return self.address[1]

    async def start(self) -> None:
        """Listen and serve in the background.

        In development mode, also register the webhooks.

        Raises: ConfigError for an invalid certificate or address, RuntimeError if it was started before.
        """
        if self._was_started:
            raise RuntimeError("cannot start the webhook server: it was started before")
        self._was_started = True
        self._collect()
        # An address in use is said before a certificate is made or waited for.
        listening = self._listen()
        try:
            self._shown.show(await self._certificates.prepare())
        except BaseException:
            listening.close()
            raise
        try:
            await self._serve(listening)
            self._follower = asyncio.ensure_future(self._certificates.follow(self._shown.show))
            self._follower.add_done_callback(self._follower_ended)
            for endpoint in self._endpoints.values():
                self._await_reads(endpoint)
            await self._certificates.announce(self)
        except BaseException:
            await self.stop()
            raise
        self._log.info("serving webhooks", address=self.address, paths=sorted(self._endpoints))

    async def stop(self, within: float | None = None) -> None:
        """Undo the registration, let running reviews finish, and close.

        May be called twice, and without a start.

        Args:
            within: seconds that running reviews have at most; never more than `shutdown_timeout`.

        """
        runner, self._runner = self._runner, None
        if runner is None:
            return
        await self._certificates.retire()
        tasks = [task for task in (self._follower, *self._awaited.values()) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        assert self._listener is not None
        limit = self.options.shutdown_timeout
        await self._listener.stop(limit if within is None else min(limit, within))
        await runner.cleanup()
        self._listener = self._address = None

    async def started_checker(self) -> None:
        """Check that the server accepts TLS.

        It also checks that the kinds of its webhooks are cached. Use it as a health check.

        Raises: the cause.
        """
        if self._address is None:
            raise RuntimeError("the webhook server is not running")
        context = client_context(insecure=True)  # it is ourselves we look at
        host, port = self._address
        async with asyncio.timeout(_DIAL):
            _, writer = await asyncio.open_connection(_dialled(host), port, ssl=context)
            writer.close()
        for kind, task in self._awaited.items():
            if not task.done():
                raise NotReadyError(f"{kind.__name__} has not synced")

    async def _serve(self, listening: socket.socket) -> None:
        from aiohttp import web

        from ctrlruntime.serving.listener import Listener

        metrics = None if self._metrics is None else self._metrics.server("webhook")
        listener = Listener("webhook", self.options.limits, metrics=metrics, clock=self._clock)
        for endpoint in self._endpoints.values():
            listener.make_room_for(endpoint.body_limit)

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await listener.answer(request, self._handle)

        runner = web.ServerRunner(web.Server(handle), handle_signals=False, shutdown_timeout=0.1)
        try:
            await runner.setup()
            assert runner.server is not None
            await listener.start(runner.server, listening, self._shown.context())
        except BaseException:
            listening.close()
            await runner.cleanup()
            raise
        self._runner, self._listener = runner, listener
        host, port = listening.getsockname()[:2]
        self._address = (str(host), int(port))

    def _listen(self) -> socket.socket:
        development = self.options.development
        host = self.options.host or ("" if development is None else development.host)
        try:
            if host:
                found = socket.getaddrinfo(host, self.options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
                return socket.create_server(found[0][4][:2], family=found[0][0], backlog=1024)
            if socket.has_dualstack_ipv6():
                try:
                    return socket.create_server(
                        ("", self.options.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
                    )
                except OSError:
                    pass  # a kernel may know IPv6 and have it turned off; what else is wrong, the next line says again
            return socket.create_server(("", self.options.port), backlog=1024)
        except OSError as error:
            raise ConfigError(
                f"the webhook server cannot listen on {host}:{self.options.port} ({error.strerror or error}); "
                "another process may use the port. Give a free one with WebhookOptions(port=…)"
            ) from error

    # --- certificates ---------------------------------------------------------------------------------------------------

    def _choose_certificates(self, client: Client | None) -> Certificates:
        options = self.options
        if options.development is None and options.secret is None:
            folder = Path(options.cert_dir or default_cert_dir())
            return FileCertificates(folder / options.cert_name, folder / options.key_name)
        if client is None:
            raise ConfigError(
                "a webhook server that creates its certificates needs a client; use the webhook server of the manager"
            )
        if options.development is not None:
            return DevelopmentCertificates(options.development, client)
        assert options.secret is not None
        return SecretStore(options.secret, client)

    @property
    def _client_ca(self) -> Path | None:
        name = self.options.client_ca
        return None if name is None else Path(self.options.cert_dir or default_cert_dir()) / name

    def _follower_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("certificate renewal stopped", error=log.describe(error), exc_info=error)

    # --- reviews --------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        from aiohttp import web

        endpoint = self._endpoints.get(request.path)
        if endpoint is None:
            return web.Response(status=404, text=f"no webhook at {request.path}\n")
        if request.method != "POST":
            return web.Response(status=405, text="reviews are posted\n", headers={"Allow": "POST"})
        meter = self._paths[request.path]
        meter.in_flight += 1
        start, status = self._clock(), 500
        try:
            body = await self._answer(endpoint, request, start)
            status = 200
            return web.Response(body=body, content_type="application/json")
        except NotReadyError as error:
            # Outside of the review: that the webhook cannot decide is for the failure policy.
            status = error.code
            if not isinstance(error, HandlerTimeoutError):  # which has a line of its own
                self._log.info("not ready for reviews", path=request.path, error=str(error))
            return web.Response(status=status, body=_undecided(error), content_type="application/json")
        except BodyRefusedError as error:
            status = error.status
            if status == 413:
                return web.Response(body=endpoint.refuse(413, str(error)), content_type="application/json")
            return web.Response(status=status, body=_undecided(error), content_type="application/json")
        finally:
            meter.in_flight -= 1
            meter.ended(status, self._clock() - start)

    async def _answer(self, endpoint: Endpoint, request: web.BaseRequest, start: float) -> bytes:
        assert self._listener is not None
        body = await self._listener.read(request, endpoint.body_limit)
        limit = self.options.limits.handler_timeout
        timeout = min(_seconds(request.rel_url.raw_query_string) or limit, limit)
        if endpoint.cached_kinds:
            await self._until_synced(endpoint.cached_kinds, timeout)
        left = max(timeout - (self._clock() - start) - min(_MARGIN, timeout / 10), 0.001)
        return await endpoint.answer(body, content_type=request.headers.get("Content-Type", ""), timeout=left)

    # --- the cache -----------------------------------------------------------------------------------------------------

    def _await_reads(self, endpoint: Endpoint) -> None:
        for kind in endpoint.cached_kinds:
            if self._synced is not None and kind not in self._awaited:
                self._awaited[kind] = asyncio.ensure_future(self._arrival(kind, self._synced))

    async def _arrival(self, kind: type[Object], synced: Synced) -> None:
        while True:
            try:
                return await synced(kind)
            except Exception as error:  # noqa: BLE001 - reviews wait meanwhile, and the operator does not end for it
                self._log.warning("cannot cache kind that webhooks read", kind=kind.__name__, error=log.describe(error))
                await asyncio.sleep(1.0)

    async def _until_synced(self, kinds: Sequence[type[Object]], timeout: float) -> None:
        waiting = {kind: task for kind in kinds if (task := self._awaited.get(kind)) is not None and not task.done()}
        if not waiting:
            return
        # Half of the time, so that the answer says why nothing was decided, and not only that it took too long.
        _, pending = await asyncio.wait(waiting.values(), timeout=timeout / 2)
        if pending:
            names = ", ".join(kind.__name__ for kind, task in waiting.items() if task in pending)
            raise NotReadyError(f"the cache of this webhook has not synced {names} yet; retry")

    # --- metrics --------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        if self._metrics is not None:
            self._metrics.registry.register(make_collector(self))

    def paths(self) -> list[PathMetrics]:
        """Return the metrics of each path."""
        return list(self._paths.values())

    def panics(self) -> dict[str, int]:
        """Return the number of panics by kind of endpoint."""
        counts: dict[str, int] = {}
        for endpoint in list(self._endpoints.values()):
            counts[endpoint.kind] = counts.get(endpoint.kind, 0) + endpoint.panics
        return counts

    def certificate_reads(self) -> tuple[int, int]:
        """Return the number of reads of the certificate, and of failed ones."""
        return self._certificates.reads, self._certificates.errors


def _seconds(query: str) -> float | None:
    """Return the seconds in the `timeout` of a query, a Go duration as the API server sends it (`10s`, `1m0s`, `500ms`).

    None for anything else.
    """
    match = _TIMEOUT.search(query)
    if match is None:
        return None
    minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    return minutes * 60 + seconds + milliseconds / 1000 or None


def _undecided(error: Exception) -> bytes:
    """Return the Status whose message the API server shows for a call that failed."""
    reason, code = (error.reason, error.code) if isinstance(error, NotReadyError) else ("ServiceUnavailable", 503)
    status: Mapping[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": str(error),
        "reason": reason,
        "code": code,
    }
    return msgspec.json.encode(status)


def _dialled(host: str) -> str:
    return {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
