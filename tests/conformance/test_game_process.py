"""`python -m examples.game` as a process, driven by kubectl as a user would, on both servers, built both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_process import Operator, Starter, needs_kubectl
from forked import Forks

from ctrlruntime.testing import eventually

KIND = "games.myapp.qingwave.github.io"
HOST = "mine.default.mygame.io"

pytestmark = needs_kubectl


def game(**spec: object) -> dict[str, object]:
    return {
        "apiVersion": "myapp.qingwave.github.io/v1",
        "kind": "Game",
        "metadata": {"name": "mine", "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture
def start(example_forks: Forks, tmp_path: Path) -> Iterator[Starter]:
    """Starts the example; none outlives the test."""
    starter = Starter(example_forks, "examples.game.__main__", tmp_path)
    yield starter
    starter.end()


@pytest.fixture(params=["embedded", "embedded, the long way", "real"])
async def operator(request: pytest.FixtureRequest, start: Starter) -> Operator:
    backend, _, long_way = request.param.partition(", ")
    flags = ["--long-way"] if long_way else []
    operator = start.on(backend, request, *flags, real=("--webhooks", "development"))
    await operator.says("starting workers")
    await eventually(lambda: "must not contain" in operator.refusal(game(host="*.io")), interval=0.2)
    return operator


async def runs(operator: Operator, count: int) -> None:
    wanted = ["mine", "Running", HOST, *[str(count)] * 3]
    await operator.shows(lambda row: row[:-1] == wanted, KIND, "mine", "-n", "default")  # without its age


async def test_the_example_does_what_its_tutorial_says(operator: Operator) -> None:
    operator.apply(game(replicas=1))
    await runs(operator, 1)

    header, _ = operator.table("games.myapp.qingwave.github.io", "mine", "-n", "default")
    assert header == ["NAME", "PHASE", "HOST", "DESIRED", "CURRENT", "READY", "AGE"]
    stored = json.loads(
        operator.kubectl("get", "games.myapp.qingwave.github.io", "mine", "-n", "default", "-o", "json")
    )
    assert stored["spec"] == {"replicas": 1, "image": "alexwhen/docker-2048", "host": HOST}
    children = operator.kubectl("get", "deployment,service,ingress", "mine", "-n", "default", "-o", "name").split()
    assert children == ["deployment.apps/mine", "service/mine", "ingress.networking.k8s.io/mine"]

    operator.kubectl("scale", KIND, "mine", "--replicas", "2", "-n", "default")
    await runs(operator, 2)

    operator.kubectl("delete", "deployment", "mine", "-n", "default")
    await runs(operator, 2)

    edit = {"spec": {"replicas": 4}}
    operator.kubectl("patch", "deployment", "mine", "-n", "default", "--type", "merge", "-p", json.dumps(edit))
    await operator.shows(lambda row: row[1] == "2/2", "deployment", "mine", "-n", "default")
    await runs(operator, 2)

    assert operator.refusal({**game(host="a*.io"), "metadata": {"name": "other", "namespace": "default"}}) == (
        'The Game "other" is invalid: spec.host: Invalid value: "a*.io": must not contain *\n'
    )

    operator.kubectl("delete", "games.myapp.qingwave.github.io", "mine", "-n", "default")
    kinds = ("games", "deployments", "services", "ingresses", "replicasets", "pods")
    await operator.are_gone("default", "mine", *kinds)
    operator.assert_a_clean_end()


async def test_the_sample_runs_and_nothing_is_left_of_the_webhooks(start: Starter) -> None:
    operator = start.embedded()

    await operator.says("phase=Running ready=2")

    configurations = operator.table("validatingwebhookconfigurations,mutatingwebhookconfigurations", "-o", "name")
    assert len(configurations) == 2
    operator.assert_a_clean_end()


async def test_without_webhooks_the_operator_fills_in_for_itself(start: Starter) -> None:
    operator = start.embedded("--webhooks", "off")

    await operator.says("phase=Running ready=2")

    image = "jsonpath={.spec.template.spec.containers[0].image}"
    assert operator.kubectl("get", "deployment", "game-sample", "-n", "default", "-o", image) == "alexwhen/docker-2048"
    assert "webhooks are off" in operator.log.read_text()
    operator.assert_a_clean_end()
