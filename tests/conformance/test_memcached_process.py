"""`python -m examples.memcached` as a process, driven by kubectl as a user would, on both servers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_process import Operator, Starter, needs_kubectl
from forked import Forks

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
    starter = Starter(example_forks, "examples.memcached.__main__", tmp_path)
    yield starter
    starter.end()


@pytest.fixture(params=["embedded", "real"])
def operator(request: pytest.FixtureRequest, start: Starter) -> Operator:
    return start.on(request.param, request)


async def reaches(operator: Operator, size: int) -> None:
    """Wait for the ready replicas of the Deployment, and for the names in the status of the Memcached."""
    named = ("-n", "default", "--field-selector", "metadata.name=mine")
    await operator.shows(lambda row: row[1] == f"{size}/{size}", "deployments", *named)
    names = ("-o", "custom-columns=NODES:.status.nodes[*]")
    await operator.shows(lambda row: row[0].count(",") == size - 1, "memcacheds.cache.example.com", *named, *names)


async def test_the_example_does_what_its_readme_says(operator: Operator) -> None:
    await operator.says("starting workers")
    operator.kubectl("get", "crd", "memcacheds.cache.example.com")

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
    await operator.are_gone("default", "mine", "memcacheds", "deployments", "replicasets", "pods")

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
