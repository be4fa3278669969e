"""The queue between sources and workers."""

from ctrlruntime.workqueue.priority import Item, PriorityQueue, ShutDown
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
    "PriorityQueue",
    "RateLimiter",
    "ShutDown",
    "WithMaxWait",
]
