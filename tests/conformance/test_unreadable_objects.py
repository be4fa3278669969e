"""One object that does not fit its class concerns nobody but itself, on both servers."""

from __future__ import annotations

import asyncio

import pytest
from loose_definitions import loose_definition
from pydantic import Field
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core
from ctrlruntime.api.object import Unstructured
from ctrlruntime.errors import DecodeError
from ctrlruntime.testing import eventually

GROUP = "unreadable-tests.example.com"


class GearSpec(ctrl.Model):
    teeth: int = 0


class Gear(ctrl.Object, group=GROUP, version="v1"):
    spec: GearSpec = Field(default_factory=GearSpec)


RawGear = Unstructured.of(f"{GROUP}/v1", "Gear")

# The server's schema is looser than the class: such objects were written before the class was, or by somebody else.
GEARS = loose_definition(Gear)


@pytest.fixture
def gears(server):
    server.install_crds([GEARS])
    yield
    server.connection.request("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gears.{GROUP}")


class Gears:
    """Reads each object as its class, as reconcilers do."""

    def __init__(self, client):
        self.client = client
        self.read = {}

    async def reconcile(self, request):
        gear = await self.client.get_or_none(Gear, request)
        if gear is not None:
            self.read[request.name] = gear.spec.teeth


async def test_one_bad_object_among_a_hundred(server, namespace, gears):
    config = ctrl.get_config(str(server.kubeconfig_path))
    mgr = ctrl.new_manager(
        config, scheme=ctrl.Scheme(Gear), cache=ctrl.CacheOptions(namespaces=[namespace]), metrics_bind_address="0"
    )
    reconciler = Gears(mgr.client)
    ctrl.new_controller_managed_by(mgr).for_(Gear).complete(reconciler)

    def gear(name, teeth):
        metadata = {"name": name, "namespace": namespace}
        return RawGear.from_dict(
            {"apiVersion": f"{GROUP}/v1", "kind": "Gear", "metadata": metadata, "spec": {"teeth": teeth}}
        )

    async def events():
        return [
            event
            for event in await mgr.api_reader.list(core.Event, namespace=namespace)
            if event.reason == "DecodeFailed" and event.involved_object.name == "bad"
        ]

    api = mgr.cluster.unfenced_client()
    await api.create(gear("bad", "many"))
    await asyncio.gather(*(api.create(gear(f"good-{number:02}", number)) for number in range(99)))
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await eventually(lambda: len(reconciler.read) == 99, timeout=LONGEST_WAIT)
        listed = await mgr.client.list(Gear)
        assert len(listed) == 100
        assert len(listed.valid) == 99
        assert "spec.teeth" in str(listed.decode_errors[0])
        live = await mgr.api_reader.list(Gear, namespace=namespace)
        assert (len(live.valid), len(live.decode_errors)) == (99, 1)
        with pytest.raises(DecodeError, match=r"spec\.teeth"):
            await mgr.client.get(Gear, ctrl.NamespacedName(namespace, "bad"))
        assert (await mgr.client.get(RawGear, ctrl.NamespacedName(namespace, "bad")))["spec"]["teeth"] == "many"
        (metrics,) = (cache for cache in mgr.metrics.caches if cache.kind.startswith("Gear."))
        assert metrics.decode_errors == 1
        (event,) = await eventually(events, timeout=LONGEST_WAIT)
        assert event.type == "Warning"
        assert "spec.teeth" in event.message

        bad = await mgr.client.get(RawGear, ctrl.NamespacedName(namespace, "bad"))
        bad["spec"]["teeth"] = 7
        await mgr.client.update(bad)

        await eventually(lambda: reconciler.read.get("bad") == 7, timeout=LONGEST_WAIT)
