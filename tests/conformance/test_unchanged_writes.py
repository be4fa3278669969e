"""A write that changed nothing is sent again when the server may decide otherwise: what it dropped once is not dropped for ever."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest
from servers import LONGEST_WAIT
from webhook_bench import WebhookReceiver, json_patch

import ctrlruntime as ctrl
from ctrlruntime.api.apiextensions import CustomResourceDefinition
from ctrlruntime.client.unchanged import unchanged_writes_of
from ctrlruntime.errors import NotFound, ServiceUnavailable

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
BOTH = pytest.mark.parametrize("write", [ctrl.create_or_update, ctrl.create_or_patch])
TEXT = {"type": "string"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def group(server: ctrl.testing.Environment) -> Iterator[str]:
    name = f"x{secrets.token_hex(4)}.example.com"
    yield name
    with contextlib.suppress(NotFound):  # the test failed before it was installed
        server.connection.request("DELETE", f"{DEFINITIONS}/gadgets.{name}")


def definition(group: str, **properties: dict[str, Any]) -> dict[str, Any]:
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "versions": [version],
        },
    }


class Setting:
    """A manager, a kind of its own, and what was sent of it."""

    def __init__(self, server: ctrl.testing.Environment, namespace: str, group: str, write: Any) -> None:
        self.server, self.group, self.write = server, group, write
        self.key = ctrl.NamespacedName(namespace, "a")
        self.kind = ctrl.Unstructured.of(f"{group}/v1", "Gadget")
        self.every_gadget = {
            "apiGroups": [group],
            "apiVersions": ["v1"],
            "resources": ["gadgets"],
            "operations": ["CREATE", "UPDATE"],
        }
        self.clock = Clock()
        config = ctrl.get_config(str(server.kubeconfig_path))
        self.mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(sync_period=None), metrics_bind_address="0")
        unchanged_writes_of(self.mgr.client)._clock = self.clock
        self.left_out: list[Any] = []
        self.mgr.cluster.observers.add_left_out_observer(self.left_out.append)

    def define(self, **properties: dict[str, Any]) -> None:
        """Install the definition, and wait until the server goes by it: what it stores of an object shows that."""
        self.server.install_crds(definition(self.group, **properties))
        self.wait_for({name: schema.get("default", "x") for name, schema in properties.items()})

    def wait_for(self, spec: dict[str, Any]) -> None:
        url = f"/apis/{self.group}/v1/namespaces/{self.key.namespace}/gadgets?dryRun=All"
        given = {name: "x" for name, value in spec.items() if value == "x"}
        body = {"apiVersion": f"{self.group}/v1", "kind": "Gadget", "metadata": {"name": "probe"}, "spec": given}
        deadline, stored = time.monotonic() + LONGEST_WAIT, None
        while stored != spec:
            assert time.monotonic() < deadline, f"the server still makes {stored} of it"
            with contextlib.suppress(ServiceUnavailable):  # kube-apiserver, for a moment after the CRD has changed
                stored = self.server.connection.request("POST", url, body)["spec"]
            time.sleep(0.02)

    async def reconcile(self, **spec: Any) -> str:
        """Write the object whole, as a reconciler does."""

        def mutate(found: Any) -> None:
            found["spec"] = dict(spec)

        _, result = await self.write(self.mgr.client, self.kind, self.key, mutate)
        return str(result)

    async def settle(self, **spec: Any) -> None:
        """Write until the write is left out.

        A patch that admission takes back still renews the times in managedFields, at most once a second: kube-apiserver looks before admission
        whether it changes anything else (IgnoreManagedFieldsTimestampsTransformer in apiserver's pkg/endpoints/handlers/patch.go).
        """
        accepted = {"unchanged", "updated"} if self.write is ctrl.create_or_patch else {"unchanged"}
        assert await self.reconcile(**spec) == "created"
        while not self.left_out:
            assert await self.reconcile(**spec) in accepted

    async def mended(self, **spec: Any) -> dict[str, Any]:
        """Write ten minutes later, and return the stored spec."""
        self.clock.now += 600
        assert await self.reconcile(**spec) == "updated"
        return (await self.mgr.api_reader.get(self.kind, self.key)).to_dict()["spec"]


@pytest.fixture
def setting(server, namespace, group, write) -> Setting:
    return Setting(server, namespace, group, write)


@BOTH
async def test_a_field_that_was_pruned_is_written_once_its_definition_has_it(setting):
    await asyncio.to_thread(setting.define, color=TEXT)
    async with ctrl.running(setting.mgr), asyncio.timeout(LONGEST_WAIT):
        await setting.settle(color="red", size="big")
        await asyncio.to_thread(setting.define, color=TEXT, size=TEXT)

        setting.clock.now += 59
        count = len(setting.left_out)
        assert await setting.reconcile(color="red", size="big") == "unchanged"
        assert len(setting.left_out) == count + 1
        assert await setting.mended(color="red", size="big") == {"color": "red", "size": "big"}


@BOTH
async def test_a_default_that_changed_is_taken(setting):
    await asyncio.to_thread(setting.define, color=TEXT, size={**TEXT, "default": "big"})
    async with ctrl.running(setting.mgr), asyncio.timeout(LONGEST_WAIT):
        await setting.settle(color="red")
        await asyncio.to_thread(setting.define, color=TEXT, size={**TEXT, "default": "small"})

        assert await setting.mended(color="red") == {"color": "red", "size": "small"}


@pytest.fixture
def webhook(setting) -> Iterator[dict[str, dict[str, Any]]]:
    """A webhook that makes every gadget blue, by the path of its resource."""
    with WebhookReceiver() as receiver:
        receiver.answers["/blue"] = lambda review: json_patch({"op": "add", "path": "/spec/color", "value": "blue"})
        hook = {
            "name": "blue.example.com",
            "clientConfig": receiver.client("/blue"),
            "rules": [setting.every_gadget],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        yield {"mutatingwebhookconfigurations": {"kind": "MutatingWebhookConfiguration", "webhooks": [hook]}}


@pytest.fixture
def policy(setting) -> dict[str, dict[str, Any]]:
    """A policy that makes every gadget blue, and its binding, by the paths of their resources."""
    patch = "[JSONPatch{op: 'add', path: '/spec/color', value: 'blue'}]"
    policy = {
        "matchConstraints": {"resourceRules": [setting.every_gadget]},
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
    }
    binding = {"policyName": setting.group}
    return {
        "mutatingadmissionpolicybindings": {"kind": "MutatingAdmissionPolicyBinding", "spec": binding},
        "mutatingadmissionpolicies": {"kind": "MutatingAdmissionPolicy", "spec": policy},
    }


@BOTH
@pytest.mark.parametrize("mutation", ["webhook", "policy"])
async def test_what_admission_took_back_is_written_when_its_cause_is_gone(setting, server, mutation, request):
    objects = request.getfixturevalue(mutation)
    await asyncio.to_thread(setting.define, color=TEXT)

    def create_mutation() -> None:
        for resource, content in objects.items():
            head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": setting.group}}
            server.connection.request("POST", f"{ADMISSION}/{resource}", {**head, **content})

    def delete_mutation() -> None:
        for resource in objects:
            with contextlib.suppress(NotFound):
                server.connection.request("DELETE", f"{ADMISSION}/{resource}/{setting.group}")

    try:
        await asyncio.to_thread(create_mutation)
        async with ctrl.running(setting.mgr), asyncio.timeout(LONGEST_WAIT):
            await asyncio.to_thread(setting.wait_for, {"color": "blue"})
            await setting.settle(color="red")
            await asyncio.to_thread(delete_mutation)
            await asyncio.to_thread(setting.wait_for, {"color": "x"})

            assert await setting.mended(color="red") == {"color": "red"}
    finally:
        delete_mutation()


@BOTH
@pytest.mark.parametrize("seen", ["written through the same client", "changed in the cache"])
async def test_a_definition_that_this_process_sees_changing_needs_no_time_to_pass(setting, seen):
    await asyncio.to_thread(setting.define, color=TEXT)
    mgr, key = setting.mgr, ctrl.NamespacedName("", f"gadgets.{setting.group}")
    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await setting.settle(color="red", size="big")
        if seen == "changed in the cache":
            found = await mgr.client.get(CustomResourceDefinition, key)
            await asyncio.to_thread(setting.define, color=TEXT, size=TEXT)
        else:
            found = await mgr.api_reader.get(CustomResourceDefinition, key)
            schema = found.spec.versions[0].schema_.open_apiv3_schema.properties["spec"]
            schema.properties["size"] = schema.properties["color"]
            await mgr.client.update(found)
            await asyncio.to_thread(setting.wait_for, {"color": "x", "size": "x"})
        while await setting.reconcile(color="red", size="big") != "updated":  # noqa: ASYNC110 - it takes the watch a moment
            await asyncio.sleep(0.02)
