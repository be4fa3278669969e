"""The kustomize tree of a project: which objects each switch adds, and that kubectl and the schemas agree."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_documents
from ctrlruntime.project.checking import check
from ctrlruntime.project.config import DERIVED_MARK, derived_files, first_files, made_by, refresh
from ctrlruntime.project.config.assembly import image_of
from ctrlruntime.project.config.deployment import VARIABLES
from ctrlruntime.project.editing import edit
from ctrlruntime.project.kustomize import differences, render, written
from ctrlruntime.project.settings import PYPROJECT, Features, Resource, Settings, read_settings, write_settings

THIRD_PARTY = Path(__file__).parent / "third_party"
API = """
    import ctrlruntime as ctrl
    from pydantic import Field

    class CartStatus(ctrl.Model):
        items: int = 0

    class Cart(ctrl.Object, group="webapp.x.io", version="v1"):
        status: CartStatus = Field(default_factory=CartStatus)
"""
V2 = """
    import ctrlruntime as ctrl

    class Cart(ctrl.Object, group="webapp.x.io", version="v2", storage=True):
        note: str = ""
"""
CONTROLLER = """
    import ctrlruntime as ctrl
    from .api import Cart

    ELECTION = ctrl.LeaderElection("ab12cd34.x.io")

    @ctrl.rbac(resources="configmaps", verbs="get")
    @ctrl.rbac(resources="nodes", verbs="get")
    async def reconcile(request): ...

    def setup(mgr):
        ctrl.new_controller_managed_by(mgr).for_(Cart).complete(reconcile)
"""
SHARDED = CONTROLLER.replace(".complete(", ".with_options(sharded=True).complete(")
WEBHOOKS = (
    SHARDED.replace(
        "from .api import Cart", "from . import v2\n    from .api import Cart\n    from ctrlruntime.api import core"
    )
    + """
        conversion = ctrl.webhook.Conversion(v2.Cart).spoke(Cart, to_hub=lambda cart: cart, from_hub=lambda cart: cart)
        carts = ctrl.new_webhook_managed_by(mgr).for_(v2.Cart).with_defaulter(Hooks()).with_validator(Hooks())
        carts.with_conversion(conversion).complete()
        ctrl.new_webhook_managed_by(mgr).for_(core.Pod).with_defaulter(Hooks()).complete()

    class Hooks:
        async def default(self, obj): ...
        async def validate_create(self, obj): ...
        async def validate_update(self, old, new): ...
        async def validate_delete(self, obj): ...
"""
)
CART = Resource(group="webapp.x.io", version="v1", kind="Cart", plural="carts", controller=True)

BASE = {
    "Namespace/shop-system",
    "CustomResourceDefinition/carts.webapp.x.io",
    "ServiceAccount/shop-controller-manager",
    "ClusterRole/shop-manager-role",
    "ClusterRoleBinding/shop-manager-rolebinding",
    "Role/shop-leader-election-role",
    "RoleBinding/shop-leader-election-rolebinding",
    "ClusterRole/shop-cart-admin-role",
    "ClusterRole/shop-cart-editor-role",
    "ClusterRole/shop-cart-viewer-role",
    "Deployment/shop-controller-manager",
}
WITH_WEBHOOKS = {
    "Service/shop-webhook-service",
    "MutatingWebhookConfiguration/shop-mutating-webhook-configuration",
    "ValidatingWebhookConfiguration/shop-validating-webhook-configuration",
}
WITH_CERTIFICATES = {"Issuer/shop-selfsigned-issuer", "Certificate/shop-serving-cert"}
WITH_OWN_CERTIFICATE = {
    f"{kind}/shop-webhook-certificate-{name}"
    for kind, name in (
        ("Role", "role"), ("RoleBinding", "rolebinding"), ("ClusterRole", "role"), ("ClusterRoleBinding", "rolebinding"),
    )
}  # fmt: skip
WITH_METRICS = {
    "Service/shop-controller-manager-metrics-service",
    "ClusterRole/shop-metrics-auth-role",
    "ClusterRoleBinding/shop-metrics-auth-rolebinding",
    "ClusterRole/shop-metrics-reader",
}


def settings(
    package: str,
    *,
    namespaced: bool = False,
    sharding: bool = False,
    resources: tuple[Resource, ...] = (CART,),
    **features: bool,
):
    return Settings(
        project_name="shop",
        package=package,
        domain="x.io",
        image="shop:latest",
        namespaced=namespaced,
        sharding=sharding,
        features=Features(**features),
        resources=resources,
    )


def tree(folder: Path, wanted: Settings) -> Path:
    refresh(folder, wanted).apply()
    return folder / "config/default"


def rendered(folder: Path, wanted: Settings) -> dict[str, dict]:
    """The objects of the default kustomization by kind and name."""
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in render(tree(folder, wanted))}


@pytest.fixture
def shop(package):
    return package(api=API, controller=CONTROLLER)


@pytest.fixture
def hooked(package):
    return package(api=API, v2=V2, controller=WEBHOOKS)


def manager(objects):
    (container,) = objects["Deployment/shop-controller-manager"]["spec"]["template"]["spec"]["containers"]
    return container


def variables(objects):
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in manager(objects)["env"]}


# Every combination of switches

SWITCHES = ("webhooks", "cert_manager", "metrics", "prometheus", "namespaced")


@pytest.mark.parametrize(
    "on", [tuple(itertools.compress(SWITCHES, bits)) for bits in itertools.product((0, 1), repeat=5)], ids="+".join
)
def test_switches_decide_which_objects_there_are(request, tmp_path, on):
    on = set(on)
    package = request.getfixturevalue("hooked" if "webhooks" in on else "shop")
    if "namespaced" in on:
        on.add("network_policy")  # the two have nothing to do with each other
    features = {name: name in on for name in ("cert_manager", "metrics", "network_policy", "prometheus")}

    folder = tree(tmp_path, settings(package, namespaced="namespaced" in on, **features))

    objects = render(folder)
    assert {f"{each['kind']}/{each['metadata']['name']}" for each in objects} == expected(on)
    third_party = [(str(path), path.read_text()) for path in sorted(THIRD_PARTY.iterdir())]
    checked = check([*third_party, ("rendered", written(objects))])
    assert (checked.objects, checked.problems, checked.skipped) == (len(objects) + len(third_party), [], [])


def expected(on: set[str]) -> set[str]:
    found = set(BASE)
    if "namespaced" in on:
        found |= {"Role/shop-manager-role", "RoleBinding/shop-manager-rolebinding"}
    if "metrics" in on:
        found |= WITH_METRICS
    if "webhooks" in on:
        found |= WITH_WEBHOOKS | (WITH_CERTIFICATES if "cert_manager" in on else WITH_OWN_CERTIFICATE)
    if {"webhooks", "cert_manager", "metrics"} <= on:
        found.add("Certificate/shop-metrics-certs")
    if {"prometheus", "metrics"} <= on:
        found.add("ServiceMonitor/shop-controller-manager-metrics-monitor")
    for part in ("metrics", "webhook"):
        if "network_policy" in on and {part, f"{part}s"} & on:
            found.add(f"NetworkPolicy/shop-allow-{part}-traffic")
    return found


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="compares with kubectl kustomize, and there is no kubectl")
@pytest.mark.parametrize(
    "features",
    [
        {"prometheus": True, "network_policy": True},
        {"cert_manager": False, "namespaced": True, "prometheus": True},
        {"metrics": False},
        {"sharding": True},
    ],
    ids="+".join,
)
@pytest.mark.parametrize("name", ["default", "manifests", "samples", "overlay"])
def test_kubectl_renders_the_same(hooked, tmp_path, features, name):
    folder = tree(tmp_path, settings(hooked, **features)).parent / name
    overlay(folder.parent)

    theirs = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True, timeout=120)

    assert list(differences(read_documents(theirs.stdout, "kubectl"), render(folder), given_name="kubectl")) == []


def overlay(config):
    """Write the overlay of the documentation, with another namespace and a prefix; return its folder."""
    text = "namespace: test\nnamePrefix: test-\nresources: [../default]\ntransformers: [../replacements]\n"
    (config / "overlay").mkdir()
    (config / "overlay/kustomization.yaml").write_text(text)
    return config / "overlay"


@pytest.mark.parametrize("cert_manager", [True, False])
def test_an_overlay_may_have_another_namespace_and_other_names(hooked, tmp_path, cert_manager):
    config = tree(tmp_path, settings(hooked, cert_manager=cert_manager, prometheus=True)).parent

    text = written(render(overlay(config)))

    assert "shop-system" not in text
    assert "values:\n      - test\n" in text
    if cert_manager:
        assert "- test-shop-webhook-service.test.svc.cluster.local" in text
        assert text.count("cert-manager.io/inject-ca-from: test/test-shop-serving-cert") == 3
        assert "serverName: test-shop-controller-manager-metrics-service.test.svc" in text
    else:
        assert "name: WEBHOOK_SERVICE\n          value: test-shop-webhook-service" in text


# What the parts say


def test_a_policy_says_who_may_connect_and_why(hooked, tmp_path):
    folder = tree(tmp_path, settings(hooked)).parent / "network-policy"

    assert "# Any client may call the webhooks. The API server" in (folder / "allow-webhook-traffic.yaml").read_text()
    assert "label namespace monitoring metrics=enabled" in (folder / "allow-metrics-traffic.yaml").read_text()


def test_the_pod_asks_for_nothing_a_restricted_namespace_refuses(shop, tmp_path):
    objects = rendered(tmp_path, settings(shop))

    labels = objects["Namespace/shop-system"]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = objects["Deployment/shop-controller-manager"]["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert manager(objects)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["volumes"] == [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    assert manager(objects)["resources"]["requests"]["memory"] == "128Mi"
    assert manager(objects)["resources"]["limits"]["memory"] == "256Mi"


@pytest.mark.usefixtures("sets_up_log")
def test_the_manager_understands_its_arguments(hooked, tmp_path):
    from ctrlruntime.manager.flags import parse_flags

    objects = rendered(tmp_path, settings(hooked))

    said = {name: value for name, value in variables(objects).items() if isinstance(value, str)}
    flags = parse_flags(
        [re.sub(r"\$\((\w+)\)", lambda found: said[found[1]], each) for each in manager(objects)["args"]], environ={}
    )
    assert (flags.leader_elect, flags.metrics_bind_address, flags.metrics_secure) == (True, ":8443", True)
    assert flags.webhook_cert_path == "/tmp/k8s-webhook-server/serving-certs"
    assert flags.metrics_cert_path == "/tmp/k8s-metrics-server/metrics-certs"
    assert flags.health_probe_bind_address == ":8081"


def test_without_switches_variables_are_off(shop, tmp_path):
    objects = rendered(tmp_path, settings(shop, metrics=False))

    assert variables(objects) == {"METRICS_BIND_ADDRESS": "0", "METRICS_CERT_PATH": "", "WEBHOOK_CERT_PATH": ""}
    assert [port["containerPort"] for port in manager(objects)["ports"]] == [8081]


def test_the_variables_of_the_tree_are_listed(hooked, tmp_path):
    switched = [{}, {"cert_manager": False, "namespaced": True, "sharding": True}]

    found = [set(variables(rendered(tmp_path / str(len(on)), settings(hooked, **on)))) for on in switched]

    assert set().union(*found) == VARIABLES


def test_certificates_are_for_the_services_and_what_trusts_them_says_so(hooked, tmp_path):
    objects = rendered(tmp_path, settings(hooked, prometheus=True))

    assert objects["Certificate/shop-serving-cert"]["spec"] == {
        "dnsNames": ["shop-webhook-service.shop-system.svc", "shop-webhook-service.shop-system.svc.cluster.local"],
        "issuerRef": {"kind": "Issuer", "name": "shop-selfsigned-issuer"},
        "secretName": "webhook-server-cert",
    }
    metrics = "shop-controller-manager-metrics-service.shop-system.svc"
    assert objects["Certificate/shop-metrics-certs"]["spec"]["dnsNames"] == [metrics, f"{metrics}.cluster.local"]
    (endpoint,) = objects["ServiceMonitor/shop-controller-manager-metrics-monitor"]["spec"]["endpoints"]
    assert endpoint["tlsConfig"]["serverName"] == metrics
    for name in (*(WITH_WEBHOOKS - {"Service/shop-webhook-service"}), "CustomResourceDefinition/carts.webapp.x.io"):
        annotations = objects[name]["metadata"]["annotations"]
        assert annotations["cert-manager.io/inject-ca-from"] == "shop-system/shop-serving-cert"


def test_the_conversion_calls_the_service_by_its_final_name(hooked, tmp_path):
    definition = rendered(tmp_path, settings(hooked))["CustomResourceDefinition/carts.webapp.x.io"]

    service = definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
    assert (service["name"], service["namespace"]) == ("shop-webhook-service", "shop-system")


def test_without_cert_manager_the_operator_learns_the_names_it_keeps_a_certificate_for(hooked, tmp_path):
    objects = rendered(tmp_path, settings(hooked, cert_manager=False, metrics=False))

    said = variables(objects)
    assert said["WEBHOOK_CERT_PATH"] == ""
    assert {name: value for name, value in said.items() if name.startswith("WEBHOOK_") and value} == {
        "WEBHOOK_SECRET": "webhook-server-cert",
        "WEBHOOK_SERVICE": "shop-webhook-service",
        "WEBHOOK_MUTATING": "shop-mutating-webhook-configuration",
        "WEBHOOK_VALIDATING": "shop-validating-webhook-configuration",
        "WEBHOOK_DEFINITIONS": "carts.webapp.x.io",
    }
    assert said["POD_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    rules = objects["ClusterRole/shop-webhook-certificate-role"]["rules"]
    assert {name for rule in rules for name in rule["resourceNames"]} == {
        "shop-mutating-webhook-configuration",
        "shop-validating-webhook-configuration",
        "carts.webapp.x.io",
    }


def test_with_sharding_replicas_are_replaced_and_drained_one_at_a_time(package, tmp_path):
    wanted = settings(package(api=API, controller=SHARDED), sharding=True)
    told = []
    refresh(tmp_path, replace(wanted, replicas=5), warn=told.append).apply()

    objects = {f"{each['kind']}/{each['metadata']['name']}": each for each in render(tmp_path / "config/default")}
    spec = objects["Deployment/shop-controller-manager"]["spec"]
    pod = spec["template"]["spec"]
    budget = objects["PodDisruptionBudget/shop-controller-manager"]["spec"]

    assert told == []
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]) == (5, {"maxSurge": 1, "maxUnavailable": 0})
    assert pod["terminationGracePeriodSeconds"] == 45
    assert variables(objects)["POD_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert budget == {"maxUnavailable": 1, "selector": spec["selector"]}
    (spread,) = pod["topologySpreadConstraints"]
    assert (spread["topologyKey"], spread["labelSelector"]) == ("kubernetes.io/hostname", spec["selector"])


def test_sharding_without_a_sharded_controller_is_a_warning(shop, tmp_path):
    told = []

    refresh(tmp_path, settings(shop, sharding=True), warn=told.append)

    (text,) = told
    assert text.startswith("sharding is on, but no controller has sharded=True")


def test_policies_open_the_ports_of_the_pod(hooked, tmp_path):
    objects = rendered(tmp_path, settings(hooked))

    (webhooks,) = objects["NetworkPolicy/shop-allow-webhook-traffic"]["spec"]["ingress"]
    (metrics,) = objects["NetworkPolicy/shop-allow-metrics-traffic"]["spec"]["ingress"]
    assert webhooks == {"ports": [{"port": 9443, "protocol": "TCP"}]}
    assert metrics == {
        "ports": [{"port": 8443, "protocol": "TCP"}],
        "from": [{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}],
    }
    labels = objects["Deployment/shop-controller-manager"]["spec"]["template"]["metadata"]["labels"]
    for part in ("webhook", "metrics"):
        spec = objects[f"NetworkPolicy/shop-allow-{part}-traffic"]["spec"]
        assert spec["podSelector"]["matchLabels"].items() <= labels.items()
        assert spec["policyTypes"] == ["Ingress"]
    assert {9443, 8443} <= {port["containerPort"] for port in manager(objects)["ports"]}


def test_webhooks_for_pods_leave_the_operator_alone(hooked, tmp_path):
    objects = rendered(tmp_path, settings(hooked))

    webhooks = objects["MutatingWebhookConfiguration/shop-mutating-webhook-configuration"]["webhooks"]
    left_out = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop-system"]}
    assert {each["name"]: each.get("namespaceSelector") for each in webhooks} == {
        "mcart-v2.kb.io": None,
        "mpod-v1.kb.io": {"matchExpressions": [left_out]},
    }


def test_an_operator_of_a_namespace_has_only_what_has_no_namespace_in_the_cluster(shop, tmp_path):
    objects = rendered(tmp_path, settings(shop, namespaced=True))

    def resources(name):
        return {resource for rule in objects[name]["rules"] for resource in rule["resources"]}

    assert resources("ClusterRole/shop-manager-role") == {"nodes"}
    assert resources("Role/shop-manager-role") == {"configmaps", "carts", "carts/status"}
    assert objects["Role/shop-manager-role"]["metadata"]["namespace"] == "shop-system"
    assert variables(objects)["WATCH_NAMESPACE"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}


def test_a_kind_of_others_is_kept_to_the_namespace_when_the_settings_know_it(package, tmp_path):
    rule = '@ctrl.rbac(groups="cert-manager.io", resources="certificates", verbs="get")\n    async def reconcile'
    name = package(api=API, controller=CONTROLLER.replace("async def reconcile", rule))
    certificate = Resource(
        group="cert-manager.io", version="v1", kind="Certificate", plural="certificates", is_external=True
    )

    def groups(resources):
        found = made_by(tmp_path, settings(name, namespaced=True, resources=resources)).roles
        return {each["kind"] for each in found for rule in each["rules"] if "cert-manager.io" in rule["apiGroups"]}

    assert groups((CART,)) == {"ClusterRole"}
    assert groups((CART, certificate)) == {"Role"}


def test_a_role_of_another_namespace_stays_there_and_is_bound_there(package, tmp_path):
    rule = '@ctrl.rbac(resources="secrets", verbs="get", namespace="infra")\n    async def reconcile'
    name = package(api=API, controller=CONTROLLER.replace("async def reconcile", rule))

    objects = rendered(tmp_path, settings(name))

    role, binding = objects["Role/shop-manager-infra-role"], objects["RoleBinding/shop-manager-infra-rolebinding"]
    assert (role["metadata"]["namespace"], binding["metadata"]["namespace"]) == ("infra", "infra")
    assert binding["roleRef"]["name"] == "shop-manager-infra-role"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "shop-controller-manager", "namespace": "shop-system"}
    ]


def test_kinds_of_one_name_in_two_groups_have_roles_of_their_own(package, tmp_path):
    name = package(api=API, other=API.replace("webapp.x.io", "store.x.io"), controller=CONTROLLER)

    files = derived_files(settings(name), made_by(tmp_path, settings(name)))

    assert {path for path in files if "viewer" in path} == {
        "rbac/webapp_cart_viewer_role.yaml",
        "rbac/store_cart_viewer_role.yaml",
    }


def test_groups_that_begin_alike_have_files_and_roles_of_their_own(package, tmp_path):
    name = package(api=API, other=API.replace("webapp.x.io", "webapp.y.io"), controller=CONTROLLER)
    other = Resource(group="webapp.y.io", version="v1", kind="Cart", plural="carts")
    wanted = settings(name, resources=(CART, other))

    objects = rendered(tmp_path, wanted)

    assert {"ClusterRole/shop-webapp-cart-viewer-role", "ClusterRole/shop-webapp.y.io-cart-viewer-role"} <= set(objects)
    samples = render(tmp_path / "config/samples")
    assert {each["apiVersion"] for each in samples} == {"webapp.x.io/v1", "webapp.y.io/v1"}
    assert "samples/webapp_v1_cart.yaml" in first_files(wanted)


def test_a_package_without_kinds_has_a_tree_without_definitions_and_samples(package, tmp_path):
    objects = rendered(tmp_path, settings(package(controller="x = 1"), resources=()))

    assert not any(name.startswith("CustomResourceDefinition") for name in objects)
    assert "Deployment/shop-controller-manager" in objects
    assert not (tmp_path / "config/crd").exists()
    assert not (tmp_path / "config/samples").exists()


def in_samples(folder: Path, wanted: Settings) -> tuple[list[str], list[str]]:
    """The files in the kustomization of the samples, and the warnings."""
    warnings: list[str] = []
    refresh(folder, wanted, warn=warnings.append).apply()
    (document,) = read_documents((folder / "config/samples/kustomization.yaml").read_text(), "")
    return document["resources"], warnings


def test_samples_of_own_kinds_that_a_person_adds_join_the_kustomization(shop, tmp_path):
    wanted, folder = settings(shop), tmp_path / "config/samples"
    tree(tmp_path, wanted)
    cart = "{{apiVersion: webapp.x.io/v1, kind: Cart, metadata: {{name: {}}}}}\n"
    secret = "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n"
    (folder / "kept").mkdir()
    for name, text in {
        "big.yaml": cart.format("big") + "---\n" + cart.format("bigger"),
        "a.json": '{"apiVersion": "webapp.x.io/v1", "kind": "Cart", "metadata": {"name": "a"}}',
        "secret.yaml": secret,
        "mixed.yaml": cart.format("mixed") + "---\n" + secret,
        "commented.yaml": "# " + cart.format("commented"),
        "patch.yaml": "- {op: remove, path: /spec}",
        "kept/out.yaml": cart.format("out"),
        "notes.md": "kind: Cart",
    }.items():
        (folder / name).write_text(text)

    assert in_samples(tmp_path, wanted) == (["webapp_v1_cart.yaml", "a.json", "big.yaml"], [])
    assert {each["metadata"]["name"] for each in render(folder)} == {"cart-sample", "a", "big", "bigger"}

    (folder / "big.yaml").unlink()
    assert in_samples(tmp_path, wanted) == (["webapp_v1_cart.yaml", "a.json"], [])


def test_an_added_sample_that_is_no_yaml_or_has_the_name_of_another_is_left_out_with_a_warning(shop, tmp_path):
    wanted, folder = settings(shop), tmp_path / "config/samples"
    tree(tmp_path, wanted)
    (folder / "a_copy.yaml").write_text((folder / "webapp_v1_cart.yaml").read_text())
    (folder / "broken.yaml").write_text("a: [")

    resources, warnings = in_samples(tmp_path, wanted)

    assert resources == ["webapp_v1_cart.yaml"]
    assert warnings == [
        f"{folder}/a_copy.yaml is not in kustomization.yaml: webapp_v1_cart.yaml has an object of the same name. Change metadata.name",
        warnings[1],
    ]
    assert warnings[1].startswith(f"{folder}/broken.yaml, line ")


def test_samples_of_two_versions_are_two_objects():
    two = Resource(group="webapp.x.io", version="v2", kind="Cart", plural="carts")

    files = first_files(settings("shop", resources=(CART, two)))

    names = {
        path: read_documents(text, path)[0]["metadata"]["name"] for path, text in files.items() if "samples" in path
    }
    assert names == {
        "samples/webapp_v1_cart.yaml": "cart-sample",
        "samples/webapp_v2_cart.yaml": "cart-v2-sample",
    }


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("shop:latest", {"newName": "shop", "newTag": "latest"}),
        ("shop", {"newName": "shop", "newTag": "latest"}),
        ("registry.example.com:5000/a/shop:v1", {"newName": "registry.example.com:5000/a/shop", "newTag": "v1"}),
        ("registry.example.com:5000/a/shop", {"newName": "registry.example.com:5000/a/shop", "newTag": "latest"}),
        ("a/shop:v1@sha256:12ab", {"newName": "a/shop", "digest": "sha256:12ab"}),
    ],
)
def test_the_image_is_a_name_and_a_tag_or_a_digest(image, said):
    assert image_of(Settings(project_name="shop", package="shop", domain="x.io", image=image)) == said


def test_the_deployment_runs_the_image_of_the_settings(shop, tmp_path):
    wanted = Settings(project_name="shop", package=shop, domain="x.io", image="registry.example.com/shop:v2")

    assert manager(rendered(tmp_path, wanted))["image"] == "registry.example.com/shop:v2"


def test_derived_files_say_so_and_hold_no_text_to_uncomment(hooked, tmp_path):
    wanted = settings(hooked, prometheus=True, network_policy=True, namespaced=True)

    for text in derived_files(wanted, made_by(tmp_path, wanted)).values():
        # Words for a reader stand before the object; nothing inside of it is a comment.
        head, _, objects = text.partition("\n---\n")
        assert head.startswith(DERIVED_MARK.rstrip())
        assert all(line.startswith("#") for line in head.splitlines())
        assert not [line for line in objects.splitlines() if line.lstrip().startswith("#")]


# Written again


def test_what_is_written_is_current(hooked, tmp_path):
    tree(tmp_path, settings(hooked))

    assert refresh(tmp_path, settings(hooked)).stale == []


def test_files_of_a_person_are_written_where_they_are_missing_and_never_changed(shop, tmp_path):
    tree(tmp_path, settings(shop))
    mine, sample = tmp_path / "config/manager/manager.yaml", tmp_path / "config/samples/webapp_v1_cart.yaml"
    mine.write_text(mine.read_text().replace("replicas: 1", "replicas: 2"))
    sample.unlink()

    again = refresh(tmp_path, settings(shop))
    again.apply()

    assert list(again.lines()) == [f"created {sample}"]
    assert "replicas: 2" in mine.read_text()


def test_a_generated_file_without_its_first_line_is_kept_and_named(shop, tmp_path):
    tree(tmp_path, settings(shop))
    role, warnings = tmp_path / "config/rbac/role.yaml", []
    role.write_text(role.read_text().removeprefix(DERIVED_MARK) + "# mine\n")

    again = refresh(tmp_path, settings(shop), warn=warnings.append)

    assert (again.stale, len(warnings)) == ([], 1)
    assert warnings[0].startswith(f"{role}: not changed, because its first line does not say that it is generated. ")


def test_what_a_switch_leaves_behind_is_removed_and_nothing_else(hooked, tmp_path):
    tree(tmp_path, settings(hooked, prometheus=True))
    overlay = tmp_path / "config/prometheus/rules.yaml"
    overlay.write_text("mine: true\n")

    off = refresh(tmp_path, settings(hooked, cert_manager=False))
    shown = "".join(off.diffs())
    off.apply()

    assert not (tmp_path / "config/certmanager").exists()
    assert [path.name for path in (tmp_path / "config/prometheus").iterdir()] == ["rules.yaml"]
    assert f"--- {tmp_path}/config/certmanager/issuer.yaml\n+++ /dev/null\n" in shown
    assert refresh(tmp_path, settings(hooked, cert_manager=False)).stale == []


def test_derived_and_first_files_are_different_files(hooked, tmp_path):
    wanted = settings(hooked)

    assert not set(derived_files(wanted, made_by(tmp_path, wanted))) & set(first_files(wanted))


# Other settings


@pytest.fixture
def project(shop, tmp_path):
    (tmp_path / PYPROJECT).write_text(write_settings("# mine\n[project]\nname = 'shop'\n", settings(shop)))
    tree(tmp_path, read_settings(tmp_path))
    return tmp_path


def test_an_edit_changes_settings_and_tree_together(project):
    wanted = settings(read_settings(project).package, prometheus=True)

    change = edit(project, wanted)
    before = (project / PYPROJECT).read_text()
    change.apply()

    assert "prometheus = false" in before
    assert read_settings(project) == wanted
    assert (project / PYPROJECT).read_text().startswith("# mine\n")
    assert (project / "config/prometheus/monitor.yaml").exists()
    assert list(edit(project, wanted).lines()) == []


def test_what_cannot_be_is_refused_before_anything_is_written(project):
    before = {path: path.read_text() for path in project.rglob("*.yaml")} | {"": (project / PYPROJECT).read_text()}
    wanted = settings(read_settings(project).package, metrics=False, prometheus=True)

    with pytest.raises(ConfigError, match="prometheus requires metrics, which are off"):
        edit(project, wanted)

    assert {path: path.read_text() for path in project.rglob("*.yaml")} | {
        "": (project / PYPROJECT).read_text()
    } == before


def test_the_package_is_found_from_everywhere(tmp_path, monkeypatch):
    folder = tmp_path / "elsewhere"
    (folder / "found_from_everywhere").mkdir(parents=True)
    (folder / "found_from_everywhere/__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])

    assert refresh(folder, settings("found_from_everywhere", resources=())).changes


@pytest.mark.parametrize(
    ("namespaced", "modes"),
    [(False, {"AllNamespaces"}), (True, {"OwnNamespace", "SingleNamespace", "MultiNamespace"})],
)
def test_the_base_of_a_bundle_supports_the_ways_it_can_be_installed(namespaced, modes):
    wanted = settings("shop", namespaced=namespaced)
    (text,) = [text for name, text in first_files(wanted).items() if name.startswith("manifests/bases/")]
    (base,) = read_documents(text, "the base")

    assert {each["type"] for each in base["spec"]["installModes"] if each["supported"]} == modes
