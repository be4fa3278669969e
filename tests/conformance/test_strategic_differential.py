"""The same random strategic merge patches on both servers: the answers are equal, objects and refusals."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from random import Random

import pytest
from apply_sequences import STRATEGIC, normal, send
from strategic_patches import BASES, PatchMaker

from ctrlruntime.apiserver import Options
from ctrlruntime.errors import TransportError
from ctrlruntime.testing import Environment

WRONG = [0.0, 0.02]
TRIES = 40


@pytest.fixture(scope="module")
def pair(own_real_server) -> Iterator[tuple[Environment, Environment]]:
    """Both servers without controllers, and with the objects that are patched; dry runs leave them as they are."""
    with (
        Environment(backend="embedded", embedded=Options(controllers=[])) as embedded,
        own_real_server() as real,
    ):
        for environment in (embedded, real):
            environment.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": "patches"}})
            account = {"metadata": {"name": "default"}}
            environment.connection.request("POST", "/api/v1/namespaces/patches/serviceaccounts", account)
            for api_version, plural, base in BASES:
                body = {**base, "apiVersion": api_version, "metadata": {**base["metadata"], "name": "it"}}
                environment.connection.request("POST", path(api_version, plural), body)
        yield embedded, real


def path(api_version: str, plural: str) -> str:
    return f"/{'apis' if '/' in api_version else 'api'}/{api_version}/namespaces/patches/{plural}"


def answer(server: Environment, where: str, patch: dict) -> tuple[int, dict]:
    try:
        code, found = send(server.connection, ("PATCH", where, copy.deepcopy(patch), STRATEGIC))
    except TransportError as error:  # kube-apiserver panics
        return 0, {"error": str(error)}
    return code, normal(found) if code == 200 else found


def differences(pair, number: int, seeds: range) -> Iterator[str]:
    """Yield what the servers answered differently."""
    api_version, plural, base = BASES[number]
    for seed in seeds:
        maker = PatchMaker(base, Random(f"{plural}-{seed}"), wrong=WRONG[seed % len(WRONG)])
        patch = maker.patch()
        where = f"{path(api_version, plural)}/it?dryRun=All&fieldManager=test"
        left, right = (answer(each, where, patch) for each in pair)
        # Go walks a patch in random order: what it answers to one with two mistakes, or to one that adds and deletes the same, varies.
        if left != right and not any(left == answer(pair[1], where, patch) for _ in range(TRIES)):
            yield f"{plural} {seed}: {json.dumps(patch)}\nembedded: {left}\nreal:     {right}"


@pytest.mark.parametrize("number", range(len(BASES)), ids=[plural for _, plural, _ in BASES])
def test_both_servers_answer_a_patch_alike(pair, number: int) -> None:
    assert list(differences(pair, number, range(60))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("number", range(len(BASES)), ids=[plural for _, plural, _ in BASES])
def test_both_servers_answer_many_patches_alike(pair, number: int) -> None:
    assert list(differences(pair, number, range(1000, 1800))) == []
