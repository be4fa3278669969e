"""The same random writes on both servers leave the same: by several managers, by strategic merge patches, and applied as classes.

Nobody else writes: both servers are without controllers. They are started once for all tests of this file.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from random import Random

import pytest
from apply_sequences import (
    APPLY,
    GROUP,
    KINDS,
    MANAGERS,
    MERGE,
    STRATEGIC,
    Kind,
    Maker,
    Sequence,
    definition,
    merged,
    normal,
    send,
)
from cases import seeds
from strategic_patches import BASES, PatchMaker
from test_builtin_kinds import Client, normalised

from ctrlruntime.api import apps, autoscaling, core, networking, rbac
from ctrlruntime.api.object import Object
from ctrlruntime.apiserver import Options
from ctrlruntime.errors import APIStatusError, TransportError
from ctrlruntime.testing import Environment

LENGTH = 12
WRONG = [0.0, 0.02]
TRIES = 40
CLASSES: dict[str, type[Object]] = {
    "ConfigMap": core.ConfigMap,
    "Deployment": apps.Deployment,
    "Service": core.Service,
    "HorizontalPodAutoscaler": autoscaling.HorizontalPodAutoscaler,
    "Pod": core.Pod,
    "Ingress": networking.Ingress,
    "Role": rbac.Role,
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def embedded_alone() -> Iterator[Environment]:
    with Environment(backend="embedded", crds=definition(), embedded=Options(controllers=[])) as environment:
        yield environment


@pytest.fixture(scope="module")
def real_alone(own_real_server) -> Iterator[Environment]:
    with own_real_server(crds=definition()) as environment:
        yield environment


@pytest.fixture(scope="module")
def pair(embedded_alone, real_alone) -> tuple[Environment, Environment]:
    """Both servers, with the objects that are patched; dry runs leave them as they are."""
    for environment in (embedded_alone, real_alone):
        for name in ("sequences", "patches"):
            environment.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        account = {"metadata": {"name": "default"}}
        environment.connection.request("POST", "/api/v1/namespaces/patches/serviceaccounts", account)
        for api_version, plural, base in BASES:
            body = {**base, "apiVersion": api_version, "metadata": {**base["metadata"], "name": "it"}}
            environment.connection.request("POST", patched(api_version, plural), body)
    return embedded_alone, real_alone


# Writes by several managers: after each the answers, the objects and their owners are equal.


def version(document: dict) -> str:
    return document["metadata"]["resourceVersion"]


@pytest.mark.parametrize("seed", seeds(range(16), 4))
@pytest.mark.parametrize("kind", [*KINDS, *(kind.with_nulls() for kind in KINDS)], ids=lambda kind: kind.label)
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


# Strategic merge patches: the answers are equal, objects and refusals.


def patched(api_version: str, plural: str) -> str:
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
        where = f"{patched(api_version, plural)}/it?dryRun=All&fieldManager=test"
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


# Objects applied as classes by several managers, and as JSON to an object beside it: both objects and their owners are equal.


@pytest.fixture(params=["embedded", "real"])
def server(request) -> Environment:
    return request.getfixturevalue(f"{request.param}_alone")


@pytest.fixture
def namespace(server):
    name = f"typed-{next(_numbers)}"
    server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    server.connection.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return name


def zeroed(random: Random, tree, depth=0):
    """Return the tree with some leaves explicitly empty."""
    if isinstance(tree, dict):
        found = {key: zeroed(random, value, depth + 1) for key, value in tree.items()}
        return {} if depth > 2 and random.random() < 0.05 else found
    if isinstance(tree, list):
        return [] if random.random() < 0.1 else [zeroed(random, each, depth + 1) for each in tree]
    if random.random() < 0.1 and depth > 1:
        return type(tree)()
    return tree


def without_nulls(tree):
    """Return the tree without nulls: None is what a class has for "not set"."""
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    return [without_nulls(each) for each in tree] if isinstance(tree, list) else tree


async def typed(client, kind, body, name, namespace, owner, force, subresource):
    head = {"apiVersion": kind.api_version, "kind": kind.name}
    obj = CLASSES[kind.name].from_dict(
        {**head, **copy.deepcopy(body), "metadata": {**body.get("metadata", {}), "name": name, "namespace": namespace}}
    )
    try:
        if subresource:
            await client.status.apply(obj, field_owner=owner, force=force)
        else:
            await client.apply(obj, field_owner=owner, force=force)
    except APIStatusError as error:
        return error.code, sorted(c.field for c in error.causes)
    return 200, []


def plain(connection, kind, body, name, namespace, owner, force, subresource):
    head = {"apiVersion": kind.api_version, "kind": kind.name}
    tree = {
        **head,
        **copy.deepcopy(body),
        "metadata": {**body.get("metadata", {}), "name": name, "namespace": namespace},
    }
    if subresource:
        tree = {**head, "metadata": {"name": name, "namespace": namespace}, "status": tree.get("status", {})}
    path = f"{kind.path(namespace, kind.api_version)}/{name}{subresource}?fieldManager={owner}&force={'true' if force else 'false'}"
    try:
        connection.request("PATCH", path, tree, content_type=APPLY)
    except APIStatusError as error:
        return error.code, sorted(c.field for c in error.causes)
    return 200, []


def nameless(document, name):
    found = normal(document)
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key != "name"}}


@pytest.mark.parametrize("seed", seeds(range(8), 2))
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in CLASSES], ids=lambda kind: kind.name)
async def test_a_class_applies_what_its_json_applies(server, client, namespace, kind, seed) -> None:
    random = Random(f"{kind.name}-{seed}")
    make = Maker(random)
    for number in range(LENGTH):
        body = kind.make(make)
        if number == 0 or random.random() < 0.3:
            body = merged(kind.base, body)
        if random.random() < 0.5:
            body = zeroed(random, body)
        subresource = ""
        if number and kind.status and random.random() < 0.3:
            body, subresource = {"status": kind.status(make)}, "/status"
        body = without_nulls(body)
        owner, force = random.choice(MANAGERS), random.random() < 0.5
        where = f"{number}: {owner} {force} {subresource} {body}"
        answers = [
            await typed(client, kind, body, "typed", namespace, owner, force, subresource),
            plain(server.connection, kind, body, "plain", namespace, owner, force, subresource),
        ]
        assert answers[0] == answers[1], where
        paths = [f"{kind.path(namespace, kind.api_version)}/{name}" for name in ("typed", "plain")]
        found = [send(server.connection, ("GET", path, None, "")) for path in paths]
        assert found[0][0] == found[1][0], where
        if found[0][0] == 200:
            left, right = (nameless(document, "") for _, document in found)
            assert left == right, where


# Counts that a custom resource shows as its scale: refused alike where they cannot be read.


@pytest.mark.parametrize(
    "part",
    [
        *({"spec": {"replicas": count}} for count in ("x", 1.5, 1.0, [1], True, {"a": 1}, None, -1, 2**40)),
        *({"spec": spec} for spec in ("x", [1], None)),
        *({"status": {"replicas": count}} for count in ("x", 1.5, -1)),
        {"status": "x"},
    ],
    ids=json.dumps,
)
def test_both_servers_judge_counts_alike(pair, part: dict) -> None:
    name, status = "counts", "/status" if "status" in part else ""
    path = f"/apis/{GROUP}/v1/namespaces/patches/gizmos"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": name}}
    answers = []
    for environment in pair:
        connection = environment.connection
        send(connection, ("POST", path, body, ""))
        answers.append(Client(environment).send("PATCH", f"{path}/{name}{status}?dryRun=All", part, MERGE))

    found, expected = (normalised(*answer) for answer in answers)

    assert found == expected
