"""The cache of a cluster: informers, options and indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.lazy import lazy_attributes

if TYPE_CHECKING:
    from ctrlruntime.cache.cache import Cache
    from ctrlruntime.cache.options import ByObject, NamespaceOptions
    from ctrlruntime.cache.reflector import WatchOptions

__all__ = ["ByObject", "Cache", "NamespaceOptions", "WatchOptions"]

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(
        __name__,
        {"ByObject": ".options", "Cache": ".cache", "NamespaceOptions": ".options", "WatchOptions": ".reflector"},
    )
