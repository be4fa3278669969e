"""The kustomize tree of a project is taken by both servers, and `ctrl validate` has nothing to say that they do not."""

from __future__ import annotations

import copy
import secrets
from pathlib import Path

import pytest

import ctrlruntime as ctrl
from ctrlruntime.api.object import Unstructured
from ctrlruntime.errors import APIStatusError
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.project.checking import check
from ctrlruntime.project.config import refresh
from ctrlruntime.project.kustomize import render, written
from ctrlruntime.project.settings import Features, Resource, Settings

THIRD_PARTY = Path(__file__).parents[1] / "project/third_party"
API = """
    import ctrlruntime as ctrl

    class Cart(ctrl.Object, group="GROUP", version="v1"):
        size: int = 1

    class Hooks:
        async def default(self, obj): ...
        async def validate_create(self, obj): ...
        async def validate_update(self, old, new): ...
        async def validate_delete(self, obj): ...

    async def reconcile(request): ...

    ELECTION = ctrl.LeaderElection("ab12cd34.x.io")

    def setup(mgr):
        ctrl.new_controller_managed_by(mgr).for_(Cart).complete(reconcile)
        ctrl.new_webhook_managed_by(mgr).for_(Cart).with_defaulter(Hooks()).with_validator(Hooks()).complete()
"""


@pytest.fixture(scope="module")
def third_party(server):
    names = server.install_crds(THIRD_PARTY)
    yield
    server.uninstall_crds(names)


@pytest.fixture
async def client(server):
    cluster = ctrl.Cluster(ctrl.get_config(str(server.kubeconfig_path)))
    yield cluster.unfenced_client()
    await cluster.close()


def named(package: str, group: str, name: str, *, namespaced: bool, **features: bool) -> Settings:
    cart = Resource(group=group, version="v1", kind="Cart", plural="carts")
    return Settings(
        project_name=name,
        package=package,
        domain="x.io",
        namespaced=namespaced,
        features=Features(**features),
        resources=(cart,),
    )


@pytest.mark.parametrize(
    ("namespaced", "features"),
    [(False, {"prometheus": True, "network_policy": True}), (True, {"cert_manager": False})],
    ids=["everything", "own-certificate"],
)
@pytest.mark.usefixtures("third_party")
async def test_every_object_of_the_tree_is_taken(client, package, tmp_path, namespaced, features):
    name = f"tree-{secrets.token_hex(3)}"
    group = f"{name}.x.io"
    refresh(
        tmp_path, named(package(api=API.replace("GROUP", group)), group, name, namespaced=namespaced, **features)
    ).apply()
    objects = [Unstructured.from_dict(dict(each)) for each in render(tmp_path / "config/default")]
    namespace = next(each for each in objects if each.kind == "Namespace")

    taken = await client.apply(namespace, field_owner="ctrl")
    try:
        # Dry: what is checked is that the server takes it; Deployments and webhooks would stay behind otherwise.
        for each in objects:
            if each is not namespace:
                await client.apply(each, field_owner="ctrl", dry_run=True)
    finally:
        await client.delete(taken)


@pytest.mark.usefixtures("third_party")
async def test_the_namespace_takes_the_operators_pod_and_none_that_asks_for_more(client, server, package, tmp_path):
    name = f"pods-{secrets.token_hex(3)}"
    group = f"{name}.x.io"
    refresh(tmp_path, named(package(api=API.replace("GROUP", group)), group, name, namespaced=False)).apply()
    objects = {each["kind"]: dict(each) for each in render(tmp_path / "config/default")}
    template = objects["Deployment"]["spec"]["template"]
    metadata = {**template["metadata"], "name": "manager", "namespace": f"{name}-system"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    root = copy.deepcopy(pod)
    root["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True

    taken = await client.apply(Unstructured.from_dict(objects["Namespace"]), field_owner="ctrl")
    try:
        await client.apply(Unstructured.from_dict(objects["ServiceAccount"]), field_owner="ctrl")
        await client.create(Unstructured.from_dict(pod), dry_run=True)
        if server.backend == "real":  # the embedded server does not enforce Pod Security Standards
            with pytest.raises(APIStatusError, match="violates PodSecurity"):
                await client.create(Unstructured.from_dict(root), dry_run=True)
    finally:
        await client.delete(taken)


WRONG = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: default}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: c}}
    spec: {containers: [{name: A, image: b, ports: [{containerPort: 0}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: a, namespace: default}
spec: {ports: [{port: 70000, targetPort: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: a, namespace: default}
spec: {podSelector: {}, ingress: [{ports: [{port: 80, protocol: ICMP}]}]}
"""


async def test_a_check_says_what_the_server_says(client):
    objects = read_documents(WRONG, "wrong")

    said = []
    for each in objects:
        with pytest.raises(APIStatusError) as refused:
            await client.create(Unstructured.from_dict(each), dry_run=True)
        said += [(each["kind"], cause.field, cause.message) for cause in refused.value.causes]

    found = check([("wrong", written(objects))]).problems
    assert [(each.object.partition("/")[0], each.path, each.text) for each in found] == said
    assert {"spec.ports[0].port", "spec.template.metadata.labels"} <= {path for _, path, _ in said}
