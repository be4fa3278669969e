"""`python -m examples.memcached` as a process, driven by kubectl as a user would, on both servers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_process import Operator, Starter, needs_kubectl
from forked import Forks

from ctrlruntime.testing import eventually

MINE = {
    "apiVersion": "cache.example.com/v1alpha1",
    "kind": "Memcached",
    "metadata": {"name": "mine", "namespace": "default"},
    "spec": {"size": 3},
}

pytestmark = needs_kubectl


@pytest.fixture
def start(example_forks: Forks, tmp_path: Path) -> Iterator[Starter]:
    """Starts the example; none outlives the test."""
    starter = Starter(example_forks, "memcached", tmp_path)
    yield starter
    starter.end()


@pytest.fixture(params=["embedded", "real"])
def operator(request: pytest.FixtureRequest, start: Starter) -> Operator:
    return start.on(request.param, request)


def state(operator: Operator) -> tuple[int, int]:
    """Return the ready replicas of the Deployment, and how many names are in the status of the Memcached."""
    deployments = json.loads(operator.kubectl("get", "deployments", "-n", "default", "-o", "json"))["items"]
    ready = [each["status"].get("readyReplicas", 0) for each in deployments if each["metadata"]["name"] == "mine"]
    memcached = json.loads(
        operator.kubectl("get", "memcacheds.cache.example.com", "mine", "-n", "default", "-o", "json")
    )
    return (ready or [0])[0], len(memcached.get("status", {}).get("nodes", ()))


async def reaches(operator: Operator, size: int) -> None:
    await eventually(lambda: state(operator) == (size, size), interval=0.2)


async def test_the_example_does_what_its_readme_says(operator: Operator) -> None:
    await eventually(lambda: operator.kubectl("get", "crd", "memcacheds.cache.example.com"))

    operator.apply(MINE)
    await reaches(operator, 3)

    operator.kubectl("delete", "deployment", "mine", "-n", "default")
    await reaches(operator, 3)

    operator.kubectl(
        "patch",
        "memcacheds.cache.example.com",
        "mine",
        "-n",
        "default",
        "--type",
        "merge",
        "-p",
        '{"spec": {"size": 5}}',
    )
    await reaches(operator, 5)

    operator.kubectl("delete", "memcacheds.cache.example.com", "mine", "-n", "default")

    def left() -> list[str]:
        kinds = "memcacheds,deployments,replicasets,pods"
        names = operator.kubectl("get", kinds, "-n", "default", "-o", "name").split()
        return [name for name in names if "/mine" in name]

    # kube-controller-manager's collector learns of a new kind within 30 s.
    await eventually(lambda: left() == [], interval=0.5)

    operator.assert_a_clean_end()


async def test_ctrl_c_ends_the_example_with_code_0(start: Starter) -> None:
    operator = start.embedded()
    await operator.says("status written")

    assert operator.stop(signal.SIGINT) == 0
    assert "Traceback" not in operator.log.read_text()


async def test_a_configuration_that_does_not_work_is_an_error_that_names_embedded(
    start: Starter, tmp_path: Path
) -> None:
    operator = start(KUBECONFIG=str(tmp_path / "nowhere"))

    assert operator.process.wait(timeout=120) == 1
    said = operator.log.read_text().strip()
    assert said.startswith("error: ")
    assert "--embedded" in said
    assert len(said.splitlines()) == 1


async def test_without_any_configuration_it_says_so_and_starts_the_embedded_server(
    start: Starter, tmp_path: Path
) -> None:
    operator = start(
        "--kubeconfig-out", str(tmp_path / "kubeconfig"), HOME=str(tmp_path), KUBECONFIG="", KUBERNETES_SERVICE_HOST=""
    )

    await operator.says("status written")

    assert operator.stop() == 0
    assert "no cluster is configured" in operator.log.read_text()


async def test_watch_namespace_limits_the_operator(start: Starter) -> None:
    operator = start.embedded(WATCH_NAMESPACE="default")
    await operator.says("status written")
    operator.kubectl("create", "namespace", "other")

    operator.apply({**MINE, "metadata": {"name": "elsewhere", "namespace": "other"}})
    operator.apply(MINE)
    await reaches(operator, 3)

    assert operator.kubectl("get", "deployments", "-n", "other", "-o", "name") == ""
    assert operator.stop() == 0
