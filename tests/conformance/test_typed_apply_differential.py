"""Random objects applied as classes by several managers, and as JSON to an object beside it: both objects and their owners are equal."""

from __future__ import annotations

import copy
import itertools
from random import Random

import pytest
from apply_sequences import APPLY, KINDS, MANAGERS, Maker, merged, normal, send

from ctrlruntime.api import apps, autoscaling, core, networking, rbac
from ctrlruntime.api.object import Object
from ctrlruntime.apiserver import Options
from ctrlruntime.client import APIClient
from ctrlruntime.errors import APIStatusError
from ctrlruntime.rest import RESTMapper, get_config
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import Environment

CLASSES: dict[str, type[Object]] = {
    "ConfigMap": core.ConfigMap,
    "Deployment": apps.Deployment,
    "Service": core.Service,
    "HorizontalPodAutoscaler": autoscaling.HorizontalPodAutoscaler,
    "Pod": core.Pod,
    "Ingress": networking.Ingress,
    "Role": rbac.Role,
}
LENGTH = 12
_numbers = itertools.count()


@pytest.fixture(scope="module", params=["embedded", "real"])
def server(request):
    """A server without controllers: nobody else writes."""
    if request.param == "real":
        environment = request.getfixturevalue("own_real_server")()
    else:
        environment = Environment(backend="embedded", embedded=Options(controllers=[]))
    with environment:
        yield environment


@pytest.fixture
def namespace(server):
    name = f"typed-{next(_numbers)}"
    server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    server.connection.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    return name


@pytest.fixture
async def client(server):
    transport = Transport(get_config(str(server.kubeconfig_path)))
    yield APIClient(transport, RESTMapper(transport.fetch), Scheme())
    await transport.close()


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


@pytest.mark.parametrize("seed", range(4))
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
