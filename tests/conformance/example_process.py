"""An example as a process (`python -m examples.NAME`), and the kubectl of a user beside it.

It starts by a fork of a process that has its modules loaded.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import Forks
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually

ROOT = Path(__file__).parents[2]

EXAMPLES = [f"examples.{name}.__main__" for name in ("memcached", "game", "sidecarset")]

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl in the PATH")


@pytest.fixture(scope="session")
def example_forks() -> Iterator[Forks]:
    """Starts examples, with all loaded that they need, the embedded server included."""
    with Forks([*EXAMPLES, "ctrlruntime.apiserver"], env={**os.environ, "PYTHONPATH": str(ROOT)}) as forks:
        yield forks


class Operator:
    """The running example and a kubectl that talks to its cluster."""

    def __init__(self, forks: Forks, example: str, kubeconfig: Path, *flags: str, environ: dict[str, str]) -> None:
        self.kubeconfig = kubeconfig
        self.log = kubeconfig.with_suffix(".log")
        self.log.write_text("")
        self.process = forks.popen(example, *flags, cwd=ROOT, env={**os.environ, **environ}, out=self.log)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints. Raises: AssertionError with what it says when it fails."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def try_kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def apply(self, manifest: object) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def refusal(self, manifest: object) -> str:
        """Return what kubectl says of a manifest that is refused."""
        done = self.try_kubectl("create", "-f", "-", "--dry-run=server", stdin=json.dumps(manifest))
        return done.stderr if done.returncode else ""

    def table(self, *arguments: str) -> list[list[str]]:
        """Return the words of each line that kubectl get prints."""
        return [line.split() for line in self.kubectl("get", *arguments).splitlines()]

    async def shows(self, wanted: Callable[[list[str]], bool], *arguments: str) -> None:
        """Wait until `kubectl get --watch` prints a line with the words that are wanted.

        One process: a kubectl for each look takes more of the processor than the operator does.
        """
        process = await asyncio.create_subprocess_exec(
            "kubectl", "--kubeconfig", self.kubeconfig, "get", *arguments, "--no-headers", "--watch",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        lines = []
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                async for line in process.stdout:
                    lines.append(line.decode())
                    if wanted(lines[-1].split()):
                        return
        finally:
            if process.returncode is None:
                process.kill()
            _, errors = await process.communicate()
        pytest.fail(f"kubectl get {' '.join(arguments)} ended: {''.join(lines)}{errors.decode()}")

    async def are_gone(self, namespace: str, name: str, *kinds: str) -> None:
        """Wait until nothing of these kinds is left whose name begins with `name`. The first are those that own the others."""
        objects = [f"{kind}/{name}" for kind in kinds]
        # kube-controller-manager's collector learns of a new kind within 30 s.
        self.kubectl("wait", "--for=delete", "-n", namespace, f"--timeout={LONGEST_WAIT:g}s", *objects)

        def left() -> list[str]:
            names = self.kubectl("get", ",".join(kinds), "-n", namespace, "-o", "name").split()
            return [each for each in names if f"/{name}" in each]

        await eventually(lambda: left() == [], interval=0.5)

    async def says(self, text: str) -> None:
        """Wait until the log has a text."""
        await eventually(lambda: text in self.log.read_text())

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=LONGEST_WAIT)

    def assert_a_clean_end(self) -> None:
        assert self.stop() == 0
        lines = self.log.read_text()
        assert "Traceback" not in lines
        assert "ERROR" not in lines
        assert '"level":"error"' not in lines


class Starter:
    """Starts an example, the module with its `main`, with flags and environment; `end` kills what is still there."""

    def __init__(self, forks: Forks, example: str, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._forks = forks
        self._example = example
        self._started: list[Operator] = []

    def __call__(self, *flags: str, **environ: str) -> Operator:
        self._started.append(Operator(self._forks, self._example, self.kubeconfig, *flags, environ=environ))
        return self._started[-1]

    def embedded(self, *flags: str, **environ: str) -> Operator:
        return self("--embedded", "--kubeconfig-out", str(self.kubeconfig), *flags, **environ)

    def on(self, backend: str, request: pytest.FixtureRequest, *flags: str, real: tuple[str, ...] = ()) -> Operator:
        """Start on its own embedded server, or on the real one of the tests, where Pods run; `real` are flags for that one."""
        if backend == "embedded":
            return self.embedded(*flags)
        request.getfixturevalue("_real_nodes")
        self.kubeconfig.write_text(request.getfixturevalue("real_server").kubeconfig)
        return self("--kubeconfig", str(self.kubeconfig), "--install", *flags, *real)

    def end(self) -> None:
        for operator in self._started:
            operator.stop(signal.SIGKILL)
