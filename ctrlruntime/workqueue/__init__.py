"""The queue between sources and workers."""

from ctrlruntime.workqueue.priority import Item, Overview, Pending, PriorityQueue, ShutDown
from ctrlruntime.workqueue.rate_limiter import (
    BucketLimiter,
    ItemExponentialBackoff,
    ItemFastSlow,
    MaxOf,
    RateLimiter,
    WithMaxWait,
)

__all__ = [
    "BucketLimiter",
    "Item",
    "ItemExponentialBackoff",
    "ItemFastSlow",
    "MaxOf",
    "Overview",
    "Pending",
    "PriorityQueue",
    "RateLimiter",
    "ShutDown",
    "WithMaxWait",
]
