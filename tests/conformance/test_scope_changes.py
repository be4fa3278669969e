"""A definition that comes back with another scope: reads, writes and events go to where the objects are now."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.errors import CtrlError, NoMatchError, NotFound

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def group(server: ctrl.testing.Environment) -> Iterator[str]:
    name = f"x{secrets.token_hex(4)}.example.com"
    yield name
    with contextlib.suppress(NotFound):  # the test failed before it was installed
        server.connection.request("DELETE", f"{DEFINITIONS}/valves.{name}")


def definition(group: str, scope: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Valve", "plural": "valves"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"valves.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [version]},
    }


class Setting:
    """A manager that reconciles Valves, and their definition."""

    def __init__(self, server: ctrl.testing.Environment, group: str, **cache: Any) -> None:
        self.server, self.group = server, group
        self.kind = ctrl.Unstructured.of(f"{group}/v1", "Valve")
        config = ctrl.get_config(str(server.kubeconfig_path))
        watch = ctrl.cache.WatchOptions(missing_kind_retry_interval=0.2, backoff=(0.05, 0.2))
        self.mgr = ctrl.new_manager(config, cache=ctrl.CacheOptions(watch=watch, **cache), metrics_bind_address="0")
        self.requests: set[ctrl.NamespacedName] = set()
        ctrl.new_controller_managed_by(self.mgr).named(f"valves-{group}").for_(self.kind).complete(self.reconcile)

    async def reconcile(self, request: ctrl.Request) -> None:
        # A request is noted only when the cache shows its object.
        if await self.mgr.client.get_or_none(self.kind, request) is not None:
            self.requests.add(ctrl.NamespacedName(request.namespace, request.name))

    def install(self, scope: str) -> None:
        self.server.install_crds(definition(self.group, scope))

    def replace(self, scope: str) -> None:
        path = f"{DEFINITIONS}/valves.{self.group}"
        self.server.connection.request("DELETE", path)
        self.install(scope)

    def valve(self, namespace: str, name: str) -> Any:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        return self.kind.from_dict({"apiVersion": f"{self.group}/v1", "kind": "Valve", "metadata": metadata})

    async def create(self, namespace: str, name: str) -> None:
        """Create as a reconciler does: an error is tried again."""
        while True:
            try:
                await self.mgr.client.create(self.valve(namespace, name))
            except (NoMatchError, NotFound):
                await asyncio.sleep(0.05)
            else:
                return

    async def until_reconciled(self, key: ctrl.NamespacedName) -> None:
        while key not in self.requests:  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("noticed", [False, True], ids=["replaced at once", "gone for a while"])
@pytest.mark.parametrize(("before", "after"), [("Namespaced", "Cluster"), ("Cluster", "Namespaced")])
async def test_reads_writes_and_events_follow_the_scope(server, namespace, group, before, after, noticed):
    setting = Setting(server, group)
    places = {"Namespaced": namespace, "Cluster": ""}
    await asyncio.to_thread(setting.install, before)
    async with ctrl.running(setting.mgr), asyncio.timeout(LONGEST_WAIT):
        await setting.create(places[before], "old")
        await setting.until_reconciled(ctrl.NamespacedName(places[before], "old"))

        if noticed:
            await asyncio.to_thread(server.connection.request, "DELETE", f"{DEFINITIONS}/valves.{group}")
            (informer,) = (one for name, one in setting.mgr.cache.informers().items() if name.kind == "Valve")
            while not isinstance(informer.last_error, CtrlError):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
            await asyncio.to_thread(setting.install, after)
        else:
            await asyncio.to_thread(setting.replace, after)
        await setting.create(places[after], "new")

        key = ctrl.NamespacedName(places[after], "new")
        await setting.until_reconciled(key)
        assert (await setting.mgr.client.get(setting.kind, key)).metadata.name == "new"
        assert [one.metadata.name for one in await setting.mgr.client.list(setting.kind)] == ["new"]
        found = await setting.mgr.client.get(setting.kind, key)
        found["size"] = 2
        await setting.mgr.client.update(found)
        assert (await setting.mgr.client.get(setting.kind, key))["size"] == 2
        await setting.mgr.client.delete(found)


async def test_a_cache_of_some_namespaces_takes_the_cluster_when_the_kind_goes_there(server, namespace, group):
    setting = Setting(server, group, namespaces=[namespace, "elsewhere"])
    await asyncio.to_thread(setting.install, "Namespaced")
    async with ctrl.running(setting.mgr), asyncio.timeout(LONGEST_WAIT):
        await setting.create(namespace, "old")
        await setting.until_reconciled(ctrl.NamespacedName(namespace, "old"))

        await asyncio.to_thread(setting.replace, "Cluster")
        await setting.create("", "new")
        await setting.until_reconciled(ctrl.NamespacedName("", "new"))

        await asyncio.to_thread(setting.replace, "Namespaced")
        await setting.create(namespace, "back")
        await setting.until_reconciled(ctrl.NamespacedName(namespace, "back"))
        informers = [one for name, one in setting.mgr.cache.informers().items() if name.kind == "Valve"]
        assert [{scope.namespace for scope in one.scopes} for one in informers] == [{namespace, "elsewhere"}]
