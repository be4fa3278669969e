"""Responses of aiohttp that are not read to their end, such as watches."""

from __future__ import annotations

import aiohttp


def abort(response: aiohttp.ClientResponse) -> None:
    """Close the connection of a response without TLS's farewell.

    aiohttp would start the farewell and forget the connection. `ClientSession.close` does not wait for it, so on a loaded machine the
    event loop ends before the server replies, and the socket is left open.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
