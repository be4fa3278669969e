"""Clients: reading and writing objects of one API server."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ctrlruntime.client.gate import Gate
from ctrlruntime.client.interceptor import intercept
from ctrlruntime.client.interfaces import Client, ListResult, Reader, SubresourceClient, WatchEvent, Writer
from ctrlruntime.client.patches import Patch, json_patch, merge_from, merge_patch, strategic_merge_patch
from ctrlruntime.client.scoped import dry_run, namespaced, with_field_owner, with_field_validation

if TYPE_CHECKING:
    from ctrlruntime.client.api import APIClient
    from ctrlruntime.client.split import SplitClient

__all__ = [
    "APIClient",
    "Client",
    "Gate",
    "ListResult",
    "Patch",
    "Reader",
    "SplitClient",
    "SubresourceClient",
    "WatchEvent",
    "Writer",
    "dry_run",
    "intercept",
    "json_patch",
    "merge_from",
    "merge_patch",
    "namespaced",
    "strategic_merge_patch",
    "with_field_owner",
    "with_field_validation",
]

_LAZY = {"APIClient": "api", "SplitClient": "split"}  # these bring the transport with them

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
