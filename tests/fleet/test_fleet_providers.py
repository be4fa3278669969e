"""Providers: the inventory follows fixed clusters, files and Secrets, and the fleet follows the inventory."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import sys
from pathlib import Path

import msgspec
import pytest

import ctrlruntime as ctrl
from ctrlruntime.api import authentication, core, meta
from ctrlruntime.errors import ConfigError
from ctrlruntime.fleet import (
    ClusterAPI,
    ClusterProfiles,
    ClusterSource,
    ClusterState,
    CredentialPlugin,
    KubeconfigFiles,
    KubeconfigSecrets,
    Namespaces,
    Static,
    clusters,
)
from ctrlruntime.rest.config import config_from_kubeconfig
from ctrlruntime.rest.credentials import StaticToken
from ctrlruntime.testing import EmbeddedServers, eventually


class Noted:
    """An inventory that notes what it has."""

    def __init__(self, hub: ctrl.Cluster | None = None) -> None:
        self.hub = hub
        self.sources: dict[str, ClusterSource] = {}
        self.rounds = 0

    def set(self, name, source):
        self.sources[name] = source

    def remove(self, name):
        self.sources.pop(name, None)

    def names(self):
        return sorted(self.sources)

    def synced(self):
        self.rounds += 1

    def hosts(self) -> dict[str, str]:
        return {name: source.config.host for name, source in self.sources.items()}


@contextlib.asynccontextmanager
async def provided(provider, hub=None, inventory=None):
    """Run a provider inside the block; yield its inventory."""
    inventory = inventory or Noted(hub)
    rounds = inventory.rounds
    task = asyncio.ensure_future(provider.run(inventory))
    try:
        await eventually(lambda: inventory.rounds > rounds)
        yield inventory
    finally:
        task.cancel()
        await asyncio.wait({task})


def kubeconfig(*contexts: str, user: str = "{token: t}", cluster: str = "") -> str:
    """Return a kubeconfig with contexts; each has a server with its name."""
    names = ", ".join(f"{{name: {name}, context: {{cluster: {name}, user: me}}}}" for name in contexts)
    servers = ", ".join(
        f"{{name: {name}, cluster: {{server: 'https://{name}.example.com'{cluster}}}}}" for name in contexts
    )
    return (
        f"current-context: {contexts[0]}\ncontexts: [{names}]\nclusters: [{servers}]\n"
        f"users: [{{name: me, user: {user}}}]\n"
    )


class Steps:
    """A sleep that ends when the test says so."""

    def __init__(self) -> None:
        self._turn = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await self._turn.wait()
        self._turn.clear()

    def go(self) -> None:
        self._turn.set()


async def one_more_round(found: Noted, steps: Steps) -> None:
    rounds = found.rounds
    steps.go()
    await eventually(lambda: found.rounds > rounds)


async def test_static_clusters():
    async with provided(Static({"eu": ctrl.Config(host="https://eu"), "us": ctrl.Config(host="https://us")})) as found:
        assert found.hosts() == {"eu": "https://eu", "us": "https://us"}


async def test_files_and_folders_are_followed(tmp_path):
    folder, file = tmp_path / "clusters", tmp_path / "config"
    folder.mkdir()
    (folder / "eu.yaml").write_text(kubeconfig("kubernetes"))
    (folder / ".hidden").write_text("not one")
    file.write_text(kubeconfig("one", "two"))
    steps = Steps()
    provider = KubeconfigFiles(folder, file, sleep=steps.sleep)

    async with provided(provider) as found:
        assert found.hosts() == {
            "eu": "https://kubernetes.example.com",
            "one": "https://one.example.com",
            "two": "https://two.example.com",
        }
        before = dict(found.sources)
        await one_more_round(found, steps)
        assert found.sources == before

        (folder / "us.yaml").write_text(kubeconfig("us"))
        (folder / "eu.yaml").write_text(kubeconfig("other"))
        file.write_text(kubeconfig("two"))
        await one_more_round(found, steps)
        assert found.hosts() == {
            "eu": "https://other.example.com",
            "us": "https://us.example.com",
            "two": "https://two.example.com",
        }
        assert found.sources["eu"].fingerprint != before["eu"].fingerprint

        (folder / "eu.yaml").write_text("clusters: [")
        (folder / "us.yaml").unlink()
        await one_more_round(found, steps)
        assert sorted(found.sources) == ["eu", "two"]  # a file that cannot be used changes nothing


async def test_of_two_files_with_one_name_the_first_counts(tmp_path, logs):
    (tmp_path / "eu.yaml").write_text(kubeconfig("first"))
    steps = Steps()
    async with provided(KubeconfigFiles(tmp_path, sleep=steps.sleep)) as found:
        for content in ("second", "second"):
            (tmp_path / "eu.yml").write_text(kubeconfig(content))
            await one_more_round(found, steps)
            assert found.hosts() == {"eu": "https://first.example.com"}
        (line,) = (line for line in logs if line["level"] == "error")
        assert str(line["error"]).endswith("eu.yaml has a cluster 'eu', too. Rename one of them")
        (tmp_path / "eu.yaml").unlink()
        await one_more_round(found, steps)
        assert found.hosts() == {"eu": "https://second.example.com"}


async def test_a_file_that_was_removed_while_the_provider_did_not_run(tmp_path):
    for name in ("eu", "us"):
        (tmp_path / name).write_text(kubeconfig(name))
    provider, inventory = KubeconfigFiles(tmp_path), Noted()
    async with provided(provider, inventory=inventory):
        assert inventory.names() == ["eu", "us"]
    (tmp_path / "us").unlink()
    async with provided(provider, inventory=inventory):
        assert inventory.names() == ["eu"]


def test_files_are_read_once_for_a_check(tmp_path):
    (tmp_path / "eu.yaml").write_text(kubeconfig("kubernetes"))
    (tmp_path / "notes.txt").write_text("not one")

    assert {name: source.config.host for name, source in KubeconfigFiles(tmp_path).read().items()} == {
        "eu": "https://kubernetes.example.com"
    }


def test_a_folder_that_cannot_be_listed_is_an_error_of_one_line(tmp_path, monkeypatch):
    def fail(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", fail)

    with pytest.raises(ConfigError, match=r"cannot read .*: Permission denied"):
        KubeconfigFiles(tmp_path).read()


def test_files_need_a_path():
    with pytest.raises(ConfigError, match="needs a path"):
        KubeconfigFiles()


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (kubeconfig("eu", user="{exec: {command: curl, apiVersion: client.authentication.k8s.io/v1}}"), "exec"),
        (kubeconfig("eu", user="{auth-provider: {name: oidc}}"), "auth-provider"),
        (kubeconfig("eu", user="{tokenFile: /etc/passwd}"), "tokenFile"),
        (kubeconfig("eu", user="{client-certificate: a, client-key: b}"), "client-certificate and client-key"),
        (kubeconfig("eu", cluster=", certificate-authority: /etc/passwd"), "certificate-authority"),
    ],
)
def test_a_kubeconfig_of_others_runs_nothing_and_reads_no_file(text, field):
    with pytest.raises(
        ConfigError, match=f"has {field}, which runs a program or reads a file of this machine"
    ) as failed:
        config_from_kubeconfig(text.encode(), where="Secret fleet/eu")
    assert "Secret fleet/eu" in str(failed.value)


def test_with_allow_exec_a_kubeconfig_may_run_a_program():
    text = kubeconfig("eu", user="{exec: {command: curl, apiVersion: client.authentication.k8s.io/v1}}")
    config = config_from_kubeconfig(text.encode(), where="Secret fleet/eu", allow_exec=True)

    assert config.host == "https://eu.example.com"
    assert "exec plugin curl" in repr(config.credential)


@pytest.fixture
async def hub(servers):
    cluster = ctrl.Cluster(ctrl.get_config(str(servers[0].kubeconfig_path)))
    yield cluster
    await cluster.close()


async def test_secrets_are_followed(hub, clients, namespaces):
    home = clients[0]

    def secret(name: str, text: str, *, key: str = "kubeconfig", labels: dict[str, str] | None = None) -> core.Secret:
        metadata = meta.ObjectMeta(name=name, namespace=namespaces, labels=labels or {"fleet": "yes"})
        return core.Secret(metadata=metadata, data={key: text.encode()})

    await home.create(secret("eu", kubeconfig("eu")))
    await home.create(secret("other", kubeconfig("other"), labels={"fleet": "no"}))
    provider = KubeconfigSecrets(namespaces, labels={"fleet": "yes"})
    async with provided(provider, hub) as found:
        assert found.hosts() == {"eu": "https://eu.example.com"}
        assert found.sources["eu"].labels == {"fleet": "yes"}

        us = await home.create(secret("us", kubeconfig("us"), key="value"))
        await home.create(secret("bad", kubeconfig("bad", user="{tokenFile: /etc/passwd}")))
        await eventually(lambda: found.names() == ["eu", "us"])
        await home.patch(us, ctrl.merge_patch({"data": {"value": None}}))
        await home.create(secret("last", kubeconfig("last")))
        await eventually(lambda: found.names() == ["eu", "last", "us"])
        await home.delete(us)
        await eventually(lambda: found.names() == ["eu", "last"])
    await home.delete(core.Secret(metadata=meta.ObjectMeta(name="last", namespace=namespaces)))
    async with provided(provider, inventory=found):
        assert found.names() == ["eu"]  # also what was deleted while the provider did not run


def definition(group: str, version: str, kind: str) -> dict:
    """Return the definition of a namespaced kind of another project, as far as a provider reads it."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    served = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    singular = kind.lower()
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved"}},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


@pytest.mark.parametrize(
    ("version", "initialized"),
    [
        ("v1beta1", {"conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}),
        ("v1beta2", {"initialization": {"controlPlaneInitialized": True}}),
    ],
)
async def test_clusters_of_cluster_api_are_followed(servers, hub, clients, namespaces, version, initialized):
    home, kind = clients[0], ctrl.Unstructured.of(f"cluster.x-k8s.io/{version}", "Cluster")
    await asyncio.to_thread(servers[0].install_crds, [definition("cluster.x-k8s.io", version, "Cluster")])

    def secret(cluster: str, name: str, **data: str) -> core.Secret:
        labels = {"cluster.x-k8s.io/cluster-name": cluster}
        metadata = meta.ObjectMeta(name=name, namespace=namespaces, labels=labels)
        return core.Secret(metadata=metadata, data={key: text.encode() for key, text in data.items()})

    async def create(name: str) -> ctrl.Unstructured:
        metadata = meta.ObjectMeta(name=name, namespace=namespaces, labels={"zone": name})
        return await home.create(kind(metadata=metadata, spec={}))

    async def initialize(cluster: ctrl.Unstructured) -> None:
        await home.status.patch(cluster, ctrl.merge_patch({"status": initialized}))

    eu, us = await create("eu"), await create("us")
    await home.create(secret("eu", "eu-kubeconfig", value=kubeconfig("eu")))
    await home.create(secret("eu", "eu-ca", value="no kubeconfig"))
    await initialize(eu)
    await initialize(us)  # whose Secret is not there
    try:
        async with provided(ClusterAPI(namespaces), hub) as found:
            assert found.hosts() == {"eu": "https://eu.example.com"}
            assert found.sources["eu"].labels == {"zone": "eu"}
            await home.create(secret("us", "us-kubeconfig", value=kubeconfig("us")))
            await eventually(lambda: found.names() == ["eu", "us"])
            asia = await create("asia")
            await home.create(secret("asia", "asia-kubeconfig", value=kubeconfig("asia")))
            await home.delete(us)
            await eventually(lambda: found.names() == ["eu"])
            await initialize(asia)
            await eventually(lambda: found.names() == ["asia", "eu"])
        await home.delete(asia)
        async with provided(ClusterAPI(namespaces), hub, inventory=found):
            assert found.names() == ["eu"]
        async with provided(ClusterAPI(labels={"zone": "eu"}), hub) as found:
            assert found.names() == [f"{namespaces}/eu"]
    finally:
        await asyncio.to_thread(servers[0].uninstall_crds, ["clusters.cluster.x-k8s.io"])


PLUGIN = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["cluster"]
token = ":".join([info["config"]["user"], info["server"], *sys.argv[1:], os.environ["ZONE"]])
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}))
"""


def access(provider: str, server: str, *, user: str = "", **fields: object) -> dict:
    """Return an access provider of a ClusterProfile."""
    more = {"exec/additional-args": ["--more"], "exec/additional-envs": {"ZONE": "other", "PATH": "/nowhere"}}
    extensions = [
        {"name": f"clusterprofiles.multicluster.x-k8s.io/{name}", "extension": it} for name, it in more.items()
    ]
    extensions.append({"name": "client.authentication.k8s.io/exec", "extension": {"user": user}})
    return {"name": provider, "cluster": {"server": server, "extensions": extensions, **fields}}


async def token_of(source: ClusterSource) -> str:
    return (await source.config.credential.headers())["Authorization"].removeprefix("Bearer ")


async def test_cluster_profiles_are_followed(servers, hub, clients, namespaces, logs):
    home, kind = clients[0], ctrl.Unstructured.of("multicluster.x-k8s.io/v1alpha1", "ClusterProfile")
    await asyncio.to_thread(
        servers[0].install_crds, [definition("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile")]
    )
    authority = base64.b64encode(ctrl.get_config(str(servers[1].kubeconfig_path)).tls.ca_data).decode()

    async def create(name: str) -> ctrl.Unstructured:
        metadata = meta.ObjectMeta(name=name, namespace=namespaces, labels={"zone": name})
        return await home.create(kind(metadata=metadata, spec={}))

    async def offer(profile: ctrl.Unstructured, *offers: dict, field: str = "accessProviders") -> None:
        await home.status.patch(profile, ctrl.merge_patch({"status": {field: list(offers)}}))

    eu, us = await create("eu"), await create("us")
    data = {"certificate-authority-data": authority, "certificate-authority": "/etc/passwd"}
    await offer(eu, access("unknown", "https://no"), access("second", "https://eu", user="ann", **data))
    plugin = CredentialPlugin(command=sys.executable, args=("-c", PLUGIN), env={"ZONE": "z"})
    plugins = {"first": msgspec.structs.replace(plugin, allow_additional=True), "second": plugin}
    try:
        async with provided(ClusterProfiles(plugins, namespace=namespaces), hub) as found:
            assert found.hosts() == {"eu": "https://eu"}  # the other one has no access yet
            source = found.sources["eu"]
            assert source.labels == {"zone": "eu"}
            assert (source.config.tls.ca_file, source.config.tls.ca_data is not None) == (None, True)
            assert await token_of(source) == "ann:https://eu:z"  # nothing that the profile adds

            await offer(us, access("first", "https://us", user="bob"), field="credentialProviders")
            await eventually(lambda: found.names() == ["eu", "us"])
            assert await token_of(found.sources["us"]) == "bob:https://us:--more:z"

            await offer(us, access("unknown", "https://us"), field="credentialProviders")
            await offer(eu, access("second", "https://eu2"))
            await eventually(lambda: found.hosts() == {"eu": "https://eu2", "us": "https://us"})
            await home.delete(us)
            await eventually(lambda: found.names() == ["eu"])
        (line,) = (line for line in logs if line["level"] == "error")
        assert line["object"] == f"ClusterProfile {namespaces}/us"
        assert str(line["error"]).endswith(
            "has the access providers unknown; the operator has plugins of first, second"
        )
        async with provided(ClusterProfiles(plugins, labels={"zone": "eu"}), hub) as found:
            assert found.names() == [f"{namespaces}/eu"]
    finally:
        await asyncio.to_thread(servers[0].uninstall_crds, ["clusterprofiles.multicluster.x-k8s.io"])


def test_a_plugin_has_no_relative_path():
    with pytest.raises(ConfigError, match=r"the plugin \./gke has a relative path"):
        CredentialPlugin(command="./gke")


async def test_namespaces_are_clusters(servers, clients, namespaces):
    other = await asyncio.to_thread(servers[0].create_namespace)
    home, selector = clients[0], {"kubernetes.io/metadata.name": namespaces}
    hub = ctrl.get_config(str(servers[0].kubeconfig_path))
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(Namespaces(labels=selector)))
    seen: dict[str, list[str]] = {}

    async def reconcile(request):
        found = await mgr.fleet.client(request).list(core.Secret)
        seen[request.cluster] = sorted(each.metadata.name for each in found)

    ctrl.new_controller_managed_by(mgr).for_(core.Secret, on="fleet").complete(reconcile)
    for namespace in (namespaces, other):
        await home.create(core.Secret(metadata=meta.ObjectMeta(name=f"of-{namespace}", namespace=namespace)))
    async with ctrl.running(mgr):
        name = f"namespaces/{namespaces}"
        await eventually(lambda: seen == {name: [f"of-{namespaces}"]})
        with pytest.raises(ValueError, match=other):
            await mgr.fleet.client(name).get(core.Secret, ctrl.NamespacedName(other, f"of-{other}"))
    await asyncio.to_thread(servers[0].delete_namespace, other)


async def test_embedded_servers_start_and_stop_with_the_manager(servers, logs):
    provider = EmbeddedServers(2)
    hub = ctrl.get_config(str(servers[0].kubeconfig_path))
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    seen: set[str] = set()

    async def reconcile(request):
        seen.add(request.cluster)

    ctrl.new_controller_managed_by(mgr).for_(core.Namespace, on="fleet").complete(reconcile)
    async with ctrl.running(mgr):
        await eventually(lambda: seen == {"embedded/0", "embedded/1"})
        assert mgr.fleet.cluster("embedded/1").config.host == provider.environments["1"].url
    assert [line for line in logs if line["level"] in ("warning", "error")] == []
    with pytest.raises(ConfigError, match="not running"):
        _ = provider.environments["1"].url


class Scripted:
    """A provider that does what the test says."""

    name = "test"

    def __init__(self) -> None:
        self.inventories: list = []
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, inventory):
        self.inventories.append(inventory)
        await self.failure


async def test_the_fleet_follows_its_providers(servers, clients, namespaces):
    provider = Scripted()
    hub, *others = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers)
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    seen: set[tuple[str, str]] = set()

    async def reconcile(request):
        if request.namespace == namespaces:
            seen.add((request.cluster, request.name))

    ctrl.new_controller_managed_by(mgr).for_(core.Secret, on="fleet").complete(reconcile)
    for number, client in enumerate(clients):
        await client.create(core.Secret(metadata=meta.ObjectMeta(name=f"of-{number}", namespace=namespaces)))

    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        (inventory,) = provider.inventories
        inventory.set("a", ClusterSource(config=others[0], labels={"zone": "1"}, fingerprint="1"))
        await eventually(lambda: seen == {("test/a", "of-1")})
        assert mgr.fleet.status("test/a").labels == {"zone": "1"}
        cluster = mgr.fleet.cluster("test/a")

        inventory.set("a", ClusterSource(config=others[1], labels={"zone": "2"}, fingerprint="1"))
        await eventually(lambda: mgr.fleet.status("test/a").labels == {"zone": "2"})
        assert mgr.fleet.cluster("test/a") is cluster  # the same fingerprint: the same access

        inventory.set("a", ClusterSource(config=others[1], fingerprint="2"))
        await eventually(lambda: seen == {("test/a", "of-1"), ("test/a", "of-2")})
        inventory.remove("a")
        await eventually(lambda: mgr.fleet.names() == [])
        inventory.remove("a")

        for number in range(20):  # the last word counts
            inventory.set("b", ClusterSource(config=others[number % 2], fingerprint=str(number)))
        await eventually(lambda: ("test/b", "of-2") in seen)
        await eventually(lambda: mgr.fleet.status("test/b").state is ClusterState.ENGAGED)
        assert inventory.names() == ["b"]


async def test_credentials_are_replaced_without_a_list(servers, namespaces, logs):
    provider, other = Scripted(), servers[1]
    mgr = ctrl.new_manager(
        ctrl.get_config(str(servers[0].kubeconfig_path)), metrics_bind_address="0", fleet=ctrl.Fleet(provider)
    )
    seen: set[str] = set()

    async def reconcile(request):
        if request.namespace == namespaces:
            await mgr.fleet.client(request).get(core.Secret, request)
            await mgr.fleet.client(request).create(
                core.ConfigMap(metadata=meta.ObjectMeta(name=request.name, namespace=namespaces))
            )
            seen.add(request.name)

    ctrl.new_controller_managed_by(mgr).for_(core.Secret, on="fleet").complete(reconcile)
    first, second = (
        ClusterSource.from_kubeconfig(other.add_user(name, ["system:masters"]).encode(), where="test")
        for name in ("first", "second")
    )
    authorities = first.config.tls.ca_data + ctrl.get_config(str(servers[2].kubeconfig_path)).tls.ca_data
    tls = dataclasses.replace(second.config.tls, ca_data=authorities)
    rotated = ClusterSource(config=dataclasses.replace(second.config, tls=tls), fingerprint="rotated")
    broken = ClusterSource(
        config=dataclasses.replace(second.config, tls=dataclasses.replace(tls, key_data=b"none")), fingerprint="broken"
    )
    at_home = ctrl.Cluster(first.config)

    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        (inventory,) = provider.inventories
        inventory.set("a", first)
        await eventually(lambda: mgr.fleet.status("test/a").state is ClusterState.ENGAGED)
        cluster = mgr.fleet.cluster("test/a")
        for number, (source, user) in enumerate([(first, "first"), (second, "second"), (rotated, "second")]):
            inventory.set("a", source)
            await eventually(lambda source=source: cluster.config is source.config)
            assert await is_user(cluster, user)
            secret = core.Secret(metadata=meta.ObjectMeta(name=f"s-{number}", namespace=namespaces))
            await at_home.unfenced_client().create(secret)
            await eventually(lambda name=secret.metadata.name: name in seen)
        inventory.set("a", broken)
        await eventually(lambda: any(line["event"] == "cluster not changed" for line in logs))

        assert mgr.fleet.cluster("test/a") is cluster
        assert await is_user(cluster, "second")
        (informer,) = [one for kind, one in cluster.cache.all_informers() if kind.kind == "Secret"]
        assert [one.relists for one in informer.reflectors.values()] == [1]
    await at_home.close()
    assert [line for line in logs if line["event"].startswith("reconcile failed")] == []


async def is_user(cluster: ctrl.Cluster, wanted: str) -> bool:
    """Return whether a cluster's client is known under this name."""
    review = await cluster.client.create(authentication.SelfSubjectReview())
    return review.status.user_info.username == wanted


async def test_a_cluster_whose_credential_is_refused_is_connected_with_the_next_one(servers):
    provider = Scripted()
    hub, other = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers[:2])
    refused = dataclasses.replace(
        other, credential=StaticToken("wrong"), tls=dataclasses.replace(other.tls, cert_data=None, key_data=None)
    )
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        provider.inventories[0].set("a", ClusterSource(config=refused, fingerprint="1"))
        await eventually(lambda: "does not accept the credential" in mgr.fleet.status("test/a").reason)
        cluster = mgr.fleet.cluster("test/a")
        provider.inventories[0].set("a", ClusterSource(config=other, fingerprint="2"))
        await eventually(lambda: mgr.fleet.status("test/a").state is ClusterState.ENGAGED)
        assert mgr.fleet.cluster("test/a") is cluster


async def test_a_provider_that_fails_is_run_again_and_its_clusters_stay(servers):
    provider = Scripted()
    hub, other = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers[:2])
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        provider.inventories[0].set("a", ClusterSource(config=other))
        assert not mgr.fleet.is_synced
        provider.inventories[0].synced()
        assert not mgr.fleet.is_synced  # names() has it with the next step of the event loop
        await eventually(lambda: mgr.fleet.is_synced)
        assert mgr.fleet.names() == ["test/a"]
        failure, provider.failure = provider.failure, asyncio.get_running_loop().create_future()
        failure.set_exception(OSError("the registry is down"))
        await eventually(lambda: len(provider.inventories) == 2)
        assert mgr.fleet.names() == ["test/a"]


async def test_a_cluster_whose_task_fails_is_replaced(servers, monkeypatch):
    provider = Scripted()
    hub, other = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers[:2])
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    ctrl.new_controller_managed_by(mgr).for_(core.Secret, on="fleet").complete(lambda _request: None)
    monkeypatch.setattr(clusters, "LONGEST_RETRY", 0.0)

    async def fail() -> None:
        raise RuntimeError("a bug")

    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        provider.inventories[0].set("a", ClusterSource(config=other))
        await eventually(lambda: mgr.fleet.status("test/a").state is ClusterState.ENGAGED)
        first = mgr.fleet.cluster("test/a")
        mgr.fleet._spawn(mgr.fleet._members["test/a"], fail())
        await eventually(lambda: mgr.fleet.cluster("test/a") is not first)
        await eventually(lambda: mgr.fleet.status("test/a").state is ClusterState.ENGAGED)


async def test_a_provider_does_not_change_a_cluster_that_was_added_by_hand(servers, logs):
    provider = Scripted()
    hub, other = (ctrl.get_config(str(server.kubeconfig_path)) for server in servers[:2])
    mgr = ctrl.new_manager(hub, metrics_bind_address="0", fleet=ctrl.Fleet(provider))
    async with ctrl.running(mgr):
        await eventually(lambda: provider.inventories)
        mine = ctrl.Cluster(other, name="test/a")
        mgr.add(mine)
        provider.inventories[0].set("a", ClusterSource(config=other))
        await eventually(lambda: any("its name is in use" in line["event"] for line in logs))
        provider.inventories[0].remove("a")
        provider.inventories[0].set("b", ClusterSource(config=other))
        await eventually(lambda: "test/b" in mgr.fleet.names())
        assert mgr.fleet.cluster("test/a") is mine


def test_two_providers_need_two_names():
    with pytest.raises(ConfigError, match="two providers named 'static'"):
        ctrl.Fleet(Static({}), Static({}))
