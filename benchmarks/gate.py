"""What read-your-writes costs without any server: a write from its ticket to the cache, and a read while writes are pending.

    python -m benchmarks.gate [--rounds 20] [--pending 1000]

The numbers of one run belong together: on a busy machine compare ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import timeit
from collections.abc import Callable, Iterable

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import Metadata
from ctrlruntime.client.gate import Gate
from ctrlruntime.client.marks import Listing

THING = GroupVersionKind("example.com", "v1", "Thing")
WRITES = 2000


class View:
    """A cache that shows every write at once."""

    is_filtered_by_fields = False
    is_part = False

    def __init__(self) -> None:
        self.at = 0
        self.objects: dict[tuple[str, str], Metadata] = {}

    def position(self, namespace: str) -> int:
        return self.at

    def entry(self, namespace: str, name: str) -> Metadata | None:
        return self.objects.get((namespace, name))

    def entries(self, namespace: str) -> Iterable[Metadata]:
        return [meta for (its, _), meta in self.objects.items() if namespace in {"", its}]

    def covers(self, namespace: str, meta: object) -> bool:
        return True

    async def changed(self) -> None:
        raise AssertionError("no read of this benchmark waits")

    def refresh(self, namespace: str) -> None:
        raise AssertionError("no read of this benchmark waits")

    async def compare(self, key: object) -> Listing:
        raise AssertionError("no read of this benchmark asks the server")


def write(gate: Gate, view: View, number: int) -> None:
    meta = Metadata(name=f"o{number % 100}", namespace="ns", uid="u", resource_version=str(number))
    ticket = gate.open(THING, "ns", meta.name)
    ticket.stored(meta)
    view.objects["ns", meta.name] = meta
    view.at = number


def cases(pending: int) -> dict[str, Callable[[], object]]:
    view, idle, busy = View(), Gate(), Gate()
    for gate in (idle, busy):
        gate.watch_views(lambda _kind: [view])
    for number in range(pending):
        busy.open(THING, "ns", f"pending-{number}")
    loop = asyncio.new_event_loop()
    numbers = iter(range(1, 1 << 60))

    def read() -> None:
        loop.run_until_complete(busy.wait_until_visible(THING, view, "ns", "another"))

    return {
        "write": lambda: write(idle, view, next(numbers)),
        "is_idle": lambda: idle.is_idle(THING),
        f"read beside {pending} pending": read,
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20, help="the best of so many rounds counts")
    parser.add_argument("--pending", type=int, default=1000, help="writes that are open while a read looks")
    args = parser.parse_args()
    work = cases(args.pending)
    best = dict.fromkeys(work, float("inf"))
    for _ in range(args.rounds):  # round by round, so that a busy moment meets all alike
        for name, one in work.items():
            best[name] = min(best[name], timeit.timeit(one, number=WRITES) / WRITES)
    for name, seconds in best.items():
        print(f"{name:28} {seconds * 1e6:8.2f} µs")


if __name__ == "__main__":
    main()
