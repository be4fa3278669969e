"""Values of selectors at their limits: numbers beyond 64 bits, and texts with the characters that selectors are made of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.errors import APIStatusError
from ctrlruntime.generate.crd import crds
from ctrlruntime.testing import Environment

NUMBERS = ("5", "007", "1_000", "9223372036854775807", "9223372036854775808", "99999999999999999999", "x")
LABELS = (
    "n>5",
    "n<6",
    "n>9223372036854775806",
    "n>9223372036854775807",
    "n<9223372036854775807",
    "n>9223372036854775808",
    "n<99999999999999999999",
    "n>-1",
    "n>1_000",
    "n>0x10",
    "n>",
)
TEXTS = ("plain", "", "a,b", "a=b", "a\\b", "a\\,b", "\\", ",", "=", "a!=b", "ä", " a ", "a,spec.text=b", "\\\\=")
FIELDS = (
    "spec.text=plain",
    "spec.text==plain",
    "spec.text!=plain",
    "spec.text=",
    "spec.text",
    "spec.text=a,b",
    "spec.text=a\\,b",
    "spec.text=a=b",
    "spec.text=a\\=b",
    "spec.text===",
    "spec.text=a\\b",
    "spec.text=a\\\\b",
    "spec.text=\\",
    "spec.text=a\\",
    "spec.text=\\,",
    "spec.text!",
    ",,spec.text=plain,",
    "spec.text=plain,spec.text!=plain",
    "zzz,aaa",
    "spec.text=ä",
    "spec.text=\\ä",
    "spec\\=text=plain",
    "spec.none=plain",
)


class TextSpec(ctrl.Model):
    text: str = ""


class Text(
    ctrl.Object, group="selector-values.example.com", version="v1", selectable_fields=[".spec.text"], plural="texts"
):
    spec: TextSpec = Field(default_factory=TextSpec)


@pytest.fixture
async def client(server: Environment) -> AsyncIterator[ctrl.Client]:
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)), scheme=ctrl.Scheme(Text))
    client = cluster.unfenced_client()
    await ctrl.install_crds(client, Text)
    yield client
    await ctrl.uninstall_crds(client, Text)
    await cluster.close()


def listed(server: Environment, path: str, parameter: str, texts: tuple[str, ...]) -> dict[str, Any]:
    """What the server finds by each selector: the names of the objects, or its refusal."""
    found: dict[str, Any] = {}
    for text in texts:
        try:
            answer = server.connection.request("GET", f"{path}?{parameter}={quote(text, safe='')}")
        except APIStatusError as error:
            found[text] = (error.code, str(error))
        else:
            found[text] = sorted(item["metadata"]["name"] for item in answer["items"])
    return found


def test_both_servers_read_numbers_of_labels_alike(embedded_server, real_server):
    def found(server: Environment) -> dict[str, Any]:
        namespace = server.create_namespace("numbers")
        path = f"/api/v1/namespaces/{namespace}/secrets"
        for place, number in enumerate(NUMBERS):
            server.connection.request("POST", path, {"metadata": {"name": f"n{place}", "labels": {"n": number}}})
        return listed(server, path, "labelSelector", LABELS)

    expected = found(real_server)

    assert found(embedded_server) == expected


def test_both_servers_read_field_selectors_alike(embedded_server, real_server):
    (definition,) = crds([Text])

    def found(server: Environment) -> dict[str, Any]:
        server.install_crds(definition, timeout=30)
        namespace = server.create_namespace("texts")
        path = f"/apis/selector-values.example.com/v1/namespaces/{namespace}/texts"
        head = {"apiVersion": "selector-values.example.com/v1", "kind": "Text"}
        for place, text in enumerate(TEXTS):
            server.connection.request("POST", path, {**head, "metadata": {"name": f"t{place}"}, "spec": {"text": text}})
        answers = listed(server, path, "fieldSelector", FIELDS)
        server.uninstall_crds([definition["metadata"]["name"]])
        return answers

    expected = found(real_server)

    assert found(embedded_server) == expected


async def test_every_text_is_found_by_the_client(client, namespace):
    for place, text in enumerate(TEXTS):
        await client.create(Text(metadata={"name": f"t{place}", "namespace": namespace}, spec=TextSpec(text=text)))

    found = {
        text: [each.spec.text for each in await client.list(Text, namespace=namespace, fields={"spec.text": text})]
        for text in TEXTS
    }

    assert found == {text: [text] for text in TEXTS}
