"""An operator that may do what its generated roles say, and no more, does its work, on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import ctrlruntime as ctrl
from ctrlruntime.api import apps, coordination, core
from ctrlruntime.errors import Forbidden
from ctrlruntime.manager.manager import running
from ctrlruntime.markers import rbac_rules
from ctrlruntime.project import manifests
from ctrlruntime.project.package import Package
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
async def grant(
    server: Environment, admin: ctrl.Client, namespace: str
) -> AsyncIterator[Callable[[Iterable[dict[str, Any]]], Awaitable[ctrl.Config]]]:
    """Give roles to a user, those of no namespace in `namespace`; returns the configuration of this user."""
    created: list[ctrl.Object] = []

    async def granted(roles: Iterable[dict[str, Any]]) -> ctrl.Config:
        for role in roles:
            metadata = {
                "name": role["metadata"]["name"],
                **({"namespace": namespace} if role["kind"] == "Role" else {}),
            }
            binding = {
                "apiVersion": f"{RBAC}/v1",
                "kind": f"{role['kind']}Binding",
                "metadata": metadata,
                "subjects": [{"apiGroup": RBAC, "kind": "User", "name": USER}],
                "roleRef": {"apiGroup": RBAC, "kind": role["kind"], "name": metadata["name"]},
            }
            for document in ({**role, "metadata": metadata}, binding):
                kind = ctrl.Unstructured.of(document["apiVersion"], document["kind"])
                created.append(await admin.create(kind.from_dict(document)))
        return replace(ctrl.get_config(str(server.kubeconfig_path)), impersonate=Impersonation(user=USER))

    yield granted
    for obj in created:
        await admin.delete(obj)


@pytest.fixture
async def config(admin, grant) -> ctrl.Config:
    """The configuration of a user who has the roles of the example."""
    await ctrl.install_crds(admin, CONFIG / "crd")
    return await grant(yaml.safe_load_all((CONFIG / "rbac" / "role.yaml").read_text()))


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
            deployment = await admin.get_or_none(apps.Deployment, key)
            nodes = (await admin.get(Memcached, key)).status.nodes
            return deployment is not None and deployment.spec.replicas == size and len(nodes) == size

        await eventually(is_there)

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


@ctrl.rbac(groups="", resources="secrets", verbs="get", resource_names="licence")
class Keeper:
    """Copies a Secret, which its rule names, into one that each ConfigMap of one name owns."""

    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        owner = await self.client.get(core.ConfigMap, request)
        licence = await self.client.api_reader.get(core.Secret, ctrl.NamespacedName(request.namespace, "licence"))

        def shape(secret: core.Secret) -> None:
            secret.data = licence.data
            ctrl.set_controller_reference(owner, secret)

        await ctrl.create_or_update(self.client, core.Secret, request, shape)

    @classmethod
    def setup(cls, mgr: ctrl.Manager) -> None:
        builder = (
            ctrl.new_controller_managed_by(mgr)
            .for_(core.ConfigMap, predicates=[lambda obj: obj.metadata.name == "kept"])
            .owns(core.Secret)
        )
        builder.complete(cls(mgr.client))


async def test_a_rule_for_one_secret_leaves_the_owned_ones_writable(admin, grant, namespace):
    package = Package(name="keeper", modules=(), kinds=(), rules=rbac_rules(Keeper), setup=Keeper.setup, election=None)
    mgr = ctrl.new_manager(await grant(manifests(package).roles), metrics_bind_address="0")
    Keeper.setup(mgr)
    here = {"namespace": namespace}
    await admin.create(core.Secret(metadata={"name": "licence", **here}, data={"a": b"b"}))
    await admin.create(core.ConfigMap(metadata={"name": "kept", **here}))

    async def is_copied() -> bool:
        copied = await admin.get_or_none(core.Secret, ctrl.NamespacedName(namespace, "kept"))
        return copied is not None and copied.data == {"a": b"b"}

    async with running(mgr):
        await eventually(is_copied)
