"""Hostile callers beside an honest one against the webhook server, hostile answers against the client, and a table of each."""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.attack.callers import KINDS
from benchmarks.attack.servers import KINDS as ANSWERS

CONNECTIONS = 2000
RATE = 200.0
_PYTHON = (sys.executable, "-m")


def main() -> None:
    """Run the attacks and print a table of each sort."""
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    parser.add_argument("what", nargs="*", metavar="callers|answers", help="default: both")
    parser.add_argument("--quick", action="store_true", help="of the callers all kinds at once only, for ten seconds")
    parser.add_argument("--seconds", type=float, default=20.0, help="seconds for each row of the callers")
    parser.add_argument(
        "--again", type=float, default=5.0, help="seconds before a closed hostile connection comes back"
    )
    options = parser.parse_args()
    what = options.what or ["callers", "answers"]
    if "callers" in what:
        _attack_servers(10.0 if options.quick else options.seconds, options.again, is_quick=options.quick)
    if "answers" in what:
        _attack_client()


def _attack_servers(seconds: float, again: float, *, is_quick: bool) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    rows: dict[str, list[str]] = {"(quiet)": []}
    if not is_quick:
        rows |= {kind: [kind] for kind in KINDS}
    rows["all six, from the address of the valid client"] = rows["all six, from eight other addresses"] = list(KINDS)
    print(
        f"{CONNECTIONS} hostile connections, reconnecting after {again:g} s, next to {RATE:g} valid reviews a second; "
        f"{seconds:g} s for each row\n"
    )
    print("| hostile connections | reviews failed | p50 ms | p99 ms | p99 ÷ quiet | peak MiB | limits met |")
    print("|---|---:|---:|---:|---:|---:|---|")
    quiet = None
    for name, kinds in rows.items():
        sources = [f"127.0.0.{2 + n}" for n in range(8)] if "other" in name else ["127.0.0.1"]
        found, server = _run(kinds, sources, seconds, again)
        quiet = quiet or found["p99_ms"]
        limited = ", ".join(f"{limit} {count}" for limit, count in sorted(server["limited"].items()))
        print(
            f"| {name} | {found['failures']} of {found['reviews']} | {found['p50_ms']:.1f} | {found['p99_ms']:.1f} "
            f"| {found['p99_ms'] / quiet:.1f} | {server['peak_mib']:.0f} | {limited or '—'} |",
            flush=True,
        )


def _attack_client() -> None:
    print(
        "\n| hostile response | result in the client | MiB more at the peak | longest pause of the loop, ms | seconds |"
    )
    print("|---|---|---:|---:|---:|")
    for kind in ANSWERS:
        done = subprocess.run(
            [*_PYTHON, "benchmarks.attack.servers", kind], stdout=subprocess.PIPE, text=True, check=True
        )
        row = json.loads(done.stdout)
        outcome = row["outcome"].partition(":")[0]
        print(
            f"| {row['what']} | {outcome} | {row['memory']:.1f} | {row['still'] * 1000:.0f} | {row['seconds']:.1f} |",
            flush=True,
        )


def _run(kinds: list[str], sources: list[str], seconds: float, again: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the valid client measured, and the numbers of the server."""
    with _process("benchmarks.attack.victim") as victim:
        assert victim.stdout is not None
        assert victim.stdin is not None
        port = victim.stdout.readline().strip()
        arguments = ("hostile", port, str(CONNECTIONS), ",".join(sources), str(again), *kinds)
        with _process("benchmarks.attack.callers", *arguments) if kinds else contextlib.nullcontext():
            time.sleep(2.0 if kinds else 0.0)
            with _process("benchmarks.attack.callers", "honest", port, str(RATE), str(seconds)) as honest:
                found = json.loads(honest.communicate()[0])
            victim.stdin.write("\n")
            victim.stdin.flush()
            server = json.loads(victim.stdout.readline())
    return found, server


@contextlib.contextmanager
def _process(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*_PYTHON, module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if "honest" in arguments else subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


if __name__ == "__main__":
    main()
