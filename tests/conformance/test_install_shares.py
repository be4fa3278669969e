"""Definitions that several managers write: what installing leaves alone, what it takes back, what it removes. On both servers."""

from __future__ import annotations

import base64
import copy
import secrets
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


BUNDLE = base64.b64encode(make_authority().pem).decode()
SERVICE = {"name": "webhook", "namespace": "levers", "path": "/convert"}
URL = "https://127.0.0.1:9/convert"


class Levers:
    """The CRD of one test. Its name is used once, since kube-apiserver may take minutes to delete a CRD."""

    def __init__(self, client: ctrl.Client) -> None:
        self.client = client
        self.group = f"x{secrets.token_hex(4)}.example.com"
        self.key = ctrl.NamespacedName("", f"levers.{self.group}")

    def definition(
        self, *, conversion: dict[str, Any] | None = None, names: dict[str, Any] | None = None, **metadata: Any
    ) -> dict[str, Any]:
        tree = loose_definition(Lever)
        spec = tree["spec"]
        spec["group"] = self.group
        (version,) = spec["versions"]
        spec["versions"].append({**copy.deepcopy(version), "name": "v2", "storage": False})
        spec["names"] |= names or {}
        if conversion is not None:
            spec["conversion"] = conversion
        tree["metadata"] |= {"name": self.key.name, **metadata}
        return tree

    async def install(self, tree: dict[str, Any]) -> None:
        await ctrl.install_crds(self.client, tree)

    async def get(self) -> CustomResourceDefinition:
        return await self.client.get(CustomResourceDefinition, self.key)

    async def read(self) -> dict[str, Any]:
        return (await self.get()).to_dict()

    async def is_established(self) -> bool:
        conditions = {each["type"]: each["status"] for each in (await self.read())["status"]["conditions"]}
        return conditions.get("Established") == "True"

    async def write_as(self, owner: str, change: dict[str, Any]) -> None:
        await self.client.patch(await self.get(), ctrl.merge_patch(change), field_owner=owner)

    async def client_config(self) -> dict[str, Any]:
        config = (await self.read())["spec"]["conversion"]["webhook"]["clientConfig"]
        config.get("service", {}).pop("port", None)  # a default
        return config


@pytest.fixture
async def levers(server) -> AsyncIterator[Levers]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    levers = Levers(cluster.unfenced_client())
    yield levers
    await ctrl.uninstall_crds(levers.client, levers.definition())
    await cluster.close()


def webhook(**config: Any) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": config}}


def unstamped(tree: dict[str, Any]) -> dict[str, Any]:
    """A definition without what the server's controllers still write after it is served."""
    metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
    metadata["managedFields"] = [entry for entry in metadata["managedFields"] if not entry.get("subresource")]
    return {**tree, "metadata": metadata, "status": None}


@pytest.mark.parametrize(
    "conversion", [None, {"strategy": "None"}, webhook(service=SERVICE)], ids=["nothing", "none", "webhook"]
)
async def test_a_second_installation_writes_nothing(levers, conversion):
    wanted = levers.definition(conversion=conversion, labels={"a": "1"}, names={"shortNames": ["lv"]})
    await levers.install(wanted)
    await eventually(levers.is_established)
    first = await levers.read()

    await levers.install(wanted)
    await levers.install({**wanted, "metadata": first["metadata"] | wanted["metadata"]})

    assert (await levers.read())["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_what_others_wrote_stays(levers):
    wanted = levers.definition(labels={"ours": "1"})
    await levers.install(wanted)
    others = {"labels": {"helm": "yes"}, "annotations": {"cert-manager.io/inject-ca-from": "a/b"}}
    conversion = webhook(service=SERVICE, caBundle=BUNDLE)
    await levers.write_as("somebody", {"metadata": others, "spec": {"conversion": conversion}})
    before = await levers.read()

    await levers.install(wanted)
    unchanged = await levers.read()
    await levers.install(levers.definition(labels={"ours": "2"}))
    after = await levers.read()

    assert unstamped(unchanged) == unstamped(before)
    assert after["metadata"]["labels"] == {"helm": "yes", "ours": "2"}
    assert after["metadata"]["annotations"] == others["annotations"]
    assert after["spec"]["conversion"] == before["spec"]["conversion"]


async def test_what_is_said_no_longer_goes_and_what_others_changed_of_ours_comes_back(levers):
    said = levers.definition(
        labels={"a": "1", "b": "1"}, annotations={"x.example.com/c": "1"}, names={"shortNames": ["lv"]}
    )
    await levers.install(said)
    await levers.write_as("somebody", {"metadata": {"labels": {"a": "2"}}, "spec": {"names": {"categories": ["all"]}}})

    await levers.install(levers.definition(labels={"a": "1"}))
    after = await levers.read()

    assert after["metadata"]["labels"] == {"a": "1"}
    assert not after["metadata"].get("annotations")
    assert "shortNames" not in after["spec"]["names"]
    assert after["spec"]["names"]["categories"] == ["all"]


@pytest.mark.parametrize("said", [webhook(service=SERVICE), webhook(url=URL)], ids=["service", "url"])
@pytest.mark.parametrize(
    "present", [webhook(service=SERVICE), webhook(url=URL), {"strategy": "None"}], ids=["at-service", "at-url", "none"]
)
async def test_a_conversion_that_is_said_replaces_the_one_that_is_there_but_for_the_bundle(levers, present, said):
    has_webhook = "webhook" in present
    await levers.install(levers.definition())
    if has_webhook:
        present["webhook"]["clientConfig"]["caBundle"] = BUNDLE
    await levers.write_as("somebody", {"spec": {"conversion": present}})

    await levers.install(levers.definition(conversion=said))

    bundle = {"caBundle": BUNDLE} if has_webhook else {}
    assert await levers.client_config() == said["webhook"]["clientConfig"] | bundle


async def test_a_conversion_that_is_said_no_longer_goes_with_the_injected_bundle(levers):
    await levers.install(levers.definition(conversion=webhook(service=SERVICE)))
    bundle = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": BUNDLE}}}}}
    await levers.write_as("injector", bundle)

    await levers.install(levers.definition())
    once = await levers.read()
    await levers.install(levers.definition())
    twice = await levers.read()

    assert once["spec"]["conversion"] == {"strategy": "None"}
    assert unstamped(twice) == unstamped(once)


@pytest.mark.parametrize("owner", ["ctrl", "ctrlruntime"])
async def test_a_definition_that_was_installed_by_plain_updates_becomes_ours(levers, owner):
    old = levers.definition(labels={"a": "1", "b": "1"}, names={"shortNames": ["lv"]})
    await levers.client.create(CustomResourceDefinition.from_dict(old), field_owner=owner)
    again = {"names": {"categories": ["all"]}, "versions": levers.definition()["spec"]["versions"][:1]}
    await levers.write_as(owner, {"metadata": {"labels": {"c": "1"}}, "spec": again})
    await levers.write_as(owner, {"spec": {"conversion": webhook(url=URL)}})  # by an operator that runs
    await levers.write_as("somebody", {"metadata": {"labels": {"theirs": "1"}}})

    await levers.install(levers.definition(labels={"a": "1"}))
    once = await levers.read()
    await levers.install(levers.definition(labels={"a": "1"}))
    twice = await levers.read()

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
    levers, deployed, owner
):
    await deployed(levers.definition())
    await levers.write_as(owner, {"spec": {"conversion": webhook(url=URL)}})
    wanted = levers.definition(conversion=webhook(service=SERVICE))
    if owner == "somebody":
        with pytest.raises(ctrl.errors.CtrlError):
            await deployed(wanted)
        assert await levers.client_config() == {"url": URL}

    await deployed(wanted, force_conflicts=owner == "somebody")

    assert await levers.client_config() == {"service": SERVICE}


async def test_a_deployment_after_an_installation_says_what_holds(levers, deployed):
    await levers.install(levers.definition(names={"shortNames": ["lv"]}))

    await deployed(levers.definition(names={"shortNames": ["l"]}))

    assert (await levers.read())["spec"]["names"]["shortNames"] == ["l"]
