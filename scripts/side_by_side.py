"""Commands that run side by side, each with what it prints kept until it ends. For scripts/check and scripts/check-docs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_LONGEST = 1800  # seconds for one command, on a slow machine with other work


@dataclass(frozen=True)
class Ended:
    """A command that ended: its code (as a shell gives it), what it printed, and its seconds."""

    name: str
    code: int
    printed: str
    seconds: float


def side_by_side(
    commands: Mapping[str, Sequence[str]], workers: int, *, longest: float = _LONGEST, **environ: str
) -> Iterator[Ended]:
    """Run commands in the project's folder, begun in this order, `workers` at once. Yield each when it has ended.

    One that cannot be started or takes more than `longest` seconds has failed, and what it printed ends with the reason.
    """

    def run(name: str) -> Ended:
        began = time.monotonic()
        code, printed = _run(commands[name], longest, {**os.environ, **environ})
        return Ended(name, code, printed, time.monotonic() - began)

    with ThreadPoolExecutor(workers) as pool:
        for ended in as_completed([pool.submit(run, name) for name in commands]):
            yield ended.result()


def _run(command: Sequence[str], longest: float, environ: Mapping[str, str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command,
            cwd=_ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=longest,
        )
    except OSError as error:
        return 127, f"{command[0]} cannot be started: {error.strerror}\n"
    except subprocess.TimeoutExpired as error:
        printed = error.stdout or b""
        return 124, f"{printed.decode(errors='replace')}\n{command[0]} did not end within {longest:g} s\n"
    return done.returncode, done.stdout
