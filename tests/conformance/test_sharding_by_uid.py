"""Replicas that divide objects by uid, on servers that select the objects (feature gate ShardedListAndWatch) and on those that do not."""

from __future__ import annotations

import pytest
from servers import LONGEST_WAIT
from test_sharding import LABELS, OBJECTS, create, owners, starting

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.apiserver import Options
from ctrlruntime.client import APIClient
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.scheme import Scheme
from ctrlruntime.testing import Environment, eventually

GATE = "ShardedListAndWatch"
NAMES = {f"c-{number}" for number in range(OBJECTS)}


@pytest.fixture(scope="module", params=["embedded", "real"])
def selecting(request):
    """Each of the two servers, with the feature gate."""
    if request.param == "embedded":
        environment = Environment(backend="embedded", embedded=Options(controllers=[], feature_gates={GATE: True}))
    else:
        environment = request.getfixturevalue("own_real_server")(apiserver_args=[f"--feature-gates={GATE}=true"])
    with environment as server:
        yield server


def samples(mgr: ctrl.Manager, name: str) -> list[float]:
    lines = mgr.metrics.render("")[0].decode().splitlines()
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"ctrlruntime_shard_{name}{{")]


async def deleted_and_created_again(client, namespace, replicas) -> None:
    """Each deletion is reconciled by the replica that had the object, and each new object by one replica."""
    before = await client.list(core.ConfigMap, namespace=namespace, labels=LABELS)
    for each in before:
        await client.delete(each)
    await eventually(lambda: {name for each in replicas for name in each.deleted} == NAMES, timeout=LONGEST_WAIT)
    for each in before:
        names = [replica.name for replica in replicas if replica.deleted[each.metadata.name]]
        assert names == [each.data["owner"]]
    for replica in replicas:
        (shard,) = (controller.shard for controller in replica.mgr._controllers)
        await eventually(lambda: not shard._deleted, timeout=LONGEST_WAIT)  # noqa: B023

    await create(client, namespace)

    async def all_have_an_owner() -> bool:
        return "" not in await owners(client, namespace)

    await eventually(all_have_an_owner, timeout=LONGEST_WAIT)


async def both_have_a_share(client, namespace) -> None:
    async def divided() -> bool:
        found = await owners(client, namespace)
        return set(found) == {"first", "second"} and min(found.values()) > OBJECTS / 5

    await eventually(divided, timeout=LONGEST_WAIT)


async def test_a_server_with_the_gate_sends_each_replica_its_own_objects(selecting):
    namespace = selecting.create_namespace()
    transport = Transport(ctrl.get_config(str(selecting.kubeconfig_path)))
    client = APIClient(transport, RESTMapper(transport.fetch), Scheme())
    await create(client, namespace)
    async with starting(selecting, namespace, "uid") as start:
        both = start("first"), start("second")
        await both_have_a_share(client, namespace)
        await deleted_and_created_again(client, namespace, both)

        for replica in both:
            assert samples(replica.mgr, "filtered_objects_total") == [0]
            assert 1 <= sum(samples(replica.mgr, "server_ranges")) <= 32
    await transport.close()


async def test_a_server_without_the_gate_sends_all_objects(server, client, namespace):
    await create(client, namespace)
    async with starting(server, namespace, "uid") as start:
        both = start("first"), start("second")
        await both_have_a_share(client, namespace)
        await deleted_and_created_again(client, namespace, both)

        for replica in both:
            (filtered,) = samples(replica.mgr, "filtered_objects_total")
            assert filtered > 0
