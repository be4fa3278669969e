"""The endpoints of an operator: `/metrics` at one address, `/healthz` and `/readyz` at another.

The servers may run on another event loop than their handlers; an `Ask` runs code on the right loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ctrlruntime import log
from ctrlruntime.healthz import Answer, Checks
from ctrlruntime.metrics import Metrics, SecureMetrics
from ctrlruntime.rest.transport import Transport
from ctrlruntime.serving.access import AccessReviews, guarded
from ctrlruntime.serving.connections import DEFAULT_LIMITS, ServerLimits
from ctrlruntime.serving.loops import EventLoopBlockedError
from ctrlruntime.serving.server import Handler, HTTPServer, parse_address
from ctrlruntime.serving.tls import ServingCertificate

if TYPE_CHECKING:
    from aiohttp import web

T = TypeVar("T")

METRICS_FLAG: Final = "--metrics-bind-address"
HEALTH_FLAG: Final = "--health-probe-bind-address"
CERTIFICATE_FLAG: Final = "--metrics-cert-path"

_FALSE: Final = frozenset({"false", "f", "0"})


class Ask(Protocol):
    """Runs the result of `make` on its event loop.

    Raises: EventLoopBlockedError if that loop does not respond.
    """

    async def __call__(self, make: Callable[[], Awaitable[T]], /) -> T: ...


def metrics_server(
    address: str,
    metrics: Metrics,
    *,
    handlers: Mapping[str, Handler] | None = None,
    ask: Ask | None = None,
    secure: SecureMetrics | None = None,
    transport: Transport | None = None,
    limits: ServerLimits = DEFAULT_LIMITS,
) -> HTTPServer | None:
    """Return the server of `/metrics` and of `handlers` at their paths.

    None if the address turns it off.

    ask: runs the handlers on their event loop; if that does not respond, the response is a 503.
    secure: serves HTTPS, to callers that the API server behind `transport` authorizes. The server closes the transport.

    Raises: ConfigError for an invalid address, ValueError for a handler at `/metrics` or at a path without a leading slash, and for
    `secure` without a transport.
    """
    where = parse_address(address, METRICS_FLAG)
    if where is None:
        return None
    for path in handlers or {}:
        if not path.startswith("/") or path.rstrip("/") == "/metrics":
            raise ValueError(f"cannot add a handler at {path!r}: the path must start with '/' and not be /metrics")
    others = {path: handler if ask is None else asking(ask, handler) for path, handler in (handlers or {}).items()}
    served = {**others, "/metrics": _scraper(metrics)}
    if secure is None:
        return HTTPServer(
            where, served, name="metrics", flag=METRICS_FLAG, metrics=metrics.server("metrics"), limits=limits
        )
    if transport is None:
        raise ValueError("secure metrics need a transport to the API server, which authorizes their readers")
    reviews = AccessReviews(transport)
    return HTTPServer(
        where,
        {path: guarded(reviews, handler) for path, handler in served.items()},
        name="metrics",
        flag=METRICS_FLAG,
        certificate=ServingCertificate(secure, name="metrics", flag=CERTIFICATE_FLAG),
        on_stop=reviews.close,
        metrics=metrics.server("metrics"),
        limits=limits,
    )


def asking(ask: Ask, handler: Handler) -> Handler:
    """Return a handler that runs `handler` on its event loop; it must return a complete response, not a stream."""
    from aiohttp import web

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await ask(lambda: handler(request))
        except EventLoopBlockedError as error:
            return web.Response(status=503, text=f"{error}\n")

    return answer


def health_server(
    address: str,
    *,
    liveness: Checks,
    readiness: Checks,
    liveness_path: str = "/healthz",
    readiness_path: str = "/readyz",
    ask: Ask | None = None,
    metrics: Metrics | None = None,
    limits: ServerLimits = DEFAULT_LIMITS,
) -> HTTPServer | None:
    """Return the server of both types of probes: all checks at the path, and single checks below it. None if the address turns it off.

    With `ask` async checks run on their event loop. Raises: ConfigError for an invalid address.
    """
    where = parse_address(address, HEALTH_FLAG)
    if where is None:
        return None
    handlers: dict[str, Handler] = {}
    for path, asked in ((liveness_path, liveness), (readiness_path, readiness)):
        checks = asked if ask is None else asked.asked_from_another_loop(ask)
        handlers[path] = _all(checks, path.strip("/"))
        handlers[f"{path.rstrip('/')}/{{check}}"] = _one(checks, path.strip("/"))
    numbers = None if metrics is None else metrics.server("health probe")
    return HTTPServer(where, handlers, name="health probe", flag=HEALTH_FLAG, metrics=numbers, limits=limits)


def _scraper(metrics: Metrics) -> Handler:
    from aiohttp import web

    async def scrape(request: web.Request) -> web.StreamResponse:
        # In a thread: with many series the text takes tens of milliseconds to write.
        accept = ",".join(request.headers.getall("Accept", []))
        body, content_type = await asyncio.to_thread(metrics.render, accept)
        return web.Response(body=body, headers={"Content-Type": content_type})

    return scrape


def _all(checks: Checks, path: str) -> Handler:
    async def probe(request: web.Request) -> web.StreamResponse:
        query = request.query
        verbose = "verbose" in query and query["verbose"].lower() not in _FALSE
        return _response(await checks.answer(verbose=verbose, exclude=query.getall("exclude", []), path=path), path)

    return probe


def _one(checks: Checks, path: str) -> Handler:
    async def probe(request: web.Request) -> web.StreamResponse:
        return _response(await checks.answer_one(request.match_info["check"]), path)

    return probe


def _response(answer: Answer, path: str) -> web.Response:
    from aiohttp import web

    logger = log.get_logger("healthz")
    for check, error in answer.failures.items():
        logger.warning("health check failed", path=path, check=check, error=log.describe(error))
    if answer.unknown:
        logger.warning("unknown health checks in exclude", path=path, unknown=answer.unknown)
    return web.Response(status=answer.status, text=answer.text)
