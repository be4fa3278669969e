"""`second_pass`, with reconcilers of ConfigMaps on the embedded server."""

from __future__ import annotations

import asyncio
import itertools

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.controller import as_reconciler
from ctrlruntime.testing import eventually, second_pass

NAMESPACE = "default"


@pytest.fixture
def mgr(embedded) -> ctrl.Manager:
    embedded.reset()
    config = ctrl.get_config(str(embedded.kubeconfig_path))
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[NAMESPACE]), metrics_bind_address="0")


def controller(mgr: ctrl.Manager, reconcile) -> None:
    only = ctrl.predicate.LabelSelectorPredicate("test=second-pass")
    builder = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap, predicates=[only])
    builder.complete(as_reconciler(mgr.client, core.ConfigMap, reconcile))


async def create(mgr: ctrl.Manager, *names: str) -> None:
    for name in names:
        labels = {"test": "second-pass"}
        await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=NAMESPACE, labels=labels)))


async def written(mgr: ctrl.Manager, *names: str) -> None:
    async def all_have_data() -> bool:
        found = [await mgr.api_reader.get(core.ConfigMap, ctrl.NamespacedName(NAMESPACE, name)) for name in names]
        return all(config.data for config in found)

    await eventually(all_have_data, timeout=120)


async def test_second_pass_of_idempotent_reconciler_has_no_writes(mgr):
    async def reconcile(config: core.ConfigMap) -> ctrl.Result | None:
        if not config.data:
            config.data["done"] = "yes"
            await mgr.client.update(config)
        return ctrl.Result(requeue_after=3600)

    controller(mgr, reconcile)
    async with ctrl.running(mgr):
        await create(mgr, "a", "b")
        await written(mgr, "a", "b")

        assert await second_pass(mgr) == []
        assert len(mgr.journal.history("configmap", ctrl.Request(NAMESPACE, "a")).runs) > 1


async def test_second_pass_lists_each_write(mgr):
    runs = itertools.count()
    counter = core.ConfigMap(metadata=meta.ObjectMeta(name="counter", namespace=NAMESPACE))  # without the label

    async def reconcile(config: core.ConfigMap) -> None:
        await mgr.client.patch(counter, ctrl.merge_patch({"data": {config.metadata.name: str(next(runs))}}))

    controller(mgr, reconcile)
    async with ctrl.running(mgr):
        await mgr.client.create(counter)
        await create(mgr, "a", "b")
        await eventually(lambda: len(mgr.journal.keys("configmap")) == 2, timeout=120)

        assert await second_pass(mgr) == [f"patch configmaps {NAMESPACE}/counter"] * 2


async def test_second_pass_that_fails_is_an_error(mgr):
    is_broken = False

    async def reconcile(config: core.ConfigMap) -> None:
        if is_broken:
            raise RuntimeError("the database does not respond")
        if not config.data:
            await mgr.client.patch(config, ctrl.merge_patch({"data": {"done": "yes"}}))

    controller(mgr, reconcile)
    async with ctrl.running(mgr):
        await create(mgr, "a")
        await written(mgr, "a")
        is_broken = True

        with pytest.raises(AssertionError, match=r"configmap default/a: RuntimeError: the database does not respond"):
            await second_pass(mgr)


async def test_second_pass_without_first_one_is_an_error(mgr):
    async def reconcile(config: core.ConfigMap) -> None: ...

    controller(mgr, reconcile)
    async with ctrl.running(mgr):
        with pytest.raises(AssertionError, match="no request was reconciled"):
            await second_pass(mgr)


async def test_second_pass_names_reconciles_that_do_not_end(mgr):
    started, ends = asyncio.Event(), asyncio.Event()

    async def reconcile(config: core.ConfigMap) -> None:
        started.set()
        await ends.wait()

    controller(mgr, reconcile)
    async with ctrl.running(mgr):
        await create(mgr, "a")
        await started.wait()

        with pytest.raises(AssertionError, match=r"did not end within 0\.05 s; configmap: .*in_work=1"):
            await second_pass(mgr, timeout=0.05)

        ends.set()
