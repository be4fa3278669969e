"""`python -m examples.memcached` as a process, driven by kubectl as a user would, on both servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctrlruntime.testing import eventually

ROOT = Path(__file__).parents[2]
MINE = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "mine", "namespace": "default"},
    "spec": {"size": 3},
}

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl in the PATH")

Start = Callable[..., "Operator"]


class Operator:
    """The running example and a kubectl that talks to its cluster."""

    def __init__(self, kubeconfig: Path, *flags: str, environ: dict[str, str] | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.log = kubeconfig.with_suffix(".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "examples.memcached", "--metrics-bind-address", "0", *flags],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environ or {})},
            )

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["kubectl", "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, manifest: object) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def state(self) -> tuple[int, int]:
        """Ready replicas of the Deployment, and names in the status of the Memcached."""
        deployments = json.loads(self.kubectl("get", "deployments", "-n", "default", "-o", "json"))["items"]
        ready = [d["status"].get("readyReplicas", 0) for d in deployments if d["metadata"]["name"] == "mine"]
        memcached = json.loads(self.kubectl("get", "memcached", "mine", "-n", "default", "-o", "json"))
        return (ready or [0])[0], len(memcached.get("status", {}).get("nodes", ()))

    async def reaches(self, size: int) -> None:
        await eventually(lambda: self.state() == (size, size), timeout=15, interval=0.2)

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=20)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the example with these flags and environment; none outlives the test."""
    started: list[Operator] = []

    def operator(*flags: str, **environ: str) -> Operator:
        started.append(Operator(tmp_path / "kubeconfig", *flags, environ=environ))
        return started[-1]

    yield operator
    for running in started:
        running.stop(signal.SIGKILL)


@pytest.fixture
def embedded(start: Start, tmp_path: Path) -> Callable[..., Operator]:
    """Starts the example on its embedded server."""
    return lambda **environ: start("--embedded", "--kubeconfig-out", str(tmp_path / "kubeconfig"), **environ)


@pytest.fixture(params=["embedded", "real"])
def operator(request: pytest.FixtureRequest, start: Start, tmp_path: Path) -> Operator:
    if request.param == "embedded":
        return request.getfixturevalue("embedded")()
    request.getfixturevalue("_real_nodes")
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(request.getfixturevalue("real_server").kubeconfig)
    return start("--kubeconfig", str(kubeconfig), "--install")


async def test_the_example_does_what_its_readme_says(operator: Operator) -> None:
    await eventually(lambda: operator.kubectl("get", "crd", "memcacheds.cache.example.com"), timeout=20)

    operator.apply(MINE)
    await operator.reaches(3)

    operator.kubectl("delete", "deployment", "mine", "-n", "default")
    await operator.reaches(3)

    operator.kubectl("patch", "memcached", "mine", "-n", "default", "--type", "merge", "-p", '{"spec": {"size": 5}}')
    await operator.reaches(5)

    operator.kubectl("delete", "memcached", "mine", "-n", "default")

    def left() -> list[str]:
        kinds = "memcacheds,deployments,replicasets,pods"
        names = operator.kubectl("get", kinds, "-n", "default", "-o", "name").split()
        return [name for name in names if "/mine" in name]

    # kube-controller-manager's collector learns of a new kind within 30 s.
    await eventually(lambda: left() == [], timeout=60, interval=0.5)

    assert operator.stop() == 0
    lines = operator.log.read_text()
    assert "Traceback" not in lines
    assert "ERROR" not in lines
    assert '"level":"error"' not in lines


async def test_ctrl_c_ends_the_example_with_code_0(embedded: Start) -> None:
    operator = embedded()
    await eventually(lambda: "status written" in operator.log.read_text(), timeout=20)

    assert operator.stop(signal.SIGINT) == 0
    assert "Traceback" not in operator.log.read_text()


async def test_a_configuration_that_does_not_work_is_an_error_that_names_embedded(start: Start, tmp_path: Path) -> None:
    operator = start(KUBECONFIG=str(tmp_path / "nowhere"))

    assert operator.process.wait(timeout=20) == 1
    said = operator.log.read_text().strip()
    assert said.startswith("error: ")
    assert "--embedded" in said
    assert len(said.splitlines()) == 1


async def test_without_any_configuration_it_says_so_and_starts_the_embedded_server(
    start: Start, tmp_path: Path
) -> None:
    operator = start(
        "--kubeconfig-out", str(tmp_path / "kubeconfig"), HOME=str(tmp_path), KUBECONFIG="", KUBERNETES_SERVICE_HOST=""
    )

    await eventually(lambda: "status written" in operator.log.read_text(), timeout=20)

    assert operator.stop() == 0
    assert "no cluster is configured" in operator.log.read_text()


async def test_watch_namespace_limits_the_operator(embedded: Start) -> None:
    operator = embedded(WATCH_NAMESPACE="default")
    await eventually(lambda: "status written" in operator.log.read_text(), timeout=20)
    operator.kubectl("create", "namespace", "other")

    operator.apply({**MINE, "metadata": {"name": "elsewhere", "namespace": "other"}})
    operator.apply(MINE)
    await operator.reaches(3)

    assert operator.kubectl("get", "deployments", "-n", "other", "-o", "name") == ""
    assert operator.stop() == 0
