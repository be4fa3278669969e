"""Definitions into a cluster, and out of it."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
from collections.abc import Iterator

import pytest
import yaml

import ctrlruntime as ctrl
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError, GenerateError, Invalid, NoMatchError
from ctrlruntime.generate.crd import crds
from ctrlruntime.install import CustomResourceDefinition, InstallTimeoutError, served_kinds
from ctrlruntime.testing import Environment

KIND = ctrl.GroupVersionKind("install.example.com", "v1", "Thing")


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded") as environment:
        yield environment


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await ctrl.uninstall_crds(cluster.unfenced_client(), definition())
    await cluster.close()


def definition(kind="Thing", **properties):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.install.example.com"},
        "spec": {
            "group": "install.example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                },
                {
                    "name": "v0",
                    "served": False,
                    "storage": False,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                },
            ],
        },
    }


async def test_an_installed_kind_can_be_used_at_once(client):
    assert await ctrl.install_crds(client, definition()) == ["things.install.example.com"]

    assert (await client.mapper.resource_for(KIND)).plural == "things"


async def test_installing_again_updates(client):
    await ctrl.install_crds(client, definition())

    await ctrl.install_crds(client, definition(size={"type": "integer"}))

    found = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", "things.install.example.com"))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "size" in schema["properties"]


class Game(ctrl.Object, group="install.example.com", version="v1"):
    size: int = 1


class NextGame(ctrl.Object, group="install.example.com", version="v2", kind="Game", storage=True):
    size: int = 1


async def test_classes_are_installed_and_uninstalled_their_versions_as_one_definition(client):
    assert await ctrl.install_crds(client, Game, NextGame, definition()) == [
        "games.install.example.com",
        "things.install.example.com",
    ]
    client.scheme.register(Game, NextGame)
    created = await client.create(NextGame(metadata={"name": "one", "namespace": "default"}, size=3))
    read = await client.get(Game, ctrl.object_key(created))

    await ctrl.uninstall_crds(client, Game, NextGame)

    assert read.size == 3
    name = ctrl.NamespacedName("", "games.install.example.com")
    assert await client.get_or_none(CustomResourceDefinition, name) is None


def webhook(**client):
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


async def conversion(client):
    found = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", "games.install.example.com"))
    return found["spec"]["conversion"]


async def test_a_conversion_that_is_there_outlives_an_installation_that_says_nothing_of_it(client):
    await ctrl.install_crds(client, Game, NextGame)
    converting = await client.get(CustomResourceDefinition, ctrl.NamespacedName("", "games.install.example.com"))
    bundle = base64.b64encode(make_authority().pem).decode()
    converting["spec"]["conversion"] = webhook(url="https://127.0.0.1:9/convert", caBundle=bundle)
    await client.update(converting)

    await ctrl.install_crds(client, Game, NextGame)
    kept = await conversion(client)
    (wanted,) = crds([Game, NextGame])
    wanted["spec"]["conversion"] = webhook(url="https://127.0.0.1:10/convert")
    await ctrl.install_crds(client, wanted)
    moved = await conversion(client)
    await ctrl.uninstall_crds(client, wanted)

    assert kept["webhook"]["clientConfig"] == {"url": "https://127.0.0.1:9/convert", "caBundle": bundle}
    assert moved["webhook"]["clientConfig"] == {"url": "https://127.0.0.1:10/convert", "caBundle": bundle}


async def test_a_class_that_cannot_become_a_definition_is_named(client):
    class Bad(ctrl.Object, group="install.example.com", version="v1"):
        size: float = 1.0

    with pytest.raises(GenerateError, match=r"Bad\.size"):
        await ctrl.install_crds(client, Bad)


async def test_two_that_install_at_the_same_time_both_succeed(client):
    await asyncio.gather(*(ctrl.install_crds(client, definition()) for _ in range(3)))


async def test_uninstalling_takes_what_is_there(client):
    await ctrl.install_crds(client, definition())

    await ctrl.uninstall_crds(client, definition())
    await ctrl.uninstall_crds(client, definition())

    name = ctrl.NamespacedName("", "things.install.example.com")
    assert await client.get_or_none(CustomResourceDefinition, name) is None


async def test_what_the_server_refuses_names_the_field(client):
    bad = copy.deepcopy(definition())
    bad["metadata"]["name"] = "other.install.example.com"

    with pytest.raises(Invalid, match=r"metadata\.name"):
        await ctrl.install_crds(client, bad)


async def test_a_kind_that_is_not_served_in_time_is_an_error(client, monkeypatch):
    ask = client.mapper.resource_for

    async def not_yet(kind):
        if kind == KIND:
            raise NoMatchError("not yet")
        return await ask(kind)

    monkeypatch.setattr(client.mapper, "resource_for", not_yet)

    async def time_is_over(_seconds):
        raise TimeoutError

    with pytest.raises(InstallTimeoutError, match="not all are served after 120 s"):
        await ctrl.install_crds(client, definition(), wait=120, sleep=time_is_over)


def test_only_served_versions_are_waited_for():
    assert served_kinds(definition()) == [KIND]


async def test_definitions_come_from_files_and_folders(client, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.yaml").write_text(yaml.safe_dump_all([definition("Boat"), {"kind": "ConfigMap"}, None]))
    (tmp_path / "b.json").write_text(json.dumps({"kind": "List", "items": [definition("Raft")]}))

    names = await ctrl.install_crds(client, folder, str(tmp_path / "b.json"))

    assert names == ["boats.install.example.com", "rafts.install.example.com"]


async def test_a_source_without_definitions_is_an_error(client, tmp_path):
    with pytest.raises(ConfigError, match=f"no CustomResourceDefinition in {tmp_path}"):
        await ctrl.install_crds(client, tmp_path)
