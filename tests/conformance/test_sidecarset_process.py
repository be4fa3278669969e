"""`python -m examples.sidecarset` as a process, driven by kubectl as a user would, on both servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from example_process import Operator, Starter, needs_kubectl
from forked import Forks

from ctrlruntime.testing import eventually

HASH = "chinalhr.github.io/sidecar-hash"

pytestmark = needs_kubectl


def sidecar_set(image: str = "busybox:1", **spec: object) -> dict[str, object]:
    containers = [{"name": "logs", "image": image, "command": ["sleep", "1d"]}]
    return {
        "apiVersion": "apps.chinalhr.github.io/v1alpha1",
        "kind": "SidecarSet",
        "metadata": {"name": "mine"},
        "spec": {"selector": {"matchLabels": {"sidecars": "mine"}}, "containers": containers} | spec,
    }


def pod(name: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"sidecars": "mine"}},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    }


@pytest.fixture
def start(example_forks: Forks, tmp_path: Path) -> Iterator[Starter]:
    """Starts the example; none outlives the test."""
    starter = Starter(example_forks, "examples.sidecarset.__main__", tmp_path)
    yield starter
    starter.end()


@pytest.fixture(params=["embedded", "real"])
async def operator(request: pytest.FixtureRequest, start: Starter) -> Operator:
    operator = start.on(request.param, request, real=("--webhooks", "development"))
    await operator.says("starting workers")
    await eventually(lambda: "spec.selector" in operator.refusal(sidecar_set(selector={})), interval=0.2)
    return operator


def injected(operator: Operator, name: str) -> dict[str, object] | None:
    """Return the container and the hashes a Pod of that name would get now; None when it would get none."""
    dry = operator.kubectl("create", "-f", "-", "--dry-run=server", "-o", "json", stdin=json.dumps(pod(name)))
    made = json.loads(dry)
    if HASH not in made["metadata"].get("annotations", {}):
        return None
    container = made["spec"]["containers"][1]
    return {
        "image": container["image"],
        "env": container["env"],
        "hashes": json.loads(made["metadata"]["annotations"][HASH]),
    }


def hash_of_the_set(operator: Operator) -> str:
    stored = json.loads(operator.kubectl("get", "sidecarset", "mine", "-o", "json"))
    return stored["metadata"]["annotations"][HASH]


async def counts(operator: Operator, *wanted: int) -> None:
    await operator.shows(lambda row: row == ["mine", *map(str, wanted)], "sidecarset")  # it looks again every 5 s


async def test_the_example_does_what_its_tutorial_says(operator: Operator) -> None:
    operator.apply(sidecar_set())
    found = await eventually(lambda: injected(operator, "one"), interval=0.2)
    first = hash_of_the_set(operator)
    assert found == {
        "image": "busybox:1",
        "env": [{"name": "IS_INJECTED", "value": "true"}],
        "hashes": {"mine": first},
    }
    for name in ("one", "two"):
        operator.apply(pod(name))
    await counts(operator, 2, 2, 2)
    assert operator.table("sidecarset")[0] == ["NAME", "MATCHED", "UPDATED", "READY"]

    operator.apply(sidecar_set("busybox:2"))
    assert hash_of_the_set(operator) != first
    await counts(operator, 2, 0, 2)

    await eventually(lambda: (injected(operator, "three") or {}).get("image") == "busybox:2", interval=0.2)
    operator.apply(pod("three"))
    await counts(operator, 3, 1, 3)

    operator.kubectl("delete", "pod", "one", "-n", "default", "--force", "--grace-period", "0")
    await counts(operator, 2, 1, 2)

    required = 'The SidecarSet "mine" is invalid: spec.selector: Required value: '
    unsaid = sidecar_set()
    del unsaid["spec"]["selector"]
    unsaid["metadata"] = {"name": "mine"}
    assert operator.refusal(sidecar_set(selector={})).startswith(required)
    assert operator.refusal(unsaid).startswith(required)

    operator.kubectl("delete", "pod", "two", "three", "-n", "default", "--force", "--grace-period", "0")
    operator.kubectl("delete", "sidecarset", "mine")
    operator.assert_a_clean_end()


async def test_the_samples_show_pods_with_their_sidecar(start: Starter) -> None:
    operator = start.embedded()

    await operator.says("matched=2 updated=2 ready=2")

    pods = json.loads(operator.kubectl("get", "pods", "-n", "default", "-o", "json"))["items"]
    assert [[one["name"] for one in pod["spec"]["containers"]] for pod in pods] == [["web", "logs"]] * 2
    operator.assert_a_clean_end()
