"""Definitions that several managers write: what installing leaves alone, what it takes back, what it removes. On both servers."""

from __future__ import annotations

import base64
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from loose_definitions import loose_definition

import ctrlruntime as ctrl
from ctrlruntime.certificates import make_authority
from ctrlruntime.install import CustomResourceDefinition
from ctrlruntime.project.deployment.applying import Options, deploy
from ctrlruntime.testing import eventually


class Lever(ctrl.Object, group="install-tests.example.com", version="v1"):
    turns: int = 0


KEY = ctrl.NamespacedName("", "levers.install-tests.example.com")
BUNDLE = base64.b64encode(make_authority().pem).decode()
SERVICE = {"name": "webhook", "namespace": "levers", "path": "/convert"}
URL = "https://127.0.0.1:9/convert"


@pytest.fixture
async def client(server) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await ctrl.uninstall_crds(cluster.unfenced_client(), definition())
    await eventually(lambda: is_gone(cluster.unfenced_client()))
    await cluster.close()


async def is_gone(client: ctrl.Client) -> bool:
    return await client.find(CustomResourceDefinition, KEY) is None


def definition(*, conversion: dict[str, Any] | None = None, names: dict[str, Any] | None = None, **metadata: Any):
    tree = loose_definition(Lever)
    (version,) = tree["spec"]["versions"]
    tree["spec"]["versions"].append({**copy.deepcopy(version), "name": "v2", "storage": False})
    tree["metadata"] |= metadata
    tree["spec"]["names"] |= names or {}
    if conversion is not None:
        tree["spec"]["conversion"] = conversion
    return tree


def webhook(**config: Any) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}


async def read(client: ctrl.Client) -> dict[str, Any]:
    return (await client.get(CustomResourceDefinition, KEY)).to_wire()


async def is_established(client: ctrl.Client) -> bool:
    conditions = {each["type"]: each["status"] for each in (await read(client))["status"]["conditions"]}
    return conditions.get("Established") == "True"


def unstamped(tree: dict[str, Any]) -> dict[str, Any]:
    """A definition without what the server's controllers still write after it is served."""
    metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
    metadata["managedFields"] = [entry for entry in metadata["managedFields"] if not entry.get("subresource")]
    return {**tree, "metadata": metadata, "status": None}


async def write_as(client: ctrl.Client, owner: str, change: dict[str, Any]) -> None:
    patch = ctrl.merge_patch(change)
    await client.patch(await client.get(CustomResourceDefinition, KEY), patch, field_owner=owner)


async def config_of(client: ctrl.Client) -> dict[str, Any]:
    config = (await read(client))["spec"]["conversion"]["webhook"]["clientConfig"]
    config.get("service", {}).pop("port", None)  # a default
    return config


@pytest.mark.parametrize(
    "conversion", [None, {"strategy": "None"}, webhook(service=SERVICE)], ids=["nothing", "none", "webhook"]
)
async def test_a_second_installation_writes_nothing(client, conversion):
    wanted = definition(conversion=conversion, labels={"a": "1"}, names={"shortNames": ["lv"]})
    await ctrl.install_crds(client, wanted)
    await eventually(lambda: is_established(client))
    first = await read(client)

    await ctrl.install_crds(client, wanted)
    await ctrl.install_crds(client, {**wanted, "metadata": first["metadata"] | wanted["metadata"]})

    assert (await read(client))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_what_others_wrote_stays(client):
    wanted = definition(labels={"ours": "1"})
    await ctrl.install_crds(client, wanted)
    others = {"labels": {"helm": "yes"}, "annotations": {"cert-manager.io/inject-ca-from": "a/b"}}
    conversion = webhook(service=SERVICE, caBundle=BUNDLE)
    await write_as(client, "somebody", {"metadata": others, "spec": {"conversion": conversion}})
    before = await read(client)

    await ctrl.install_crds(client, wanted)
    unchanged = await read(client)
    await ctrl.install_crds(client, definition(labels={"ours": "2"}))
    after = await read(client)

    assert unstamped(unchanged) == unstamped(before)
    assert after["metadata"]["labels"] == {"helm": "yes", "ours": "2"}
    assert after["metadata"]["annotations"] == others["annotations"]
    assert after["spec"]["conversion"] == before["spec"]["conversion"]


async def test_what_is_said_no_longer_goes_and_what_others_changed_of_ours_comes_back(client):
    said = definition(labels={"a": "1", "b": "1"}, annotations={"x.example.com/c": "1"}, names={"shortNames": ["lv"]})
    await ctrl.install_crds(client, said)
    await write_as(client, "somebody", {"metadata": {"labels": {"a": "2"}}, "spec": {"names": {"categories": ["all"]}}})

    await ctrl.install_crds(client, definition(labels={"a": "1"}))
    after = await read(client)

    assert after["metadata"]["labels"] == {"a": "1"}
    assert not after["metadata"].get("annotations")
    assert "shortNames" not in after["spec"]["names"]
    assert after["spec"]["names"]["categories"] == ["all"]


@pytest.mark.parametrize("said", [webhook(service=SERVICE), webhook(url=URL)], ids=["service", "url"])
@pytest.mark.parametrize(
    "present", [webhook(service=SERVICE), webhook(url=URL), {"strategy": "None"}], ids=["at-service", "at-url", "none"]
)
async def test_a_conversion_that_is_said_replaces_the_one_that_is_there_but_for_the_bundle(client, present, said):
    has_webhook = "webhook" in present
    await ctrl.install_crds(client, definition())
    if has_webhook:
        present["webhook"]["clientConfig"]["caBundle"] = BUNDLE
    await write_as(client, "somebody", {"spec": {"conversion": present}})

    await ctrl.install_crds(client, definition(conversion=said))

    bundle = {"caBundle": BUNDLE} if has_webhook else {}
    assert await config_of(client) == said["webhook"]["clientConfig"] | bundle


async def test_a_conversion_that_is_said_no_longer_goes_with_the_injected_bundle(client):
    await ctrl.install_crds(client, definition(conversion=webhook(service=SERVICE)))
    bundle = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": BUNDLE}}}}}
    await write_as(client, "injector", bundle)

    await ctrl.install_crds(client, definition())
    once = await read(client)
    await ctrl.install_crds(client, definition())
    twice = await read(client)

    assert once["spec"]["conversion"] == {"strategy": "None"}
    assert unstamped(twice) == unstamped(once)


@pytest.mark.parametrize("owner", ["ctrl", "ctrlruntime"])
async def test_a_definition_that_was_installed_by_plain_updates_becomes_ours(client, owner):
    old = definition(labels={"a": "1", "b": "1"}, names={"shortNames": ["lv"]})
    await client.create(CustomResourceDefinition.from_wire(old), field_owner=owner)
    again = {"names": {"categories": ["all"]}, "versions": definition()["spec"]["versions"][:1]}
    await write_as(client, owner, {"metadata": {"labels": {"c": "1"}}, "spec": again})
    await write_as(client, owner, {"spec": {"conversion": webhook(url=URL)}})  # by an operator that runs
    await write_as(client, "somebody", {"metadata": {"labels": {"theirs": "1"}}})

    await ctrl.install_crds(client, definition(labels={"a": "1"}))
    once = await read(client)
    await ctrl.install_crds(client, definition(labels={"a": "1"}))
    twice = await read(client)

    assert once["metadata"]["labels"] == {"a": "1", "theirs": "1"}
    assert {"shortNames", "categories"}.isdisjoint(once["spec"]["names"])
    assert once["spec"]["conversion"]["webhook"]["clientConfig"] == {"url": URL}
    assert unstamped(twice) == unstamped(once)


@pytest.fixture
async def deployed(server, namespace) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """Deploys the definition alone."""
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))

    async def deployed(definition: dict[str, Any], **options: Any) -> None:
        steps: list[Any] = []
        await deploy(
            cluster, [definition], name="levers", namespace=namespace, options=Options(**options), tell=steps.append
        )

    yield deployed
    await cluster.close()


@pytest.mark.parametrize("owner", ["ctrlruntime", "somebody"])
async def test_a_deployment_replaces_a_conversion_that_development_left_and_that_of_others_when_told(
    client, deployed, owner
):
    await deployed(definition())
    await write_as(client, owner, {"spec": {"conversion": webhook(url=URL)}})
    wanted = definition(conversion=webhook(service=SERVICE))
    if owner == "somebody":
        with pytest.raises(ctrl.errors.CtrlError):
            await deployed(wanted)
        assert await config_of(client) == {"url": URL}

    await deployed(wanted, force_conflicts=owner == "somebody")

    assert await config_of(client) == {"service": SERVICE}


async def test_a_deployment_after_an_installation_says_what_holds(client, deployed):
    await ctrl.install_crds(client, definition(names={"shortNames": ["lv"]}))

    await deployed(definition(names={"shortNames": ["l"]}))

    assert (await read(client))["spec"]["names"]["shortNames"] == ["l"]
