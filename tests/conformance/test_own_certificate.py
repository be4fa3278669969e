"""A project without cert-manager: the deployed operator makes its certificate, keeps it in a Secret and has the API server trust it.

The process has the Deployment's variables and the token of its ServiceAccount, so what the generated roles leave out fails here.
"""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import socket
import ssl

import pytest
from scaffolded import ROOT, InCluster, Shell

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/carts.webapp.x.io"
SECRET = "/api/v1/namespaces/shop-system/secrets/webhook-server-cert"
HOST = "shop-webhook-service.shop-system.svc"
KIND = ("--group", "webapp", "--kind", "Cart", "--version")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def scaffold(tmp_path_factory, forks):
    """A project with every sort of webhook, made once for both servers."""
    folder = tmp_path_factory.mktemp("own-certificate")
    shell = Shell(folder, ROOT, folder / "none", forks)
    shell.ctrl("init", "--domain", "x.io", "--project-name", "shop", "--license", "none")
    for version in ("v1", "v2"):
        shell.ctrl("create", "api", *KIND, version)
    shell.ctrl("create", "webhook", *KIND, "v1", "--defaulting", "--validation", "--conversion", "--spoke", "v2")
    shell.ctrl("edit", "--no-cert-manager")
    return folder


@pytest.fixture
def operator(server, nodes, scaffold, tmp_path, forks):
    """The deployed operator, not started yet; it does not outlive the test, and neither does what it was deployed with."""
    folder = shutil.copytree(scaffold, tmp_path / "project")
    shell = Shell(folder, ROOT, server.kubeconfig_path, forks)
    shell.ctrl("deploy", "--no-wait")  # the webhooks are trusted once the operator runs
    running = InCluster(server, shell, "shop")
    yield running
    running.stop()
    shell.try_ctrl("undeploy", "--yes", "--remove-finalizers", "--ignore-not-found")


def client_configs(operator):
    """What the API server knows of how to call the operator, by who calls."""
    found = {}
    for kind in ("mutating", "validating"):
        path = f"{ADMISSION}/{kind}webhookconfigurations/shop-{kind}-webhook-configuration"
        (found[kind],) = (each["clientConfig"] for each in operator.request("GET", path)["webhooks"])
    found["conversion"] = operator.request("GET", DEFINITION)["spec"]["conversion"]["webhook"]["clientConfig"]
    return found


def call(operator, client, body):
    """Post a review as the API server does: to the Service's name, trusting nothing but the bundle of this webhook."""
    service = client["service"]
    context = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
    plain = socket.create_connection(("127.0.0.1", operator.port), timeout=120)
    name = f"{service['name']}.{service['namespace']}.svc"
    with context.wrap_socket(plain, server_hostname=name) as tls:
        connection = http.client.HTTPConnection(name)
        connection.sock = tls
        connection.request("POST", service["path"], json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        return json.load(answer)["response"]


def cart(version):
    metadata = {"name": "mine", "namespace": "default"}
    return {"apiVersion": f"webapp.x.io/{version}", "kind": "Cart", "metadata": metadata, "spec": {}}


def admission():
    request = {
        "uid": "one",
        "kind": {"group": "webapp.x.io", "version": "v1", "kind": "Cart"},
        "resource": {"group": "webapp.x.io", "version": "v1", "resource": "carts"},
        "name": "mine",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {"username": "me"},
        "object": cart("v1"),
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def conversion():
    request = {"uid": "two", "desiredAPIVersion": "webapp.x.io/v2", "objects": [cart("v1")]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def test_the_certificate_is_kept_trusted_and_used_again_with_the_rights_of_the_generated_roles(operator):
    assert not any("caBundle" in each for each in client_configs(operator).values())

    operator.start()
    await operator.says("serving webhooks")

    kept = operator.request("GET", SECRET)
    clients = client_configs(operator)
    assert kept["type"] == "kubernetes.io/tls"
    assert {each["caBundle"] for each in clients.values()} == {kept["data"]["ca.crt"]}
    assert {f"{each['service']['name']}.{each['service']['namespace']}.svc" for each in clients.values()} == {HOST}
    for kind in ("mutating", "validating"):
        assert call(operator, clients[kind], admission())["allowed"] is True
    (converted,) = call(operator, clients["conversion"], conversion())["convertedObjects"]
    assert converted["apiVersion"] == "webapp.x.io/v2"
    assert "forbidden" not in operator.log.read_text()
    assert operator.stop() == 0

    operator.shell.ctrl("deploy")  # leaves what was injected
    assert client_configs(operator) == clients
    operator.start()
    await operator.says("serving webhooks")

    assert operator.request("GET", SECRET)["data"] == kept["data"]
    assert call(operator, clients["mutating"], admission())["allowed"] is True
