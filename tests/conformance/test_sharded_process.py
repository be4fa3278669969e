"""`python -m examples.memcached --sharding` as two processes that share the objects, on both servers."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path

import pytest
from example_process import ROOT, Operator
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import apps
from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.api.meta.v1 import ObjectMeta
from ctrlruntime.testing import eventually
from examples.memcached.api import Memcached, MemcachedSpec
from examples.memcached.controller import ELECTION

OBJECTS = 12


@pytest.fixture
def start(server, namespace, example_forks, tmp_path: Path):
    """Starts a replica of this name, in the namespace of the test."""
    server.install_crds([ROOT / "examples/memcached/config/crd/bases"])
    started: list[Operator] = []

    def start(name: str) -> Operator:
        kubeconfig = tmp_path / name
        shutil.copy(server.kubeconfig_path, kubeconfig)
        flags = ["--kubeconfig", str(kubeconfig), "--sharding", "--leader-election-namespace", namespace]
        environ = {"POD_NAME": name, "WATCH_NAMESPACE": namespace}
        started.append(Operator(example_forks, "examples.memcached.__main__", kubeconfig, *flags, environ=environ))
        return started[-1]

    yield start
    for operator in started:
        operator.stop(signal.SIGKILL)


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(Memcached))
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def given_back(client, namespace) -> None:
    """The Lease as the last replica leaves it: the first ones do not wait for the time of a Lease."""
    await client.create(Lease(metadata=ObjectMeta(name=ELECTION.id, namespace=namespace)))


def slots(operator: Operator) -> int:
    """Return the share that the log of a replica names last."""
    found = re.findall(r"slots changed.*?slots=(\d+) of=256", operator.log.read_text())
    return int(found[-1]) if found else 0


async def resize(client, namespace, size: int) -> None:
    """Give all objects a size, and wait until each Deployment has it."""
    for number in range(OBJECTS):
        name = f"m-{number}"
        found = await client.get_or_none(Memcached, ctrl.NamespacedName(namespace, name))
        if found is None:
            metadata = ObjectMeta(name=name, namespace=namespace)
            await client.create(Memcached(metadata=metadata, spec=MemcachedSpec(size=size)))
        else:
            await client.patch(found, ctrl.merge_patch({"spec": {"size": size}}))

    async def is_reached() -> bool:
        deployments = await client.list(apps.Deployment, namespace=namespace)
        return [each.spec.replicas for each in deployments] == [size] * OBJECTS

    await eventually(is_reached, timeout=LONGEST_WAIT)


@pytest.mark.usefixtures("given_back")
async def test_two_processes_share_the_objects_and_the_last_one_has_them_all(start, client, namespace):
    first, second = start("first"), start("second")
    await eventually(
        lambda: slots(first) + slots(second) == 256 and slots(first) in range(100, 157), timeout=LONGEST_WAIT
    )
    await resize(client, namespace, 1)

    first.assert_a_clean_end()
    assert slots(first) == 0
    await eventually(lambda: slots(second) == 256, timeout=LONGEST_WAIT)
    await resize(client, namespace, 2)

    second.assert_a_clean_end()
    leases = await client.list(Lease, namespace=namespace)
    assert [(lease.metadata.name, lease.spec.holder_identity) for lease in leases] == [(ELECTION.id, None)]


@pytest.mark.thorough
@pytest.mark.usefixtures("given_back")
async def test_the_objects_of_a_killed_process_go_to_the_other_one(start, client, namespace):
    first, second = start("first"), start("second")
    await eventually(
        lambda: slots(first) + slots(second) == 256 and slots(first) in range(100, 157), timeout=LONGEST_WAIT
    )
    first.stop(signal.SIGKILL)
    await resize(client, namespace, 1)

    assert slots(second) == 256
    second.assert_a_clean_end()
