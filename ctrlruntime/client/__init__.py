"""Clients: read and write objects of one API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.client.gate import Gate
from ctrlruntime.client.interceptor import intercept
from ctrlruntime.client.interfaces import SubresourceClient, WatchEvent
from ctrlruntime.client.patches import Patch
from ctrlruntime.client.scoped import dry_run, namespaced, with_field_owner, with_field_validation
from ctrlruntime.lazy import lazy_attributes

if TYPE_CHECKING:
    from ctrlruntime.client.api import APIClient
    from ctrlruntime.client.split import SplitClient
    from ctrlruntime.rest.mapper import RESTMapper

__all__ = [
    "APIClient",
    "Gate",
    "Patch",
    "RESTMapper",
    "SplitClient",
    "SubresourceClient",
    "WatchEvent",
    "dry_run",
    "intercept",
    "namespaced",
    "with_field_owner",
    "with_field_validation",
]

if not TYPE_CHECKING:  # these import the transport
    __getattr__ = lazy_attributes(
        __name__, {"APIClient": ".api", "RESTMapper": "ctrlruntime.rest.mapper", "SplitClient": ".split"}
    )
