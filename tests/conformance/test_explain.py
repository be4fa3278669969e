"""What the journal says led to a reconcile is what was done to the objects: no event too many, none forgotten, on both servers."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.event import GenericEvent
from ctrlruntime.explain.explainer import Explainer
from ctrlruntime.handler import EnqueueRequestForObject
from ctrlruntime.manager.manager import running
from ctrlruntime.source import Channel, EventChannel
from ctrlruntime.testing.eventually import eventually

ROUNDS = 12
NAMES = ("one", "two", "three")


class Scripted:
    """Reconciles nothing; while `gate` is closed the only worker hangs in the request named hold."""

    def __init__(self):
        self.gate = asyncio.Event()
        self.held = asyncio.Event()

    async def reconcile(self, request):
        if request.name == "hold":
            self.held.set()
            await self.gate.wait()


class Script:
    """Changes objects at random and notes which trigger each change must lead to, as it will stand in the journal."""

    def __init__(self, client, namespace, channel, seed):
        self.client = client
        self.namespace = namespace
        self.channel = channel
        self.random = random.Random(seed)
        self.objects = {}
        self.expected = {name: Counter() for name in NAMES}

    def metadata(self, name):
        return meta.ObjectMeta(name=name, namespace=self.namespace)

    async def step(self):
        name = self.random.choice(NAMES)
        choice = self.random.choice(("parent", "parent", "parent", "child", "child", "generic", "delete"))
        if choice == "generic":
            await self.channel.put(GenericEvent.of(core.ConfigMap(metadata=self.metadata(name))))
            self.expected[name]["generic", "channel", name, "", ""] += 1
        elif choice == "delete":
            await self.delete(name)
        elif choice == "parent" or ("ConfigMap", name) not in self.objects:
            await self.write(core.ConfigMap, name, name)
        else:
            await self.write(core.Secret, f"{name}-child", name)

    async def write(self, kind, name, parent):
        known = self.objects.get((kind.__name__, name))
        before = "" if known is None else known.metadata.resource_version
        if known is None:
            known = kind(metadata=self.metadata(name))
            if name != parent:
                ctrl.set_controller_reference(self.objects["ConfigMap", parent], known)
            await self.client.create(known)
        else:
            known.metadata.annotations = {"turn": str(self.random.random())}
            await self.client.update(known)
        self.objects[kind.__name__, name] = known
        event = "update" if before else "create"
        self.expected[parent][event, kind.__name__, name, before, known.metadata.resource_version] += 1

    async def delete(self, name):
        """Delete the child, else the parent: with its parent a child would be collected at some time of the server's choosing."""
        for kind, key in ((core.Secret, f"{name}-child"), (core.ConfigMap, name)):
            known = self.objects.pop((kind.__name__, key), None)
            if known is not None:
                await self.client.delete(known)
                # The version at which it was deleted is told to watchers only.
                self.expected[name]["delete", kind.__name__, key, "", "*"] += 1
                return

    def take(self):
        taken = {name: triggers for name, triggers in self.expected.items() if triggers}
        self.expected = {name: Counter() for name in NAMES}
        return taken


def told(triggers):
    return Counter(
        (each.event, each.source, each.name, each.old_version, "*" if each.event == "delete" else each.resource_version)
        for each in triggers
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_reconcile_records_exactly_the_triggers_that_led_to_it(server, namespace, seed):
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        metrics_bind_address="0",
        cache=ctrl.CacheOptions(namespaces=[namespace]),
    )
    scripted, channel = Scripted(), EventChannel()
    controller = (
        ctrl.new_controller_managed_by(mgr)
        .for_(core.ConfigMap)
        .owns(core.Secret)
        .watches_raw_source(Channel(channel, EnqueueRequestForObject()))
        .build(scripted)
    )
    script = Script(mgr.client, namespace, channel, seed)
    hold = core.ConfigMap(metadata=meta.ObjectMeta(name="hold", namespace=namespace))

    def triggers_of(name):
        pending = controller.queue.pending(ctrl.Request(namespace, name))
        return Counter() if pending is None else told(pending.triggers)

    def runs_of(name):
        return mgr.journal.history(controller.name, ctrl.Request(namespace, name)).runs

    async with running(mgr):
        await eventually(
            lambda: controller.is_started and all(w.is_synced for w in controller.watches), timeout=LONGEST_WAIT
        )
        await eventually(lambda: not controller.reconciles() and not len(controller.queue), timeout=LONGEST_WAIT)
        for _ in range(ROUNDS):
            scripted.gate.clear()
            scripted.held.clear()
            await channel.put(GenericEvent.of(hold))
            await asyncio.wait_for(scripted.held.wait(), LONGEST_WAIT)
            before = {name: [run.id for run in runs_of(name)] for name in NAMES}
            for _ in range(script.random.randint(1, 6)):
                await script.step()
            expected = script.take()

            await eventually(
                lambda e=expected: all(triggers_of(n).total() >= t.total() for n, t in e.items()), timeout=LONGEST_WAIT
            )
            scripted.gate.set()
            await eventually(
                lambda e=expected, b=before: all([run.id for run in runs_of(n)][-1:] != b[n][-1:] for n in e),
                timeout=LONGEST_WAIT,
            )

            recorded = {
                name: told(runs_of(name)[-1].triggers)
                for name in NAMES
                if [r.id for r in runs_of(name)][-1:] != before[name][-1:]
            }
            assert recorded == expected


async def test_the_answer_names_the_fields_that_changed_and_the_calls_that_were_made(server, namespace):
    mgr = ctrl.new_manager(
        ctrl.get_config(str(server.kubeconfig_path)),
        metrics_bind_address="0",
        cache=ctrl.CacheOptions(namespaces=[namespace]),
    )

    async def reconcile(request):
        found = await mgr.client.get_or_none(core.ConfigMap, request)
        if found is not None and request.name == "told" and found.data.get("want") != found.data.get("have"):
            found.data["have"] = found.data["want"]
            await mgr.client.update(found)

    controller = ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).build(reconcile)
    explainer = Explainer(mgr.journal, lambda: [controller], lambda: [mgr.cluster])
    key = ctrl.Request(namespace, "told")
    async with running(mgr):
        told = core.ConfigMap(
            metadata=meta.ObjectMeta(name="told", namespace=namespace), data={"want": "1", "have": "1"}
        )
        await mgr.client.create(told)
        await eventually(lambda: mgr.journal.history("configmap", key).runs, timeout=LONGEST_WAIT)
        told.data["want"] = "2"
        await mgr.client.update(told)
        await eventually(lambda: len(mgr.journal.history("configmap", key).runs) >= 3, timeout=LONGEST_WAIT)
        (answer,) = explainer.why("ConfigMap", namespace, "told").answers

    settled, wanted = answer.runs[:2]
    assert [each.changed for each in wanted.triggers] == [["data.want"]]
    assert [(call.verb, call.what, call.outcome) for call in wanted.calls] == [
        ("update", f"configmaps {namespace}/told", "ok")
    ]
    assert [each.changed for each in settled.triggers] == [["data.have"]]
    assert settled.calls == []
