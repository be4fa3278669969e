"""The work queue and its rate limiters."""

from ctrlruntime.workqueue.priority import Item, Overview, Pending, PriorityQueue, QueueShutDownError
from ctrlruntime.workqueue.rate_limiter import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
)

__all__ = [
    "BucketRateLimiter",
    "Item",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "Overview",
    "Pending",
    "PriorityQueue",
    "QueueShutDownError",
    "RateLimiter",
    "WithMaxWaitRateLimiter",
]
