"""A hub and two other clusters, each an embedded server."""

from __future__ import annotations

import contextlib

import pytest

import ctrlruntime as ctrl
from ctrlruntime.testing import Environment


@pytest.fixture(scope="package")
def servers():
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Environment(backend="embedded")) for _ in range(3)]


@pytest.fixture
def namespaces(servers):
    """A namespace of the same name in each cluster."""
    name = servers[0].create_namespace()
    for server in servers[1:]:
        server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield name
    for server in servers:
        server.delete_namespace(name)


@pytest.fixture
def mgr(servers):
    return ctrl.new_manager(ctrl.get_config(str(servers[0].kubeconfig_path)), metrics_bind_address="0")


@pytest.fixture
async def clients(servers):
    found = [
        ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), name=f"c{n}") for n, server in enumerate(servers)
    ]
    yield [cluster.unfenced_client() for cluster in found]
    for cluster in found:
        await cluster.close()
