"""Credentials end while a manager works, on both servers: no reconciler sees it, and watches go on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from servers import LONGEST_WAIT

import ctrlruntime as ctrl
from ctrlruntime.api import core, meta
from ctrlruntime.api.object import Unstructured
from ctrlruntime.client import APIClient
from ctrlruntime.errors import Unauthorized
from ctrlruntime.rest.mapper import RESTMapper
from ctrlruntime.rest.transport import Transport
from ctrlruntime.testing import eventually

TokenRequest = Unstructured.of("authentication.k8s.io/v1", "TokenRequest")
Binding = Unstructured.of("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")


@contextlib.asynccontextmanager
async def direct(config):
    transport = Transport(config)
    try:
        yield APIClient(transport, RESTMapper(transport.fetch), ctrl.Scheme())
    finally:
        await transport.close()


class Account:
    """A service account that may do everything, and tokens of it that end when their Secret is deleted."""

    def __init__(self, admin, namespace):
        self.admin = admin
        self.namespace = namespace
        self.account = core.ServiceAccount(metadata=meta.ObjectMeta(name="rotating", namespace=namespace))

    async def create(self):
        await self.admin.create(self.account)
        subject = {"kind": "ServiceAccount", "name": "rotating", "namespace": self.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        name = f"rotating-{self.namespace}"
        await self.admin.create(Binding.from_dict({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}))

    async def token(self, name):
        secret = core.Secret(metadata=meta.ObjectMeta(name=name, namespace=self.namespace))
        await self.admin.create(secret)
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret.metadata.uid}
        request = TokenRequest.from_dict(
            {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound, "audiences": []}}
        )
        answer = await self.admin.subresource("token").create(self.account, request)
        return answer["status"]["token"]

    async def revoke(self, name):
        await self.admin.delete(core.Secret(metadata=meta.ObjectMeta(name=name, namespace=self.namespace)))

    async def end(self):
        await self.admin.delete(Binding.from_dict({"metadata": {"name": f"rotating-{self.namespace}"}}))


@pytest.fixture
async def account(server, namespace):
    async with direct(ctrl.get_config(str(server.kubeconfig_path))) as admin:
        account = Account(admin, namespace)
        await account.create()
        yield account
        await account.end()


@pytest.fixture
def kubeconfig(server, tmp_path):
    """Return a function that writes a kubeconfig of the server for another user."""

    def write(user):
        config = yaml.safe_load(server.kubeconfig)
        config["users"] = [{"name": "other", "user": user}]
        for context in config["contexts"]:
            context["context"]["user"] = "other"
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return ctrl.get_config(str(path))

    return write


class Stamps:
    """Writes into each ConfigMap what it is told, and notes every error it meets."""

    def __init__(self, client):
        self.client = client
        self.stamped = {}
        self.errors = []

    async def reconcile(self, request):
        try:
            found = await self.client.get_or_none(core.ConfigMap, request)
            if found is None or not found.metadata.name.startswith("stamp-"):
                return
            found.data = {"stamp": "x"}
            self.stamped[request.name] = await self.client.update(found)
        except Exception as error:
            self.errors.append(error)
            raise


async def test_a_token_file_is_replaced_and_the_old_token_revoked(server, namespace, account, kubeconfig, tmp_path):
    token_file = tmp_path / "token"
    old = await account.token("first")
    token_file.write_text(old)
    mgr = ctrl.new_manager(
        kubeconfig({"tokenFile": str(token_file)}),
        cache=ctrl.CacheOptions(namespaces=[namespace], watch=ctrl.cache.WatchOptions(timeout=(2.0, 3.0))),
        metrics_bind_address="0",
    )
    reconciler = Stamps(mgr.client)
    ctrl.new_controller_managed_by(mgr).for_(core.ConfigMap).complete(reconciler)

    async def create(name):
        await account.admin.create(core.ConfigMap(metadata=meta.ObjectMeta(name=name, namespace=namespace)))
        await eventually(lambda: name in reconciler.stamped, timeout=LONGEST_WAIT)

    async with ctrl.running(mgr), asyncio.timeout(LONGEST_WAIT):
        await create("stamp-before")

        token_file.write_text(await account.token("second"))
        await account.revoke("first")
        async with direct(kubeconfig({"token": old})) as revoked:

            async def is_refused():
                try:
                    await revoked.list(core.ConfigMap, namespace=namespace, limit=1)
                except Unauthorized:
                    return True
                return False

            await eventually(is_refused, timeout=LONGEST_WAIT)

        await create("stamp-after")
        watches = [
            reflector for informer in mgr.cache.informers().values() for reflector in informer._reflectors.values()
        ]
        before = [reflector.watches for reflector in watches]

        def have_begun_anew():
            return all(reflector.watches > count for reflector, count in zip(watches, before, strict=True))

        await eventually(have_begun_anew, timeout=LONGEST_WAIT)  # with the new token
        await create("stamp-later")

    assert reconciler.errors == []


PLUGIN = """\
#!{python}
import json, pathlib, time
runs = pathlib.Path({runs!r})
runs.write_text(runs.read_text() + "x")
deadline = time.monotonic() + 80
while not pathlib.Path({go_on!r}).exists():
    assert time.monotonic() < deadline
    time.sleep(0.01)
print(pathlib.Path({answer!r}).read_text())
"""


async def test_a_plugin_runs_once_for_many_requests_off_the_loop_and_again_at_the_end_of_its_token(
    namespace, account, kubeconfig, tmp_path
):
    runs, answer, go_on, plugin = (tmp_path / name for name in ("runs", "answer", "go-on", "plugin"))
    runs.write_text("")
    plugin.write_text(PLUGIN.format(python=sys.executable, runs=str(runs), answer=str(answer), go_on=str(go_on)))
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)

    def grant(token, seconds):
        ends = datetime.now(UTC) + timedelta(seconds=seconds)
        status = {"token": token, "expirationTimestamp": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}
        text = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
        (tmp_path / "new").write_text(text)
        (tmp_path / "new").replace(answer)

    grant(await account.token("first"), 8)
    execution = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}

    async def lets_it_go_on():
        """Lets the plugin end. That needs the event loop, so the plugin does not run on it."""
        await eventually(lambda: runs.read_text() == "x", timeout=LONGEST_WAIT)
        go_on.touch()

    async with direct(kubeconfig({"exec": execution})) as client, asyncio.timeout(LONGEST_WAIT):
        await asyncio.gather(lets_it_go_on(), *(client.list(core.ConfigMap, namespace=namespace) for _ in range(20)))
        await asyncio.gather(*(client.list(core.Secret, namespace=namespace) for _ in range(20)))
        assert runs.read_text() == "x"

        grant(await account.token("second"), 3600)
        await account.revoke("first")

        async def has_run_again():
            await client.list(core.ConfigMap, namespace=namespace)
            return runs.read_text() == "xx"

        await eventually(has_run_again, timeout=LONGEST_WAIT)
        await asyncio.gather(*(client.list(core.ConfigMap, namespace=namespace) for _ in range(20)))
        assert runs.read_text() == "xx"
