"""Checks of the doctor that need no server, or one with what a test puts there."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.apiserver import Options
from ctrlruntime.certificates import make_authority
from ctrlruntime.project.config import made_by
from ctrlruntime.project.deployment.access import Access
from ctrlruntime.project.doctor import Check, Subject
from ctrlruntime.project.doctor.cluster import accesses, reach_check
from ctrlruntime.project.doctor.definitions import definition_checks
from ctrlruntime.project.doctor.webhooks import webhook_checks
from ctrlruntime.project.doctor.workload import deployed, workload_checks
from ctrlruntime.project.settings import Settings
from ctrlruntime.rest.tls import certificate_facts
from ctrlruntime.testing import Environment, eventually

SETTINGS = Settings(project_name="shop", package="shop", domain="x.io")
MOUNTED = {
    "args": ["--webhook-cert-path=$(WEBHOOK_CERT_PATH)"],
    "env": [{"name": "WEBHOOK_CERT_PATH", "value": "/certs"}],
    "volumeMounts": [{"name": "tmp", "mountPath": "/scratch"}, {"name": "cert", "mountPath": "/certs"}],
}
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces"
VOLUMES = [{"name": "tmp", "emptyDir": {}}, {"name": "cert", "secret": {"secretName": "serving"}}]


def obj(api_version: str, kind: str, name: str, namespace: str = "", **content) -> dict:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def deployment(namespace: str = "shop-system", container: dict | None = None, **spec) -> dict:
    pod = {
        "serviceAccountName": "operator",
        "containers": [{"name": "manager", "image": "shop:v1", **(container or {})}],
    }
    labels = {"app": "shop"}
    template = {"metadata": {"labels": labels}, "spec": pod | spec}
    return obj(
        "apps/v1", "Deployment", "operator", namespace, spec={"selector": {"matchLabels": labels}, "template": template}
    )


def subject(*documents: dict) -> Subject:
    return Subject(Path(), SETTINGS, documents)


@pytest.fixture(scope="module")
def server() -> Iterator[Environment]:
    with Environment(backend="embedded", embedded=Options(metrics=True)) as environment:
        yield environment


@pytest.fixture
async def cluster(server) -> AsyncIterator[ctrl.Cluster]:
    made = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield made
    await made.close()


async def gathered(checks: AsyncIterator[Check]) -> list[Check]:
    return [check async for check in checks]


# Roles


def test_what_the_operator_is_granted_comes_from_the_roles_bound_to_its_account():
    rbac = "rbac.authorization.k8s.io/v1"
    account = [{"kind": "ServiceAccount", "name": "operator", "namespace": "shop-system"}]
    other = [{"kind": "ServiceAccount", "name": "somebody", "namespace": "shop-system"}]
    carts = {"apiGroups": ["x.io"], "resources": ["carts", "carts/status"], "verbs": ["get"]}
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["update"],
        "resourceNames": ["one"],
    }
    pages = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    documents = [
        deployment(),
        obj(rbac, "ClusterRole", "manager", rules=[carts, pages]),
        obj(rbac, "ClusterRole", "editor", rules=[{**carts, "verbs": ["delete"]}]),
        obj(rbac, "Role", "election", "shop-system", rules=[leases]),
        obj(rbac, "ClusterRoleBinding", "a", subjects=account, roleRef={"kind": "ClusterRole", "name": "manager"}),
        obj(rbac, "ClusterRoleBinding", "b", subjects=other, roleRef={"kind": "ClusterRole", "name": "editor"}),
        obj(rbac, "RoleBinding", "c", "shop-system", subjects=account, roleRef={"kind": "Role", "name": "election"}),
    ]

    assert accesses(subject(*documents)) == {
        Access("get", "x.io", "carts"),
        Access("get", "x.io", "carts/status"),
        Access("get", path="/metrics"),
        Access("update", "coordination.k8s.io", "leases", "shop-system", "one"),
    }
    assert accesses(subject()) == set()


# Reaching the cluster


@pytest.mark.parametrize(("version", "status"), [("v1.29.9+k3s1", "fail"), ("v1.30.0", "ok"), ("v2.0.0", "ok")])
async def test_an_old_cluster_is_told(cluster, monkeypatch, version, status):
    async def answer(*_arguments, **_options):
        return type("Answer", (), {"body": json.dumps({"gitVersion": version}).encode()})

    monkeypatch.setattr(cluster.transport, "request", answer)

    check = await reach_check(cluster)

    assert check.status == status
    assert version in check.text


# Definitions


async def test_definitions_that_are_missing_older_or_not_migrated(cluster, server, package, tmp_path):
    name = package(
        api="""
        import ctrlruntime as ctrl
        class Old(ctrl.Object, group="doctor.example.com", version="v1"):
            size: int = 1
            colour: str = ""
        class Stored(ctrl.Object, group="doctor.example.com", version="v1"):
            size: int = 1
        class Missing(ctrl.Object, group="doctor.example.com", version="v1"):
            size: int = 1
        """
    )
    looked_at = Subject(tmp_path, Settings(project_name="shop", package=name, domain="x.io"))
    made = {each["spec"]["names"]["kind"]: each for each in made_by(tmp_path, looked_at.settings).definitions}
    del made["Old"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["colour"]
    server.install_crds([made["Old"], made["Stored"]])
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{made['Stored']['metadata']['name']}/status"
    patch = {"status": {"storedVersions": ["v1alpha1", "v1"]}}
    server.connection.request("PATCH", path, patch, content_type="application/merge-patch+json")

    checks = {
        check.name.split(".")[0]: check
        for check in await gathered(definition_checks(cluster.unfenced_client(), looked_at, is_deployed=True))
    }

    assert checks["crd missings"].status == "fail"
    assert (checks["crd olds"].status, checks["crd olds"].advice) == ("warn", "Run `ctrl install` or `ctrl deploy`")
    assert "field-added at v1 colour" in checks["crd olds"].text
    assert (checks["crd storeds"].status, checks["crd storeds"].advice) == (
        "warn",
        "Run `ctrl storage migrate storeds`",
    )
    assert checks["crd storeds"].text == "objects may be stored as v1alpha1, v1"


# Webhooks


@pytest.mark.parametrize(
    ("age", "status"), [(timedelta(0), "ok"), (timedelta(days=360), "warn"), (timedelta(days=400), "fail")]
)
async def test_a_certificate_is_told_before_it_expires(cluster, server, age, status):
    namespace = server.create_namespace()
    pair = make_authority(lifetime=500 * 86400.0).server(["x"])
    data = {"tls.crt": base64.b64encode(pair.certificate).decode(), "tls.key": base64.b64encode(pair.key).decode()}
    secret = {"metadata": {"name": "serving"}, "type": "kubernetes.io/tls", "data": data}
    server.connection.request("POST", f"/api/v1/namespaces/{namespace}/secrets", secret)
    hook = obj("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "nowhere")
    operator = deployment(namespace, MOUNTED, volumes=VOLUMES)
    until = certificate_facts(pair.certificate).not_after
    now = until - timedelta(days=365) + age

    checks = await gathered(webhook_checks(cluster.unfenced_client(), subject(operator, hook), now=now))

    assert [(check.name, check.status) for check in checks] == [("certificate", status), ("webhook", "fail")]


async def test_a_webhook_without_bundle_and_a_service_without_endpoints_fail(cluster, server):
    config = {"service": {"name": "nobody", "namespace": "default", "path": "/x"}}
    webhook = {
        "name": "a.example.com",
        "clientConfig": config,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [
            {"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["CREATE"]}
        ],
    }
    hook = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "doctor", webhooks=[webhook])
    server.connection.request("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook)

    checks = await gathered(webhook_checks(cluster.unfenced_client(), subject(hook)))

    assert [(check.name, check.status) for check in checks] == [("webhook", "fail"), ("service", "fail")]
    assert "has no CA bundle" in checks[0].text


# The operator


@pytest.mark.parametrize(("used", "status"), [("40Mi", "ok"), ("90Mi", "warn")])
async def test_memory_that_comes_near_its_limit_is_told(cluster, server, used, status):
    namespace = server.create_namespace()
    operator = deployment(namespace, {"resources": {"limits": {"memory": "100Mi"}}}, serviceAccountName="default")
    annotations = {"simulation.ctrlruntime.dev/usage": f"memory={used}"}
    operator["spec"]["template"]["metadata"]["annotations"] = annotations
    server.connection.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", operator)
    await eventually(lambda: server.connection.request("GET", f"{METRICS}/{namespace}/pods")["items"], timeout=20)
    found = await deployed(cluster, subject(operator))
    assert found is not None

    checks = {check.name: check for check in await gathered(workload_checks(cluster, subject(operator), found))}

    assert checks["usage"].status == status
    assert f"uses {used.removesuffix('Mi')} MiB of 100 MiB" in checks["usage"].text


async def test_another_image_and_an_end_at_the_memory_limit_are_told(cluster, server):
    namespace = server.create_namespace()
    request, operator = server.connection.request, deployment(namespace, {"image": "shop:v2"})
    operator["spec"]["replicas"] = 0
    request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", operator)
    pod = {
        "metadata": {"name": "one", "labels": {"app": "shop"}},
        "spec": {"containers": [{"name": "manager", "image": "shop:v2"}], "schedulerName": "nobody"},
    }
    request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    ended = {"exitCode": 137, "reason": "OOMKilled"}
    status = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "manager",
                "image": "shop:v2",
                "imageID": "",
                "ready": True,
                "restartCount": 2,
                "lastState": {"terminated": ended},
            }
        ],
    }
    request(
        "PATCH",
        f"/api/v1/namespaces/{namespace}/pods/one/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )
    looked_at = subject(deployment(namespace))
    found = await deployed(cluster, looked_at)
    assert found is not None

    checks = {check.name: check for check in await gathered(workload_checks(cluster, looked_at, found))}

    assert (checks["image"].status, checks["restarts"].status) == ("warn", "fail")
    assert "shop:v2 runs, but config/default has shop:v1" in checks["image"].text
    assert "ended at its memory limit (2 restarts)" in checks["restarts"].text
