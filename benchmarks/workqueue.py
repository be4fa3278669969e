"""The work queue by itself: `python -m benchmarks.workqueue` prints operations a second of CPU time (bar: 300,000/s)."""

from __future__ import annotations

import time

from ctrlruntime.metrics import Metrics
from ctrlruntime.reconcile import Request
from ctrlruntime.workqueue import PriorityQueue

KEYS = 20_000
ROUNDS = 10


def fill_and_drain() -> float:
    """All keys are added, then taken one by one: what follows a start."""
    queue: PriorityQueue = PriorityQueue(metrics=Metrics().workqueue("bench"))
    keys = [Request("default", f"object-{number}") for number in range(KEYS)]
    began = time.process_time()
    for _ in range(ROUNDS):
        for key in keys:
            queue.add(key)
        while (item := queue.get_nowait()) is not None:
            queue.forget(item.key)
            queue.done(item.key)
    return KEYS * ROUNDS / (time.process_time() - began)


def one_by_one() -> float:
    """Each key is taken as soon as it is added: an operator that keeps up."""
    queue: PriorityQueue = PriorityQueue(metrics=Metrics().workqueue("bench"))
    keys = [Request("default", f"object-{number}") for number in range(KEYS)]
    began = time.process_time()
    for _ in range(ROUNDS):
        for key in keys:
            queue.add(key)
            item = queue.get_nowait()
            assert item is not None
            queue.forget(item.key)
            queue.done(item.key)
    return KEYS * ROUNDS / (time.process_time() - began)


def two_levels() -> float:
    """Half of the keys with low priority, as in an initial list; triggers given."""
    queue: PriorityQueue = PriorityQueue(metrics=Metrics().workqueue("bench"))
    keys = [Request("default", f"object-{number}") for number in range(KEYS)]
    trigger = object()
    began = time.process_time()
    for _ in range(ROUNDS):
        for number, key in enumerate(keys):
            queue.add(key, priority=-100 if number % 2 else 0, trigger=trigger)
        while (item := queue.get_nowait()) is not None:
            queue.forget(item.key)
            queue.done(item.key)
    return KEYS * ROUNDS / (time.process_time() - began)


def main() -> None:
    for workload in (fill_and_drain, one_by_one, two_levels):
        rate = max(workload() for _ in range(5))
        print(f"{workload.__name__:16} {rate:>10,.0f} add+get+forget+done/s")


if __name__ == "__main__":
    main()
