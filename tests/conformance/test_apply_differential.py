"""The same random writes by several managers on both servers: after each the answers, the objects and their owners are equal."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from apply_sequences import GROUP, KINDS, Kind, Sequence, definition, normal, send

from ctrlruntime.apiserver import Options
from ctrlruntime.testing import Environment

SEEDS = range(8)
LENGTH = 12


@pytest.fixture(scope="module")
def pair(own_real_server) -> Iterator[tuple[Environment, Environment]]:
    """Both servers without controllers: nobody else writes."""
    with (
        Environment(backend="embedded", crds=definition(), embedded=Options(controllers=[])) as embedded,
        own_real_server(crds=definition()) as real,
    ):
        for environment in (embedded, real):
            environment.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": "sequences"}})
        yield embedded, real


def version(document: dict) -> str:
    return document["metadata"]["resourceVersion"]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_both_servers_leave_the_same_objects_and_owners(pair, kind: Kind, seed: int) -> None:
    connections = [environment.connection for environment in pair]
    sequences = [Sequence(kind, seed, "sequences") for _ in pair]
    path = f"{kind.path('sequences', kind.api_version)}/{sequences[0].name}"
    before: list = [None, None]
    for number, steps in enumerate(zip(*(sequence.steps(LENGTH) for sequence in sequences), strict=True)):
        requests = [step(copy.deepcopy(present)) for step, present in zip(steps, before, strict=True)]
        answers = [send(connection, request) for connection, request in zip(connections, requests, strict=True)]
        where = f"step {number}: {requests[1]}"
        codes = [code for code, _ in answers]
        assert codes[0] == codes[1], f"{where}: {answers}"
        if codes[0] != 200:
            assert answers[0] == answers[1], where
        found = [send(connection, ("GET", path, None, "")) for connection in connections]
        if found[1][0] != 200:
            assert found[0] == found[1], where
            return
        after = [document for _, document in found]
        assert normal(after[0]) == normal(after[1]), where
        # kube-apiserver keeps empty maps of a custom resource in its storage that it does not show; they make writes of none.
        if before[0] is not None and not kind.api_version.startswith(GROUP):
            changed = [version(old) != version(new) for old, new in zip(before, after, strict=True)]
            assert changed[0] == changed[1], where
        before = after
