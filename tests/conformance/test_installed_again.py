"""A definition that is installed while the old one of its name is still being deleted, on both servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from loose_definitions import loose_definition

import ctrlruntime as ctrl
from ctrlruntime.errors import TransportError
from ctrlruntime.install import CustomResourceDefinition, InstallTimeoutError

HOLD = "again-tests.example.com/hold"


class Crank(ctrl.Object, group="again-tests.example.com", version="v1"):
    turns: int = 0


CRANKS = loose_definition(Crank)
KEY = ctrl.NamespacedName("", CRANKS["metadata"]["name"])


@pytest.fixture
async def client(server) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def going(client):
    """A definition that is being deleted and is held by a finalizer; yields its uid."""
    held = {**CRANKS, "metadata": {**CRANKS["metadata"], "finalizers": [HOLD]}}
    await ctrl.install_crds(client, held)
    present = await client.get(CustomResourceDefinition, KEY)
    await client.delete(present)
    yield present.metadata.uid
    await release(client)
    await ctrl.uninstall_crds(client, CRANKS)


async def release(client):
    if (present := await client.get_or_none(CustomResourceDefinition, KEY)) is not None:
        await client.patch(present, ctrl.merge_patch({"metadata": {"finalizers": None}}))


async def test_it_is_the_new_one_that_is_there_afterwards(client, going):
    asked = 0

    async def sleep(seconds):
        nonlocal asked
        asked += 1
        if asked == 2:
            await release(client)
        await asyncio.sleep(seconds)

    await ctrl.install_crds(client, CRANKS, sleep=sleep)

    present = await client.get(CustomResourceDefinition, KEY)
    assert present.metadata.uid != going
    assert present.metadata.deletion_timestamp is None


async def test_one_that_does_not_go_is_an_error_that_says_so(client, going):
    with pytest.raises(InstallTimeoutError, match=r"still being deleted after 0\.2 s"):
        await ctrl.install_crds(client, CRANKS, wait=0.2)

    assert (await client.get(CustomResourceDefinition, KEY)).metadata.uid == going


async def test_the_environment_waits_as_well(server, client, going):
    with pytest.raises(TransportError, match=rf"still being deleted after 0\.2 s; it is held by .*{HOLD}"):
        await asyncio.to_thread(server.install_crds, [CRANKS], timeout=0.2)

    installing = asyncio.create_task(asyncio.to_thread(server.install_crds, [CRANKS]))
    await release(client)
    await installing

    assert (await client.get(CustomResourceDefinition, KEY)).metadata.uid != going
