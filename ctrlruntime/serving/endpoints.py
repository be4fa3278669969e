"""What an operator serves: `/metrics` at one address, `/healthz` and `/readyz` at another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ctrlruntime import log
from ctrlruntime.healthz import Answer, Checks
from ctrlruntime.metrics import Metrics
from ctrlruntime.serving.server import Handler, HTTPServer, parse_address

if TYPE_CHECKING:
    from aiohttp import web

METRICS_FLAG: Final = "--metrics-bind-address"
HEALTH_FLAG: Final = "--health-probe-bind-address"

_FALSE: Final = frozenset({"false", "f", "0"})


def metrics_server(
    address: str, metrics: Metrics, *, handlers: Mapping[str, Handler] | None = None
) -> HTTPServer | None:
    """Return the server of `/metrics` and of `handlers` at their paths; None when the address turns it off.

    Raises: ConfigError for an address that is none, ValueError for a handler at `/metrics` or at a path without a
    leading slash.
    """
    where = parse_address(address, METRICS_FLAG)
    if where is None:
        return None
    for path in handlers or {}:
        if not path.startswith("/") or path.rstrip("/") == "/metrics":
            raise ValueError(f"a handler at {path!r}: give a path that begins with '/' and is not /metrics")
    return HTTPServer(where, {**(handlers or {}), "/metrics": _scraper(metrics)}, name="metrics", flag=METRICS_FLAG)


def health_server(
    address: str,
    *,
    liveness: Checks,
    readiness: Checks,
    liveness_path: str = "/healthz",
    readiness_path: str = "/readyz",
) -> HTTPServer | None:
    """Return the server of both kinds of probes, all checks at the path and one check below it; None when the address
    turns it off.

    Raises: ConfigError for an address that is none.
    """
    where = parse_address(address, HEALTH_FLAG)
    if where is None:
        return None
    handlers: dict[str, Handler] = {}
    for path, checks in ((liveness_path, liveness), (readiness_path, readiness)):
        handlers[path] = _all(checks, path.strip("/"))
        handlers[f"{path.rstrip('/')}/{{check}}"] = _one(checks, path.strip("/"))
    return HTTPServer(where, handlers, name="health probe", flag=HEALTH_FLAG)


def _scraper(metrics: Metrics) -> Handler:
    from aiohttp import web

    async def scrape(request: web.Request) -> web.StreamResponse:
        # In a thread: with many series the text takes tens of milliseconds to write.
        body, content_type = await asyncio.to_thread(metrics.render, request.headers.get("Accept", ""))
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
        logger.warning("health checks to exclude are not known", path=path, unknown=answer.unknown)
    return web.Response(status=answer.status, text=answer.text)
