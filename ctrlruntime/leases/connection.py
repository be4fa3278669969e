"""The connection that an election renews its Lease through: it waits for no rate limit, no leadership and no discovery."""

from __future__ import annotations

import json
from typing import Final

from ctrlruntime.client.api import APIClient
from ctrlruntime.client.interfaces import Client
from ctrlruntime.client.observers import CallObservers
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme


class LeaseConnection:
    """Requests for Leases to the API server of `cluster`, for the event loop that the election runs on; close it there.

    It uses no discovery: a Lease is renewed by one request, whatever other problems the API server has.
    """

    def __init__(self, cluster: Transport, *, scheme: Scheme) -> None:
        self._transport = cluster.sibling(is_limited=False)
        self.client: Client = APIClient(
            self._transport, RESTMapper(_discover_leases), scheme, observers=CallObservers(origin="unfenced")
        )

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._transport.close()


async def _discover_leases(path: str, _accept: str) -> tuple[int, bytes]:
    """Answer discovery as a server that has nothing but Leases."""
    return (200, _LEASES) if path == "/apis" else (404, b"")


_LEASES: Final = json.dumps(
    {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"name": "coordination.k8s.io"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "leases",
                                "responseKind": {"group": "coordination.k8s.io", "version": "v1", "kind": "Lease"},
                                "scope": "Namespaced",
                                "verbs": ["create", "delete", "get", "list", "update"],
                            }
                        ],
                    }
                ],
            }
        ],
    }
).encode()
