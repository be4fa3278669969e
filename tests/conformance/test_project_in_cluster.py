"""`ctrl deploy`, `ctrl undeploy` and `ctrl doctor` on both servers; Pods are those of the node simulator."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from example_process import needs_kubectl
from shop_project import Shop, shop

from ctrlruntime.certificates import make_authority
from ctrlruntime.cli import ctrl
from ctrlruntime.errors import NotFound
from ctrlruntime.project.kustomize import render
from ctrlruntime.testing import eventually

__all__ = ["shop"]

THIRD_PARTY = Path(__file__).parents[1] / "project/third_party"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
MERGE = "application/merge-patch+json"
PART_OF = "applyset.kubernetes.io/part-of"


@pytest.fixture
def run(server):
    def command(*arguments: str, kubeconfig: Path | None = None, **options):
        return CliRunner().invoke(
            ctrl, [*arguments, "--kubeconfig", str(kubeconfig or server.kubeconfig_path)], **options
        )

    return command


@pytest.fixture
def request_(server):
    return server.connection.request


@pytest.fixture
def project(shop, server, nodes):
    """The project, and a cluster where its Pods run. What a test leaves goes after it, and nobody waits for that."""
    yield shop.write()
    server.delete_namespace(shop.namespace)
    server.uninstall_crds([shop.crd])


@pytest.fixture
def deployed(run, project):
    done = run("deploy")
    assert done.exit_code == 0, done.stderr
    return project


@pytest.fixture
def cert_manager(server):
    names = server.install_crds(THIRD_PARTY)
    yield
    server.uninstall_crds(names)


def of_deployment(shop: Shop) -> str:
    namespace, name = shop.deployment.split("/")
    return f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"


def statuses(result) -> dict[str, str]:
    return {check["name"]: check["status"] for check in json.loads(result.stdout)}


def test_it_is_deployed_unchanged_the_second_time_and_nothing_is_left_of_it(run, project, request_):
    shop = project
    expected = {(each["kind"], each["metadata"]["name"]) for each in render(Path("config/default"))}

    first = run("deploy")
    record = request_("GET", f"/api/v1/namespaces/{shop.namespace}/configmaps/{shop.name}")["metadata"]
    role = request_("GET", f"{ROLES}/{shop.name}-manager-role")["metadata"]
    second = run("deploy")
    request_("POST", shop.carts, shop.cart())
    removed = run("undeploy", "--yes")

    assert first.exit_code == 0, first.stderr
    lines = first.stdout.splitlines()
    created = [line.split() for line in lines if line.startswith("created")]
    assert {(kind, name.split("/")[-1]) for _, kind, name in created} == expected
    assert [kind for _, kind, _ in created][:2] == ["Namespace", "CustomResourceDefinition"]
    assert lines[-1] == f"ready Deployment {shop.deployment}: 1 replica available"
    assert role["labels"][PART_OF] == record["labels"]["applyset.kubernetes.io/id"]
    assert "Deployment.apps" in record["annotations"]["applyset.kubernetes.io/contains-group-kinds"].split(",")
    assert second.exit_code == 0, second.stderr
    assert {line.split()[0] for line in second.stdout.splitlines()} == {"unchanged", "ready"}
    assert removed.exit_code == 0, removed.stderr
    gone = [line.split()[1:] for line in removed.stdout.splitlines()]
    assert gone[0] == ["Cart", "default/mine"]
    assert gone[1] == ["Deployment", shop.deployment]
    assert gone[-1] == ["Namespace", shop.namespace]
    assert {(kind, name.split("/")[-1]) for kind, name in gone} == expected | {("Cart", "mine")}
    for path in (f"/api/v1/namespaces/{shop.namespace}", f"{CRDS}/{shop.crd}", f"{ROLES}/{shop.name}-manager-role"):
        with pytest.raises(NotFound):
            request_("GET", path)


def test_crds_of_other_projects_are_left_alone(run, shop, server, request_, nodes):
    def applied_by_helm(plural: str, kind: str) -> str:
        name = f"{plural}.{shop.group}"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        spec = {"group": shop.group, "scope": "Namespaced", "names": names, "versions": [version]}
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}}
        return request_("POST", f"{CRDS}?fieldManager=helm", head | {"spec": spec})["metadata"]["uid"]

    shop.write()
    with shop.source.open("a") as module:
        module.write(f'\nclass Widget(ctrl.Object, group="{shop.group}", version="v1", external=True): ...\n')
    widgets, _ = applied_by_helm("widgets", "Widget"), applied_by_helm("carts", "Cart")
    try:
        refused = [run("install"), run("deploy"), run("uninstall", "--yes")]
        taken = run("deploy", "--no-wait", "--force-conflicts")
        kept = run("uninstall", "--yes")
        removed = run("undeploy", "--yes")

        reason = f"CRDs of others: {shop.crd} was applied by helm. Set external=True"
        assert [(each.exit_code, reason in each.stderr) for each in refused] == [(1, True)] * 3
        assert (taken.exit_code, taken.stderr) == (0, "")
        assert "widgets" not in taken.stdout
        assert f"cannot uninstall CRDs of others: {shop.crd} is part of the deployment applyset-" in kept.stderr
        assert f"deleted CustomResourceDefinition {shop.crd}" in removed.stdout.splitlines()
        assert request_("GET", f"{CRDS}/widgets.{shop.group}")["metadata"]["uid"] == widgets
    finally:
        server.delete_namespace(shop.namespace)
        server.uninstall_crds([shop.crd, f"widgets.{shop.group}"])


FOREIGN = {
    "certificates": {"issuerRef": {"name": "ca"}, "secretName": "tls"},
    "httproutes": {"rules": [{"backendRefs": [{"name": "web", "port": 80}]}]},
    "issuers": {"selfSigned": {}},
    "scaledobjects": {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cron", "metadata": {}}]},
    "servicemonitors": {"selector": {}, "endpoints": []},
}
"""The spec of an object, by the plural of its kind and the file of its CRD."""


def test_imported_crds_of_five_projects_and_their_objects_stay_as_they_are(run, shop, server, request_, nodes):
    shop.write()
    names, paths = server.install_crds(THIRD_PARTY), []
    try:
        for plural, spec in FOREIGN.items():
            file = THIRD_PARTY / f"{plural}.yaml"
            crd = yaml.safe_load(file.read_text())["spec"]
            version, kind = f"{crd['group']}/{crd['versions'][0]['name']}", crd["names"]["kind"]
            path = f"/apis/{version}/namespaces/default/{plural}"
            request_("POST", path, {"apiVersion": version, "kind": kind, "metadata": {"name": "theirs"}, "spec": spec})
            paths += [f"{CRDS}/{plural}.{crd['group']}", f"{path}/theirs"]
            assert CliRunner().invoke(ctrl, ["import", str(file), "-o", f"{shop.package}/{plural}.py"]).exit_code == 0
        shop.source.write_text(
            shop.source.read_text()
            .replace("class Hooks", f"from {shop.package}.servicemonitors import ServiceMonitor\n\nclass Hooks")
            .replace(".for_(Cart).complete(rec", ".for_(Cart).owns(ServiceMonitor).complete(rec")
        )
        shop.refresh()
        before = [request_("GET", path) for path in paths]

        commands = (["install"], ["uninstall", "--yes"], ["deploy", "--no-wait"], ["undeploy", "--yes"])
        done = [run(*command) for command in commands]

        assert [(each.exit_code, each.stderr) for each in done] == [(0, "")] * 4
        assert done[0].stdout == f"installed {shop.crd}\n"
        assert [request_("GET", path) for path in paths] == before
        roles = yaml.safe_load(Path("config/rbac/role.yaml").read_text())["rules"]
        assert [rule["resources"] for rule in roles if "monitoring.coreos.com" in rule["apiGroups"]] == [
            ["servicemonitors"]
        ]
    finally:
        server.delete_namespace(shop.namespace)
        server.uninstall_crds([*names, shop.crd])


@needs_kubectl
def test_kubectl_knows_the_set_and_leaves_it_to_its_tool(deployed, server):
    kubectl = ["kubectl", "--kubeconfig", str(server.kubeconfig_path), "-n", deployed.namespace]
    apply = ["apply", "--prune", f"--applyset=configmaps/{deployed.name}", "-f", "config/samples"]

    refused = subprocess.run(
        [*kubectl, *apply], env=os.environ | {"KUBECTL_APPLYSET": "true"}, capture_output=True, text=True, check=False
    )

    assert refused.returncode == 1
    assert (
        f'"configmaps./{deployed.name}" already exists and is managed by tooling "ctrl" instead of "kubectl"'
        in refused.stderr
    )


def test_a_dry_run_stores_nothing_and_tells_what_would_change(run, project, request_):
    shop = project

    first = run("deploy", "--dry-run")

    assert first.exit_code == 0, first.stderr
    assert {line.split()[0] for line in first.stdout.splitlines()} == {"created"}
    with pytest.raises(NotFound):
        request_("GET", f"/api/v1/namespaces/{shop.namespace}")

    assert run("deploy", "--no-wait").exit_code == 0
    changed = run("deploy", "--dry-run", "--image", "other:v2")

    different = [line for line in changed.stdout.splitlines() if not line.startswith("unchanged")]
    assert different == [f"configured Deployment {shop.deployment} (dry run)"]


def test_what_is_no_longer_wanted_is_pruned_but_not_definitions_with_objects(run, deployed, request_):
    shop = deployed
    request_("POST", shop.carts, shop.cart())
    shop.write(metrics=False)
    kustomization = Path("config/default/kustomization.yaml")
    kustomization.write_text(kustomization.read_text().replace("- ../crd\n", ""))

    pruned = run("deploy")
    again = run("deploy")
    request_("DELETE", f"{shop.carts}/mine")
    last = run("deploy")

    assert pruned.exit_code == 0, pruned.stderr
    lines = pruned.stdout.splitlines()
    assert f"pruned Service {shop.namespace}/{shop.name}-controller-manager-metrics-service" in lines
    assert f"pruned ClusterRole {shop.name}-metrics-reader" in lines
    kept = f"kept CustomResourceDefinition {shop.crd}: it has 1 object. To delete it and them, run `kubectl delete crd {shop.crd}`"
    assert [line for line in lines if line.startswith(kept)]
    assert [line.split()[0] for line in again.stdout.splitlines() if line.split()[0] in {"pruned", "kept"}] == ["kept"]
    assert f"pruned CustomResourceDefinition {shop.crd}" in last.stdout.splitlines()


def test_a_field_that_another_manages_is_a_conflict_that_names_both(run, deployed, request_):
    shop = deployed
    request_("PATCH", f"{of_deployment(shop)}?fieldManager=autoscaler", {"spec": {"replicas": 2}}, content_type=MERGE)

    refused = run("deploy")
    forced = run("deploy", "--force-conflicts")

    assert refused.exit_code == 1
    assert refused.stderr.splitlines() == [
        f"error: cannot apply Deployment {shop.deployment}: autoscaler owns .spec.replicas. Change the fields there, or take them over with --force-conflicts",
        "See https://ctrlruntime.dev/reference/errors/#Conflict",
    ]
    assert forced.exit_code == 0, forced.stderr
    assert request_("GET", of_deployment(shop))["spec"]["replicas"] == 1


def test_what_ctrl_install_wrote_is_no_conflict(run, project):
    shop = project
    assert run("install").exit_code == 0
    shop.source.write_text(shop.source.read_text().replace("size: int = 1", "size: int = 5"))
    shop.refresh()

    done = run("deploy", "--no-wait")

    assert done.exit_code == 0, done.stderr
    assert f"configured CustomResourceDefinition {shop.crd}" in done.stdout.splitlines()


def test_who_may_not_is_told_verbs_and_resources_and_nothing_was_changed(run, project, server, tmp_path, request_):
    shop = project
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(server.add_user("newcomer"))

    refused = run("deploy", kubeconfig=kubeconfig)
    doctor = run("doctor", "--json", kubeconfig=kubeconfig)

    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: nothing was changed: this user has no permission to create, get, patch ")
    assert f"create, get, patch deployments.apps in namespace {shop.namespace}" in refused.stderr
    assert refused.stderr.splitlines()[1:] == ["See https://ctrlruntime.dev/reference/errors/#Forbidden"]
    assert statuses(doctor)["permissions"] == "fail"
    with pytest.raises(NotFound):
        request_("GET", f"/api/v1/namespaces/{shop.namespace}")


def test_an_object_of_another_deployment_is_not_taken(run, deployed, request_):
    shop = deployed
    role = f"{ROLES}/{shop.name}-manager-role"
    request_("PATCH", role, {"metadata": {"labels": {PART_OF: "applyset-other-v1"}}}, content_type=MERGE)

    refused = run("deploy")
    request_("PATCH", role, {"metadata": {"labels": {PART_OF: None}}}, content_type=MERGE)
    done = run("deploy")

    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        f"error: cannot deploy ClusterRole {shop.name}-manager-role: part of another deployment"
    )
    assert done.exit_code == 0, done.stderr


def test_objects_that_keep_finalizers_are_named_and_can_be_let_go(run, deployed, request_):
    shop = deployed
    request_("POST", shop.carts, shop.cart(finalizers=["example.com/held"]))

    stuck = run("undeploy", "--yes", "--timeout", "0.5")
    still = request_("GET", of_deployment(shop))
    request_("PATCH", of_deployment(shop), {"spec": {"replicas": 0}}, content_type=MERGE)
    wait_until_down(request_, shop)
    unattended = run("undeploy", "--yes")
    done = run("undeploy", "--yes", "--remove-finalizers")

    assert stuck.exit_code == 1
    assert "not deleted after 0.5 s: Cart default/mine (finalizers example.com/held)" in stuck.stderr
    assert still["metadata"].get("deletionTimestamp") is None
    assert unattended.exit_code == 1
    assert "no operator runs that could remove these finalizers" in unattended.stderr
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"deleted Namespace {shop.namespace}"


def wait_until_down(request_, shop: Shop) -> None:
    def is_down() -> bool:
        return not request_("GET", of_deployment(shop))["status"].get("availableReplicas")

    asyncio.run(eventually(is_down))


def test_undeploying_asks_before_objects_go(run, deployed, request_):
    shop = deployed
    request_("POST", shop.carts, shop.cart())

    kept = run("undeploy", input="n\n")

    assert kept.exit_code == 1
    assert f"1 object of {shop.crd} will be deleted too:\n  Cart default/mine\n" in kept.stderr
    assert request_("GET", f"{shop.carts}/mine")["metadata"]["name"] == "mine"
    assert request_("GET", of_deployment(shop))["metadata"].get("deletionTimestamp") is None


def test_the_doctor_sees_what_is_missing_and_what_has_drifted(run, project, request_):
    shop = project

    before = run("doctor", "--json")
    run("deploy")
    healthy = run("doctor", "--json")
    request_("PATCH", f"{ROLES}/{shop.name}-manager-role", {"rules": []}, content_type=MERGE)
    definition = request_("GET", f"{CRDS}/{shop.crd}")
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["colour"] = {"type": "string"}
    request_("PUT", f"{CRDS}/{shop.crd}", definition)
    ill = run("doctor", "--json")

    crd = f"crd {shop.crd}"
    assert (before.exit_code, statuses(before)[crd], statuses(before)["deployment"]) == (0, "warn", "warn")
    assert (healthy.exit_code, set(statuses(healthy).values())) == (0, {"ok"}), healthy.stdout
    assert {"permissions", "account", "image", "deployment", crd} <= statuses(healthy).keys()
    assert ill.exit_code == 1
    assert (statuses(ill)["account"], statuses(ill)[crd]) == ("fail", "fail")
    texts = {check["name"]: check["text"] for check in json.loads(ill.stdout)}
    assert f"carts.{shop.group}" in texts["account"]
    assert "field-removed at v1 colour" in texts[crd]


def test_webhooks_come_after_the_operator_and_the_doctor_compares_their_certificates(
    run, project, cert_manager, request_, server
):
    shop = project.write(webhooks=True, cert_manager=True)
    issued = make_authority("played by the test").server([f"{shop.name}-webhook-service.{shop.namespace}.svc"])
    other = make_authority("another")
    authority = issued.certificate  # the CA itself is not in the pair
    path = f"{HOOKS}/{shop.name}-mutating-webhook-configuration"

    def inject(pem: bytes) -> bool:
        configuration = request_("GET", path)
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["caBundle"] = base64.b64encode(pem).decode()
        return bool(request_("PUT", path, configuration))

    # The Secrets come from cert-manager, which the test plays: no Pod starts before they are there.
    request_("POST", "/api/v1/namespaces", {"metadata": {"name": shop.namespace}})
    encoded = base64.b64encode(authority).decode()
    data = {"tls.crt": encoded, "tls.key": base64.b64encode(issued.key).decode(), "ca.crt": encoded}
    for name in ("webhook-server-cert", "metrics-server-cert"):
        secret = {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": data}
        request_("POST", f"/api/v1/namespaces/{shop.namespace}/secrets", secret)

    hook = f"MutatingWebhookConfiguration {shop.name}-mutating-webhook-configuration"
    hurried = run("deploy", "--timeout", "5")
    assert hurried.exit_code == 1
    if server.backend == "embedded":  # where no Pod could inject the CA
        assert f"error: cannot deploy {hook}: its calls would fail. " in hurried.stderr
        run("deploy", "--no-wait")
        inject(other.pem)
        done = run("deploy")
    else:
        assert f"error: {hook} has no CA bundle after 5 s, so its calls fail. " in hurried.stderr
        injector = threading.Thread(target=lambda: asyncio.run(eventually(lambda: inject(other.pem))))
        request_("DELETE", path)
        injector.start()
        done = run("deploy")
        injector.join()
    lines = [line.split(":")[0] for line in done.stdout.splitlines()]

    wrong = run("doctor", "--json")
    inject(authority)
    right = run("doctor", "--json")
    again = run("deploy")

    assert done.exit_code == 0, done.stderr
    ready = lines.index(f"ready Deployment {shop.deployment}")
    written = "unchanged" if server.backend == "embedded" else "created"
    assert ready < lines.index(f"{written} {hook}")
    assert (statuses(wrong)["webhook"], statuses(wrong)["certificate"]) == ("fail", "ok")
    assert {statuses(right)[name] for name in ("webhook", "certificate", "service")} == {"ok"}, right.stdout
    assert again.exit_code == 0, again.stderr
    assert f"unchanged {hook}" in again.stdout
