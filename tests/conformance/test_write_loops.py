"""Writes that lead nowhere are named, on both servers: by what the server answers, and who owned the fields in between."""

from __future__ import annotations

import asyncio

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.log.output import sink
from ctrlruntime.rest.fence import Actor, acting


@pytest.fixture
def warned():
    class Lines:
        threshold = -100

        def write(self, level, name, event, fields):
            if event == "write loop":
                lines.append(fields)

    lines, before = [], sink.output
    sink.output = Lines()
    yield lines
    sink.output = before


@pytest.fixture
def mgr(server, namespace):
    config = ctrl.get_config(str(server.kubeconfig_path))
    return ctrl.new_manager(config, cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0")


def service(namespace, **spec):
    ports = [core.ServicePort(name="http", port=80)]
    return core.Service(
        metadata=meta.ObjectMeta(name="web", namespace=namespace), spec=core.ServiceSpec(ports=ports, **spec)
    )


async def test_an_update_repeated_is_named_after_three_and_an_apply_of_the_same_is_none(mgr, namespace, warned):
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        with acting(Actor("web")):
            for _ in range(6):
                await mgr.client.apply(service(namespace, selector={"app": "web"}))
            assert warned == []

            for _ in range(5):
                held = await mgr.client.get(core.Service, ctrl.NamespacedName(namespace, "web"))
                held.spec.selector = {"app": "web"}
                await mgr.client.update(held)

    (line,) = warned
    assert (line["controller"], line["kind"], line["reason"]) == ("web", "Service", "no_op")
    assert line["object"] == f"{namespace}/web"
    assert mgr.metrics.client().loops == {("web", "Service", "no_op"): 1}
    assert "ctrlruntime_client_write_loops_total{" in mgr.metrics.render()[0].decode()


async def test_a_field_two_managers_want_otherwise_is_named_with_the_other(mgr, namespace, warned):
    key = ctrl.NamespacedName(namespace, "web")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        with acting(Actor("web")):
            await mgr.client.create(service(namespace, session_affinity="None"))
        for _ in range(4):
            with acting(Actor("sticky")):
                other = await mgr.client.get(core.Service, key)
                other.spec.session_affinity = "ClientIP"
                await mgr.client.update(other)
            with acting(Actor("web")):
                own = await mgr.client.get(core.Service, key)
                assert own.spec.session_affinity == "ClientIP"
                patch = ctrl.merge_patch({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": None}})
                await mgr.client.patch(own, patch)

    found = {line["controller"]: line for line in warned}
    assert set(found) == {"web", "sticky"}
    assert found["web"]["reason"] == "contested"
    assert "spec.sessionAffinity" in found["web"]["fields"].split(", ")
    assert found["web"]["otherManager"] == "sticky"
    assert found["sticky"]["otherManager"] == "web"


async def test_a_controller_that_takes_back_its_own_writes_is_named(mgr, namespace, warned):
    key = ctrl.NamespacedName(namespace, "flag")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        with acting(Actor("flags")):
            await mgr.client.create(core.ConfigMap(metadata=meta.ObjectMeta(name="flag", namespace=namespace)))
            for number in range(6):
                held = await mgr.client.get(core.ConfigMap, key)
                held.data = {"mode": "ab"[number % 2], "same": "x"}
                await mgr.client.update(held)

    (line,) = warned
    assert (line["reason"], line["fields"], line["object"]) == ("reverted", "data.mode", f"{namespace}/flag")


async def test_an_ordinary_reconciler_with_defaults_filled_by_the_server_settles_without_a_warning(
    mgr, namespace, warned
):
    key = ctrl.NamespacedName(namespace, "web")

    def wanted(found):
        found.spec.ports = found.spec.ports or [core.ServicePort(name="http", port=80)]
        found.spec.selector = {"app": "web"}

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        with acting(Actor("web")):
            results = [(await ctrl.create_or_update(mgr.client, core.Service, key, wanted))[1] for _ in range(10)]

    assert [str(result) for result in results] == ["created", *["unchanged"] * 9]
    assert warned == []
