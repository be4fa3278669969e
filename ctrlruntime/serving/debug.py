"""The debug server: diagnostic pages without login, off by default, and only on loopback.

The data of a page is read on the main event loop and formatted on the serving loop. If the main loop does not respond in time, the page has
the line at which it is blocked.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ctrlruntime import log
from ctrlruntime.errors import ConfigError
from ctrlruntime.metrics.server import ServerMetrics
from ctrlruntime.serving.connections import DEFAULT_LIMITS, ServerLimits
from ctrlruntime.serving.endpoints import Ask
from ctrlruntime.serving.loops import EventLoopBlockedError
from ctrlruntime.serving.server import Address, Handler, HTTPServer, parse_address

if TYPE_CHECKING:
    from aiohttp import web

DEBUG_FLAG: Final = "--debug-bind-address"

_HEADERS: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


class Shown(NamedTuple):
    """A response."""

    body: bytes
    content_type: str
    status: int


class Page(NamedTuple):
    """One page.

    `look` is called on the main loop with the query, `show` on another loop with its result and the query. `refuse` formats the stack of a
    blocked main loop.
    """

    look: Callable[[Mapping[str, str]], object]
    show: Callable[[Any, Mapping[str, str]], Shown]
    refuse: Callable[[str, list[str]], Shown]


def parse_debug_address(text: str) -> Address | None:
    """Return the address in `host:port`, `:port` or `port`, the last two on loopback.

    None for "0" and "".

    Raises: ConfigError for an invalid address, or one that is not on loopback, because the pages have no login.
    """
    given = text.strip()
    address = parse_address(f":{given}" if given.isdecimal() and given != "0" else given, DEBUG_FLAG)
    if address is None:
        return None
    if not address.host:
        return Address("127.0.0.1", address.port)
    if not _is_loopback(address.host):
        raise ConfigError(
            f"{DEBUG_FLAG} is {text!r}: the debug pages have no login, so they are served on loopback only. Give a port alone, such as "
            f"{address.port or 8082}; from another machine use `kubectl port-forward` or an SSH tunnel"
        )
    return address


def debug_server(
    address: str,
    pages: Mapping[str, Page],
    *,
    ask: Ask,
    script: str = "",
    stack: Callable[[], list[str]] = list,
    metrics: ServerMetrics | None = None,
    limits: ServerLimits = DEFAULT_LIMITS,
) -> HTTPServer | None:
    """Return the server of the debug pages, by path; None if the address turns it off.

    ask: runs code on the main event loop.
    script: the only script that the pages may run.
    stack: returns the stack of a blocked main loop; safe in any thread.

    Raises: ConfigError for an address that is invalid or not on loopback.
    """
    where = parse_debug_address(address)
    if where is None:
        return None
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    headers = {**_HEADERS, "Content-Security-Policy": f"{_POLICY}; script-src 'sha256-{digest}'"}
    handlers = {path: _handler(page, ask, stack, headers) for path, page in pages.items()}
    return HTTPServer(where, handlers, name="debug", flag=DEBUG_FLAG, metrics=metrics, limits=limits)


def _handler(page: Page, ask: Ask, stack: Callable[[], list[str]], headers: Mapping[str, str]) -> Handler:
    from aiohttp import web

    async def answer(request: web.Request) -> web.StreamResponse:
        if not _is_local_name(request.host):
            # A web page elsewhere can have its own name lead here; then the browser still says that name.
            raise web.HTTPForbidden(text=f"the debug pages are served on loopback, and not as {request.host!r}\n")
        query = dict(request.query)

        async def look() -> object:
            return page.look(query)

        try:
            shown = page.show(await ask(look), query)
        except EventLoopBlockedError as error:
            shown = page.refuse(str(error), stack())
        except Exception as error:  # noqa: BLE001 - the one who looks should see what is wrong
            log.get_logger("serving").error("debug page failed", path=request.path, exc_info=error)
            shown = Shown(f"this page failed: {error!r}\n".encode(), "text/plain", 500)
        return web.Response(
            body=shown.body, status=shown.status, content_type=shown.content_type, charset="utf-8", headers=headers
        )

    return answer


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_local_name(host: str) -> bool:
    """Say whether a Host header is an address or localhost, with or without a port."""
    name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
    if name.lower() in {"localhost", ""}:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
