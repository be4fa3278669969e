"""CustomResourceDefinitions and their objects: each case is answered as kube-apiserver 1.36.1 once did, by itself with `--all`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crd_cases import Client, load, run

CASES = load()


@pytest.fixture(scope="session", params=["embedded", pytest.param("real", marks=pytest.mark.thorough)])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    client = Client(request.getfixturevalue(f"{request.param}_server"))
    yield client
    client.close()


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_a_definition_and_its_objects_are_answered_as_recorded(client: Client, case) -> None:
    assert run(client, case) == case["answers"]
