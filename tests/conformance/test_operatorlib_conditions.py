"""The conditions an operator reports to OLM, on both servers, with OLM's definitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from olm_definitions import olm_definitions

import ctrlruntime as ctrl
from ctrlruntime.api import meta
from ctrlruntime.client.interceptor import intercept
from ctrlruntime.errors import ConfigError, Conflict, NotFound
from ctrlruntime.operatorlib import ConditionNotSetError, OperatorCondition, OperatorConditionFactory
from ctrlruntime.operatorlib.olm import OperatorConditionSpec
from ctrlruntime.testing import eventually


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    cluster.scheme.register(OperatorCondition)
    yield cluster.unfenced_client()
    await cluster.close()


@pytest.fixture(scope="module")
def definitions(server):
    names = server.install_crds(olm_definitions())
    yield
    server.uninstall_crds(names)


@pytest.fixture
async def ours(client, namespace, definitions):
    """The OperatorCondition that OLM would have made."""
    spec = OperatorConditionSpec(service_accounts=["shop"], deployments=["shop-controller-manager"])
    condition = OperatorCondition(metadata=meta.ObjectMeta(name="shop.v1", namespace=namespace), spec=spec)
    return await client.create(condition)


def factory(client, namespace, name="shop.v1"):
    return OperatorConditionFactory(client, environ={"OPERATOR_CONDITION_NAME": name, "POD_NAMESPACE": namespace})


async def test_a_condition_is_reported_and_read(client, namespace, ours):
    upgradeable = factory(client, namespace).condition("Upgradeable")
    with pytest.raises(ConditionNotSetError, match="no condition Upgradeable yet"):
        await upgradeable.get()

    await upgradeable.set(False, reason="Migrating", message="wait for it")

    found = await upgradeable.get()
    assert (found.status, found.reason, found.message) == ("False", "Migrating", "wait for it")
    version = (await client.get(OperatorCondition, ctrl.object_key(ours))).metadata.resource_version
    await upgradeable.set(False, reason="Migrating", message="wait for it")
    assert (await client.get(OperatorCondition, ctrl.object_key(ours))).metadata.resource_version == version
    await upgradeable.set("True", reason="Migrated")
    assert (await upgradeable.get()).status == "True"


async def test_what_olm_wrote_and_other_conditions_stay(client, namespace, ours):
    shop = factory(client, namespace)
    await shop.condition("Upgradeable").set(True, reason="Fine")

    await shop.condition("Backups").set("Unknown", reason="NeverMade")

    stored = await client.get(OperatorCondition, ctrl.object_key(ours))
    assert stored.spec.service_accounts == ["shop"]
    assert stored.spec.deployments == ["shop-controller-manager"]
    assert [(each.type, each.status) for each in stored.spec.conditions] == [
        ("Backups", "Unknown"),
        ("Upgradeable", "True"),
    ]


async def test_when_another_writes_in_between_both_writes_count(client, namespace, ours):
    override = {
        "type": "Upgradeable",
        "status": "True",
        "reason": "Admin",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    refused = []

    async def interrupted(inner, obj, **options):
        if not refused:
            await inner.patch(
                OperatorCondition(metadata=meta.ObjectMeta(name=obj.metadata.name, namespace=obj.metadata.namespace)),
                ctrl.merge_patch({"spec": {"overrides": [override]}}),
            )
        try:
            return await inner.update(obj, **options)
        except Conflict as error:
            refused.append(error)
            raise

    upgradeable = factory(intercept(client, update=interrupted), namespace).condition("Upgradeable")
    await upgradeable.set(False, reason="Migrating")

    stored = await client.get(OperatorCondition, ctrl.object_key(ours))
    assert len(refused) == 1
    assert [each.reason for each in stored.spec.overrides] == ["Admin"]
    assert [each.reason for each in stored.spec.conditions] == ["Migrating"]


async def test_who_is_always_too_late_is_told(client, namespace, ours):
    attempts = []

    async def late(inner, obj, **options):
        attempts.append(obj.metadata.resource_version)
        await inner.patch(
            OperatorCondition(metadata=meta.ObjectMeta(name=obj.metadata.name, namespace=obj.metadata.namespace)),
            ctrl.merge_patch({"metadata": {"annotations": {"attempt": str(len(attempts))}}}),
        )
        return await inner.update(obj, **options)

    with pytest.raises(Conflict):
        await factory(intercept(client, update=late), namespace).condition("Upgradeable").set(True, reason="Fine")

    assert len(attempts) == len(set(attempts)) == 5


async def test_a_reason_that_olm_would_not_take_is_refused(client, namespace, ours):
    upgradeable = factory(client, namespace).condition("Upgradeable")

    with pytest.raises(ValueError, match="it has 0 characters, and may have 1 to 1024"):
        await upgradeable.set(True, reason="")
    with pytest.raises(ValueError, match="'two words': give one word"):
        await upgradeable.set(True, reason="two words")


async def test_an_operator_condition_that_is_gone_is_not_found(client, namespace, definitions):
    gone = factory(client, namespace, "other").condition("Upgradeable")

    with pytest.raises(NotFound):
        await gone.set(True, reason="Fine")
    with pytest.raises(NotFound):
        await gone.get()


async def test_a_manager_that_looks_at_other_namespaces_reports_in_its_own(
    server, client, namespace, new_namespace, ours
):
    far = new_namespace()
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[far]), metrics_bind_address="0")

    async def report():
        await factory(mgr.client, namespace).condition("Upgradeable").set(True, reason="Fine")

    mgr.add(report)
    async with ctrl.running(mgr):

        async def is_reported():
            found = await client.get(OperatorCondition, ctrl.object_key(ours))
            return [(each.type, each.reason) for each in found.spec.conditions] == [("Upgradeable", "Fine")]

        await eventually(is_reported)


async def test_outside_of_olm_it_says_so(client, tmp_path):
    with pytest.raises(ConfigError, match="was not installed by OLM"):
        OperatorConditionFactory(client, environ={})
    with pytest.raises(ConfigError, match="POD_NAMESPACE is not set"):
        OperatorConditionFactory(client, environ={"OPERATOR_CONDITION_NAME": "a"}, namespace_file=Path(tmp_path / "no"))
    (tmp_path / "namespace").write_text("there\n")
    found = OperatorConditionFactory(
        client, environ={"OPERATOR_CONDITION_NAME": "a"}, namespace_file=tmp_path / "namespace"
    )
    assert found.key == ctrl.NamespacedName("there", "a")
