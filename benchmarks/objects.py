"""What a typed object costs without any server: an assignment, a copy, and each way to and from its wire form.

    python -m benchmarks.objects [--rounds 20]

The numbers of one run belong together: on a busy machine compare ratios. `dataclass` is an assignment to a plain slot, as a measure.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.client import deployment
from ctrlruntime.api import apps


@dataclass(slots=True)
class Plain:
    replicas: int = 0


def cases() -> dict[str, Callable[[], object]]:
    obj, plain = deployment("web"), Plain()
    raw, spec = obj.to_json(), obj.spec

    def assign() -> None:
        spec.replicas = 3

    def assign_plain() -> None:
        plain.replicas = 3

    return {
        "dataclass": assign_plain,
        "assign": assign,
        "from_json": lambda: apps.Deployment.from_json(raw),
        "to_dict": obj.to_dict,
        "to_json": obj.to_json,
        "to_apply_dict": obj.to_apply_dict,
        "deep_copy": obj.deep_copy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.objects", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="the best of so many rounds counts")
    rounds: int = parser.parse_args().rounds
    best = dict.fromkeys(cases(), float("inf"))
    for _ in range(rounds):  # round by round, so that a busy moment meets all alike
        for name, work in cases().items():
            best[name] = min(best[name], timeit.timeit(work, number=2000) / 2000)
    for name, seconds in best.items():
        print(f"{name:12} {seconds * 1e6:8.2f} µs")


if __name__ == "__main__":
    main()
