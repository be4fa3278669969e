"""The programs under test: where they are, what they can do, and how those that need a compiler are built.

A build goes to `${XDG_CACHE_HOME:-~/.cache}/ctrlruntime/bench/<hash of its sources>`; a second run finds it there. A program whose
toolchain is missing, or whose build fails, is left out with one line.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctrlruntime" / "bench"
KEPT = 2
"""Programs of one peer: that of these sources and the one before."""

HANDLERS = frozenset({"reconciled", "latency", "children", "idle"})
INFORMERS = HANDLERS | {"synced", "pods", "reads", "load"}
ALL = INFORMERS | {"metadata", "owns", "applied", "events", "namespaces", "controllers", "webhook", "queue"}


@dataclass(frozen=True, slots=True)
class Program:
    """One program and the workloads it has."""

    name: str
    version: str
    command: tuple[str, ...]
    workloads: frozenset[str]


def find(wanted: Iterable[str]) -> list[Program]:
    """Return the programs that can run here, in the table's order; the others are named on standard error."""
    made = {"ctrlruntime": ours, "uvloop": with_uvloop, "go": go, "rust": rust, "kopf": kopf, "floor": floor}
    return [program for name in made if name in set(wanted) and (program := made[name]()) is not None]


def module(name: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"benchmarks.peers.{name}")


def ours() -> Program:
    version = importlib.metadata.version("ctrlruntime")
    return Program("ctrlruntime", f"ctrlruntime {version}", module("ctrlruntime"), ALL)


def profiled() -> Program:
    """Our program with a profile among its figures; not in the table."""
    return Program("ctrlruntime", "ctrlruntime, profiled", module("ctrlruntime.profiled"), ALL)


def with_uvloop() -> Program | None:
    if importlib.util.find_spec("uvloop") is None:
        left_out("uvloop", "not installed; pip install uvloop")
        return None
    version = f"uvloop {importlib.metadata.version('uvloop')}"
    return Program("uvloop", version, module("ctrlruntime.with_uvloop"), INFORMERS)


def floor() -> Program:
    having = {"synced", "pods", "metadata", "reconciled", "latency", "children", "applied", "events", "webhook"}
    return Program("floor", "bare client", module("floor"), frozenset(having))


def kopf() -> Program | None:
    if importlib.util.find_spec("kopf") is None:
        left_out("kopf", "not installed; pip install kopf")
        return None
    return Program("kopf", f"kopf {importlib.metadata.version('kopf')}", module("kopf"), HANDLERS)


def go() -> Program | None:
    found = built("go", ["go.mod", "go.sum", "*.go"], "go", "https://go.dev/dl", build_go)
    version = pinned("go/go.mod", r"sigs\.k8s\.io/controller-runtime v(\S+)")
    return None if found is None else Program("go", f"controller-runtime {version}", (str(found),), ALL)


def fleet_go() -> Program | None:
    """Return the program of `benchmarks.fleet`; it is not in the table."""
    found = built("fleet-go", ["go.mod", "go.sum", "*.go"], "go", "https://go.dev/dl", build_fleet_go)
    version = pinned("fleet-go/go.mod", r"sigs\.k8s\.io/multicluster-runtime v(\S+)")
    return None if found is None else Program("fleet-go", f"multicluster-runtime {version}", (str(found),), frozenset())


def rust() -> Program | None:
    found = built("rust", ["Cargo.toml", "Cargo.lock", "src/*.rs"], "cargo", "https://rustup.rs", build_rust)
    version = pinned("rust/Cargo.toml", r'kube = \{ version = "=(\S+?)"')
    return (
        None
        if found is None
        else Program("rust", f"kube-rs {version}", (str(found),), INFORMERS | {"metadata", "applied"})
    )


def pinned(path: str, pattern: str) -> str:
    match = re.search(pattern, (HERE / path).read_text())
    return match[1] if match else "?"


def left_out(name: str, why: str) -> None:
    """Say why a program is not compared."""
    print(f"left out: {name}: {why}", file=sys.stderr, flush=True)


def built(name: str, sources: list[str], tool: str, where: str, build: Callable[[Path], Path]) -> Path | None:
    """Return the program built from these sources, after building it if need be; None when that cannot be done."""
    folder = CACHE / f"{name}-{fingerprint(HERE / name, sources)}"
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / f".{name}.lock").touch()
    except OSError as error:
        left_out(name, f"{CACHE} cannot be written: {error.strerror}; set XDG_CACHE_HOME to another folder")
        return None
    with (CACHE / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the process, however it ends
        if not (folder / "peer").is_file():
            if shutil.which(tool) is None:
                left_out(name, f"{tool} is not installed; get it at {where}")
                return None
            print(f"building the {name} peer, some minutes the first time", file=sys.stderr, flush=True)
            try:
                with tempfile.TemporaryDirectory(dir=CACHE, prefix=".build-") as work:
                    made = build(Path(work))
                    folder.mkdir(exist_ok=True)
                    made.replace(folder / "peer")  # at once, so that none is ever half there
            except subprocess.CalledProcessError as error:
                last = str(error.stdout).strip().splitlines()[-1:] or ["no output"]
                left_out(name, f"the build in {HERE / name} failed: {last[0]}")
                return None
        folder.touch()
        forget(name)
    return folder / "peer"


def forget(name: str) -> None:
    """Remove the programs of earlier sources."""
    folders = sorted(CACHE.glob(f"{name}-*"), key=lambda path: -path.stat().st_mtime)
    for folder in folders[KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def fingerprint(folder: Path, sources: list[str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in sources for path in folder.glob(pattern)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build_go(work: Path, folder: str = "go") -> Path:
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOWORK": "off"}
    run(["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(work / "peer"), "."], HERE / folder, environment)
    return work / "peer"


def build_fleet_go(work: Path) -> Path:
    return build_go(work, "fleet-go")


def build_rust(work: Path) -> Path:
    target = Path(os.environ.get("CARGO_TARGET_DIR") or work / "target")  # half a GB; set it to keep it between builds
    run(["cargo", "build", "--release", "--locked", "--quiet", "--target-dir", str(target)], HERE / "rust", {})
    shutil.copy2(target / "release" / "peer", work / "peer")
    return work / "peer"


def run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
