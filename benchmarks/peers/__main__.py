"""ctrlruntime, Go's controller-runtime, Rust's kube-rs and kopf on the same API server with the same objects, in one table.

    python -m benchmarks.peers [--quick] [--runs 5] [--only synced,reconciled,…] [--programs ctrlruntime,go,…]

docs/proof/performance.md says what is measured and how. The raw figures go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from benchmarks.peers import growth, table
from benchmarks.peers.process import Figures
from benchmarks.peers.programs import ROOT, Program, find, profiled
from benchmarks.peers.workloads import Bench, Sizes
from ctrlruntime.errors import ConfigError

RESULTS = ROOT / "benchmarks" / "results"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").partition("\n")[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="a twentieth of the objects, two runs: to see that it works")
    size.add_argument("--divide", type=positive, default=0, metavar="N", help="one N-th of the objects")
    size.add_argument("--multiply", type=positive, default=1, metavar="N", help="N times as many objects in the caches")
    parser.add_argument("--runs", type=positive, default=0, help="runs of each program and workload; 5")
    parser.add_argument("--only", type=names_of(table.TITLES), default=list(table.TITLES), metavar="WORKLOAD,…")
    parser.add_argument("--programs", type=names_of(table.PROGRAMS), default=list(table.PROGRAMS), metavar="NAME,…")
    parser.add_argument("--backend", choices=["real", "embedded"], default="real", help="the API server")
    alone = parser.add_mutually_exclusive_group()
    alone.add_argument("--profile", action="store_true", help="ctrlruntime alone, once: where its CPU time goes")
    alone.add_argument("--growth", action="store_true", help="ctrlruntime alone, at 1/100, 1/10 and the whole size")
    parser.add_argument(
        "--pin", action="store_true", help="half of the processors for the server, half for the programs"
    )
    parser.add_argument("--output", type=Path, help="where the raw figures go; benchmarks/results/<time>.json")
    given = parser.parse_args()
    if given.pin and (not hasattr(psutil.Process, "cpu_affinity") or len(psutil.Process().cpu_affinity() or []) < 2):
        parser.error("--pin needs a system with two processors or more that can be given to a process")
    if given.growth and given.multiply > 1:
        parser.error("--growth has sizes of its own: leave --multiply out")
    given.output = given.output or RESULTS / time.strftime(f"{'' if whole(given) else 'quick-'}%Y%m%d-%H%M%S.json")
    try:  # better known now than in half an hour
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.touch()
    except OSError as error:
        parser.error(f"the raw figures cannot be written to {given.output}: {error.strerror}")
    return given


def whole(given: argparse.Namespace) -> bool:
    return not given.quick and given.divide <= 1 and given.multiply == 1


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return int(text)


def names_of(known: dict[str, str]) -> Any:
    def names(text: str) -> list[str]:
        given = text.split(",")
        if unknown := [name for name in given if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are {', '.join(known)}")
        return given

    return names


def machine() -> dict[str, Any]:
    """The shape of the machine, and whether something else was running."""
    model = next(
        (line.partition(":")[2].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
    }


def lines_of(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []


def shape(facts: dict[str, Any], programs: list[Program], runs: int) -> list[str]:
    at = facts["machine"]
    lines = [
        f"{at['processors']} processors ({at['processor']}), {at['memory_gb']} GB, {at['system']}, Python {at['python']}",
        f"API server {facts.get('server', 'not used')}; load {at['load']} at the start",
        ", ".join(program.version for program in programs) + f"; medians of {runs} (least-most)",
    ]
    sizes = [f"a {kind} has {facts[key]:,.0f} bytes" for kind, key in SIZES.items() if key in facts]
    return [*lines, ", ".join(sizes)] if sizes else lines


SIZES = {
    "custom resource": "widget_bytes",
    "Pod": "pod_bytes",
    "custom resource of which the metadata is cached": "metadata_bytes",
}


def main() -> int:
    given = options()
    divide = given.divide or (20 if given.quick else 1)
    runs = given.runs or (1 if given.profile else 2 if given.quick else 5)
    programs = chosen(given)
    bench = Bench(
        programs=programs,
        sizes=Sizes().divided(divide).multiplied(given.multiply),
        runs=runs,
        only=frozenset(given.only),
        backend=given.backend,
        pin=given.pin,
    )
    bench.facts["machine"] = machine()
    began, grown = time.perf_counter(), list[str]()
    try:
        if given.growth:
            grown = growth.measure(bench, divide)
        else:
            bench.run()
    except ConfigError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"bench: interrupted; what was measured is in {given.output}", file=sys.stderr)
        return 130
    finally:
        raw = {"facts": bench.facts, "runs": runs, "divided": divide, "rows": bench.rows, "failures": bench.failures}
        given.output.write_text(json.dumps(raw, indent=1) + "\n")
    if given.profile:
        profiles = [
            line for name in given.only for line in profile_of([row for row in bench.rows if row["workload"] == name])
        ]
        print("\n".join(shape(bench.facts, programs, runs) + profiles))
    elif given.growth:
        print("\n".join(shape(bench.facts, bench.programs[:1], runs) + grown))
    else:
        report(bench, "" if whole(given) else f"1/{divide}" if divide > 1 else str(given.multiply))
    print(f"\nraw figures: {given.output}; took {time.perf_counter() - began:.0f} s")
    return 1 if bench.failures else 0


def chosen(given: argparse.Namespace) -> list[Program]:
    if given.profile:
        return [profiled()]
    return find(["ctrlruntime"] if given.growth else given.programs)


def profile_of(rows: list[Figures]) -> list[str]:
    """Return the lines of one workload's profile, all runs together: the stages, the functions by themselves and with what they call."""
    counts = {part: Counter[str]() for part in ("stages", "itself", "within")}
    for row in rows:
        for part, counter in counts.items():
            counter.update(row.get("profile", {}).get(part, {}))
    total = counts["stages"].total()
    if not total:
        return []
    cpu, count = statistics.mean(row["cpu"] for row in rows), rows[0]["count"]
    title = f"{rows[0]['workload']}, {count:,} objects: CPU {cpu:.3f} s on average, {total} samples in all"
    per_object = cpu / max(1, count) / total * 1e6
    stages = [f"  {seen / total:6.1%} {seen * per_object:8.2f} us  {name}" for name, seen in counts["stages"].items()]
    itself = [f"  {seen / total:6.1%}  {name}" for name, seen in counts["itself"].most_common(30)]
    within = [f"  {seen / total:6.1%}  {name}" for name, seen in counts["within"].most_common(80) if seen < total]
    by_stage = [" by stage, for one object", *stages]
    return ["", title, *by_stage, " by function, itself", *itself, " by function, with what it calls", *within]


def report(bench: Bench, part: str) -> None:
    """Print the table and the verdicts; `part` of the whole sizes was measured, empty: the whole."""
    found = table.values(bench.rows)
    print("\n".join(shape(bench.facts, bench.programs, bench.runs)) + "\n")
    print("\n".join(table.tables(found)) + "\n")
    verdicts = table.judge(found, bench.only)
    if verdicts and part:
        print(f"The sizes are {part} times those of the targets: what follows is not a verdict.")
    for line in verdicts:
        print(line.rstrip())
    for failure in bench.failures:
        print(f"failed: {failure}")


if __name__ == "__main__":
    sys.exit(main())
