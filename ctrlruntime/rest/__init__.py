"""Access to the API server, and the only user of kubernetes_asyncio.

The transport is not imported here, because it imports an HTTP parser.
"""

from __future__ import annotations

from ctrlruntime.rest.config import Config, Impersonation, get_config
from ctrlruntime.rest.fence import Actor, Fence, acting, current_actor
from ctrlruntime.rest.mapper import APIResource, RESTMapper
from ctrlruntime.rest.tls import TLSConfig

__all__ = [
    "APIResource",
    "Actor",
    "Config",
    "Fence",
    "Impersonation",
    "RESTMapper",
    "TLSConfig",
    "acting",
    "current_actor",
    "get_config",
]
