"""An operator that may do what its generated roles say, and no more, does its work: the Memcached example on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import ctrlruntime as ctrl
from ctrlruntime.api import apps, coordination
from ctrlruntime.errors import Forbidden
from ctrlruntime.manager.manager import running
from ctrlruntime.rest.config import Impersonation
from ctrlruntime.testing import Environment, eventually
from examples.memcached.api import Memcached
from examples.memcached.controller import ELECTION, setup

CONFIG = Path(__file__).parents[2] / "examples" / "memcached" / "config"
USER = "memcached-operator"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
async def admin(server: Environment) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(Memcached))
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture
async def config(server: Environment, admin: ctrl.Client, namespace: str) -> AsyncIterator[ctrl.Config]:
    """The configuration of a user who has the roles of the example, the namespaced one in `namespace`."""
    await ctrl.install_crds(admin, CONFIG / "crd")
    created = []
    for role in yaml.safe_load_all((CONFIG / "rbac" / "role.yaml").read_text()):
        metadata = {"name": role["metadata"]["name"], **({"namespace": namespace} if role["kind"] == "Role" else {})}
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": f"{role['kind']}Binding",
            "metadata": metadata,
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": USER}],
            "roleRef": {"apiGroup": RBAC, "kind": role["kind"], "name": metadata["name"]},
        }
        for document in ({**role, "metadata": metadata}, binding):
            kind = ctrl.Unstructured.of(document["apiVersion"], document["kind"])
            created.append(await admin.create(kind.from_wire(document)))
    full = ctrl.get_config(str(server.kubeconfig_path))
    yield replace(full, impersonate=Impersonation(user=USER))
    for obj in created:
        await admin.delete(obj)


async def test_the_operator_works_with_its_roles_alone(admin, config, namespace):
    mgr = ctrl.new_manager(
        config,
        scheme=ctrl.Scheme(Memcached),
        metrics_bind_address="0",
        leader_election=replace(ELECTION, namespace=namespace),
    )
    setup(mgr)
    key = ctrl.NamespacedName(namespace, "mine")

    async def reaches(size: int) -> None:
        async def is_there() -> bool:
            deployment = await admin.find(apps.Deployment, key)
            nodes = (await admin.get(Memcached, key)).status.nodes
            return deployment is not None and deployment.spec.replicas == size and len(nodes) == size

        await eventually(is_there, timeout=30)

    async with running(mgr):
        await admin.create(Memcached(metadata={"name": "mine", "namespace": namespace}, spec={"size": 1}))
        await reaches(1)
        memcached = await admin.get(Memcached, key)
        memcached.spec.size = 2
        await admin.update(memcached)
        await reaches(2)
    lease = await admin.get(coordination.Lease, ctrl.NamespacedName(namespace, ELECTION.id))
    await admin.delete(memcached)

    assert lease.spec.renew_time is not None
    assert not lease.spec.holder_identity  # given back


async def test_the_user_may_do_nothing_else(config, namespace):
    cluster = ctrl.Cluster(config, scheme=ctrl.Scheme(Memcached))
    client = cluster.unfenced_client()
    try:
        with pytest.raises(Forbidden, match='cannot create resource "memcacheds"'):
            await client.create(Memcached(metadata={"name": "mine", "namespace": namespace}, spec={"size": 1}))
        with pytest.raises(Forbidden, match='cannot list resource "leases"'):
            await client.list(coordination.Lease, namespace=namespace)
    finally:
        await cluster.close()
