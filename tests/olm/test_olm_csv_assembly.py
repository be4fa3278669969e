"""The ClusterServiceVersion as a whole: of a Go operator's tree, and of a project's in each of its forms."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from csv_objects import FOLDER, definition, deployment, service, thing, variables

from ctrlruntime.api.object import kind_of
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.documents import read_documents, read_one
from ctrlruntime.generate.text import dump, dump_all
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.olm.csv import Assembled, Sources, assemble
from ctrlruntime.olm.csv.objects import told
from ctrlruntime.project.config import refresh
from ctrlruntime.project.kustomize import render
from ctrlruntime.project.package import load
from ctrlruntime.project.settings import Features, Resource, Settings

HERE = Path(__file__).parent
MANAGER = "memcached-operator-controller-manager"
BASE = {"metadata": {"annotations": {}}, "spec": {"displayName": "Shop"}}


def read(name: str) -> list:
    return read_documents((HERE / name).read_text(), name)


def made(objects, base=BASE, warn=pytest.fail, **more) -> tuple[ClusterServiceVersion, Assembled]:
    """Assemble and decode."""
    sources = Sources(package="shop", version="1.2.3", base=base, objects=objects, **more)
    found = assemble(sources, warn=warn)
    again = assemble(sources, warn=warn)
    assert dump(found.csv) == dump(again.csv)
    assert dump_all(found.others) == dump_all(again.others)
    return ClusterServiceVersion.model_validate(read_one(dump(found.csv), "csv")), found


# A Go operator's tree


@pytest.fixture(scope="module")
def memcached() -> tuple[ClusterServiceVersion, Assembled]:
    (base,) = read("sdk_memcached_base.yaml")
    sources = Sources(package="memcached-operator", version="0.0.1", base=base, objects=read("sdk_memcached.yaml"))
    found = assemble(sources, warn=pytest.fail)
    return ClusterServiceVersion.model_validate(found.csv), found


def test_names_and_what_a_person_said(memcached):
    csv, found = memcached

    assert (csv.metadata.name, csv.metadata.namespace, csv.spec.version) == (
        "memcached-operator.v0.0.1",
        "placeholder",
        "0.0.1",
    )
    assert (csv.spec.replaces, csv.spec.skips) == ("memcached-operator.v0.0.0", ["memcached-operator.v0.0.0-rc.1"])
    assert csv.metadata.labels == {"operatorframework.io/arch.arm64": "supported"}
    examples = csv.metadata.annotations.pop("alm-examples")
    assert csv.metadata.annotations.pop("operators.operatorframework.io/builder") == "ctrlruntime"
    assert csv.metadata.annotations == {
        "capabilities": "Basic Install",
        "containerImage": "example.com/memcached-operator:v0.0.1",
        "olm.skipRange": "<0.0.1",
        "operatorframework.io/suggested-namespace": "memcached-operator-system",
        "operators.operatorframework.io/project_layout": "go.kubebuilder.io/v4",
    }
    assert [each["metadata"]["name"] for each in json.loads(examples)] == ["memcached-sample"]
    assert not {"icon", "apiservicedefinitions"} & found.csv["spec"].keys()


def test_descriptors_of_both_versions_and_required_definitions(memcached):
    csv, _ = memcached
    first, second = csv.spec.customresourcedefinitions.owned

    assert (first.version, first.display_name, first.description) == (
        "v1",
        "Memcached App",
        "A group of servers, by a person.",
    )
    assert [(each.path, each.description) for each in first.spec_descriptors] == [
        ("size", "How many."),
        ("containerPort", "Where the servers listen."),
    ]
    assert first.spec_descriptors[0].x_descriptors == ["urn:alm:descriptor:com.tectonic.ui:podCount"]
    assert (second.version, second.description) == ("v1alpha1", "Memcached is a group of servers.")
    assert [each.path for each in second.spec_descriptors] == ["containerPort", "size"]
    assert [(each.path, each.display_name, each.x_descriptors) for each in second.status_descriptors] == [
        ("conditions", "Conditions", ["urn:alm:descriptor:io.kubernetes.conditions"])
    ]
    assert [each.name for each in csv.spec.customresourcedefinitions.required] == ["databases.db.example.com"]


def test_permissions_of_the_one_account(memcached):
    install = memcached[0].spec.install
    assert install.strategy == "deployment"
    assert install.spec is not None

    assert [
        (each.service_account_name, [rule.resources for rule in each.rules]) for each in install.spec.permissions
    ] == [(MANAGER, [["leases"]])]
    assert [
        (each.service_account_name, [rule.resources for rule in each.rules])
        for each in install.spec.cluster_permissions
    ] == [(MANAGER, [["memcacheds"], ["deployments"], ["tokenreviews"]])]


def test_the_deployment_without_certificates_and_with_the_targets_of_the_group(memcached):
    _, found = memcached
    (entry,) = found.csv["spec"]["install"]["spec"]["deployments"]
    pod = entry["spec"]["template"]["spec"]

    assert (entry["name"], entry["label"]) == (MANAGER, {"control-plane": "controller-manager"})
    assert "volumes" not in pod
    assert "volumeMounts" not in pod["containers"][0]
    assert pod["containers"][0]["args"] == [
        "--metrics-bind-address=:8443",
        "--leader-elect",
        "--metrics-cert-path=",
        f"--webhook-cert-path={FOLDER}",
    ]
    assert pod["containers"][0]["env"][2] == {
        "name": "WATCH_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
    }


def test_webhooks_and_one_conversion_for_hub_and_spoke(memcached):
    csv, _ = memcached

    assert [
        (each.type, each.generate_name, each.deployment_name, each.container_port, each.target_port, each.webhook_path)
        for each in csv.spec.webhookdefinitions
    ] == [
        ("ConversionWebhook", "cmemcacheds.kb.io", MANAGER, 443, 9443, "/convert"),
        (
            "ValidatingAdmissionWebhook",
            "vmemcached-v1.kb.io",
            MANAGER,
            443,
            9443,
            "/validate-cache-example-com-v1-memcached",
        ),
    ]
    assert csv.spec.webhookdefinitions[0].conversion_crds == ["memcacheds.cache.example.com"]


def test_images_the_operator_starts(memcached):
    assert [(each.name, each.image) for each in memcached[0].spec.related_images] == [
        ("memcached", "example.com/memcached:1.6"),
        ("memcached-exporter", "example.com/exporter:0.14"),
    ]


def test_what_stays_a_file(memcached):
    _, found = memcached

    assert [told(each) for each in found.others] == [
        "CustomResourceDefinition/memcacheds.cache.example.com",
        "ClusterRole/memcached-operator-memcached-editor-role",
        "Service/memcached-operator-controller-manager-metrics-service",
    ]
    assert all("namespace" not in each["metadata"] for each in found.others)
    assert found.others[0]["metadata"]["annotations"] == {"controller-gen.kubebuilder.io/version": "v0.18.0"}


# A project's tree

API = """
    import ctrlruntime as ctrl
    from pydantic import Field

    class CartSpec(ctrl.Model):
        size: int = Field(default=1, description="How much it holds.")

    class Cart(ctrl.Object, group="webapp.x.io", version="v1"):
        "What somebody wants to buy."
        spec: CartSpec = Field(default_factory=CartSpec)
"""
V2 = API.replace('version="v1"', 'version="v2", storage=True')
OPERATOR = """
    import ctrlruntime as ctrl
    from . import v2
    from .api import Cart
    from ctrlruntime.api import core

    ELECTION = ctrl.LeaderElection("ab12cd34.x.io")

    async def reconcile(request): ...

    def setup(mgr):
        ctrl.new_controller_managed_by(mgr).for_(v2.Cart).complete(reconcile)
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
CARTS = tuple(
    Resource(group="webapp.x.io", version=version, kind="Cart", plural="carts", controller=version == "v2")
    for version in ("v1", "v2")
)
TARGETS = {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}}


@pytest.fixture
def project(package, tmp_path):
    """Returns a function that renders a project with these switches and assembles it, with warnings."""
    name = package(api=API, v2=V2, operator=OPERATOR)

    def assembled(*, namespaced: bool = False, **features: bool) -> tuple[ClusterServiceVersion, Assembled, list[str]]:
        settings = Settings(
            project_name="shop",
            package=name,
            domain="x.io",
            image="shop:v1",
            namespaced=namespaced,
            features=Features(**features),
            resources=CARTS,
        )
        refresh(tmp_path, settings).apply()
        objects = render(tmp_path / "config/manifests")
        (base,) = (dict(each) for each in objects if each["kind"] == "ClusterServiceVersion")
        warnings: list[str] = []
        csv, found = made(objects, base, warnings.append, kinds=load(name).kinds)
        return csv, found, list(dict.fromkeys(warnings))

    return assembled


FILES = [
    "CustomResourceDefinition/carts.webapp.x.io",
    "ClusterRole/shop-cart-admin-role",
    "ClusterRole/shop-cart-editor-role",
    "ClusterRole/shop-cart-viewer-role",
    "ClusterRole/shop-metrics-reader",
    "Service/shop-controller-manager-metrics-service",
]
MORE = [
    "ServiceMonitor/shop-controller-manager-metrics-monitor",
    "NetworkPolicy/shop-allow-metrics-traffic",
    "NetworkPolicy/shop-allow-webhook-traffic",
]


@pytest.mark.parametrize("cert_manager", [True, False])
@pytest.mark.parametrize("namespaced", [True, False])
def test_a_project_with_webhooks_is_served_with_the_certificate_that_is_given(project, cert_manager, namespaced):
    csv, found, _ = project(namespaced=namespaced, cert_manager=cert_manager, prometheus=True, network_policy=True)

    (entry,) = found.csv["spec"]["install"]["spec"]["deployments"]
    pod = entry["spec"]["template"]["spec"]
    env = {each["name"]: each.get("value", each.get("valueFrom")) for each in pod["containers"][0]["env"]}
    # Without cert-manager the operator would name its own Secret; it keeps the variable with its namespace, which does nothing.
    env.pop("POD_NAMESPACE", None)
    assert env == {
        "METRICS_BIND_ADDRESS": ":8443",
        "METRICS_CERT_PATH": "",
        "WEBHOOK_CERT_PATH": FOLDER,
        **({"WATCH_NAMESPACE": TARGETS} if namespaced else {}),
    }
    assert [each["name"] for each in pod["volumes"]] == ["tmp"]
    assert [each["name"] for each in pod["containers"][0]["volumeMounts"]] == ["tmp"]
    assert sorted(map(told, found.others)) == sorted([*FILES, *MORE])
    (monitor,) = (each for each in found.others if each["kind"] == "ServiceMonitor")
    assert monitor["spec"]["endpoints"][0]["tlsConfig"] == {"insecureSkipVerify": True}
    assert [each.generate_name for each in csv.spec.webhookdefinitions] == [
        "ccarts.kb.io",
        "mcart-v2.kb.io",
        "mpod-v1.kb.io",
        "vcart-v2.kb.io",
    ]


@pytest.mark.parametrize("namespaced", [True, False])
def test_a_project_may_do_what_it_needs_where_it_watches(project, namespaced):
    csv, _, warnings = project(namespaced=namespaced, cert_manager=False)
    install = csv.spec.install.spec
    assert install is not None

    def resources(entries):
        return {(each.service_account_name, name) for each in entries for rule in each.rules for name in rule.resources}

    account = "shop-controller-manager"
    in_namespace, in_cluster = resources(install.permissions), resources(install.cluster_permissions)
    assert (account, "leases") in in_namespace
    assert ((account, "carts") in in_namespace) is namespaced
    assert ((account, "carts") in in_cluster) is not namespaced
    # Secrets and webhook configurations were for a certificate of its own.
    assert not {name for _, name in in_namespace | in_cluster} & {"secrets", "customresourcedefinitions"}
    assert any("AllNamespaces is the only supported install mode" in each for each in warnings) is namespaced
    assert any("webhook mpod-v1.kb.io excludes the operator's namespace" in each for each in warnings)


def test_a_projects_kinds_are_told_by_their_classes_and_samples(project):
    csv, _, _ = project()

    assert [(each.version, each.description) for each in csv.spec.customresourcedefinitions.owned] == [
        ("v2", "What somebody wants to buy."),
        ("v1", "What somebody wants to buy."),
    ]
    assert [each.path for each in csv.spec.customresourcedefinitions.owned[0].spec_descriptors] == ["size"]
    examples = json.loads(csv.metadata.annotations["alm-examples"])
    assert {(each["apiVersion"], each["metadata"]["name"]) for each in examples} == {
        ("webapp.x.io/v1", "cart-sample"),
        ("webapp.x.io/v2", "cart-v2-sample"),
    }


# Bits


def test_without_a_deployment_there_is_no_operator():
    with pytest.raises(GenerateError, match="no Deployment among the objects"):
        made([definition()])


@pytest.mark.parametrize(
    ("document", "who"),
    [
        ({}, "a document: "),
        ({"kind": "Role"}, "Role: "),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {}}, "v1, Secret: "),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": None}, "v1, Secret: "),
    ],
)
def test_an_object_without_a_name_is_refused(document, who):
    with pytest.raises(GenerateError, match=rf"^{who}apiVersion, kind or metadata.name is missing"):
        made([deployment(), document])


def test_an_object_that_is_not_what_its_kind_says_is_refused_by_name():
    broken = deployment()
    broken["spec"]["template"]["spec"]["containers"] = "manager"

    with pytest.raises(GenerateError, match=r"^Deployment/shop-controller-manager: .*spec\.template\.spec\.containers"):
        made([broken])


def test_no_form_of_the_sources_ends_in_an_error_of_another_kind():
    (base,) = read("sdk_memcached_base.yaml")
    whole = {"base": base, "objects": read("sdk_memcached.yaml")}
    bad = itertools.cycle([None, "text", 7, [], {}, ["text"], [None], True, {"a": [{"b": 1}]}, [[1]]])
    outcomes = set()

    for path in [each for each in paths(whole) if len(each) > 2]:
        changed = with_value(whole, path, next(bad))
        sources = Sources(package="shop", version="1.0.0", base=changed["base"], objects=changed["objects"])
        try:
            dump(assemble(sources, warn=lambda _text: None).csv)
        except GenerateError as error:
            outcomes.add(f"refused in {len(str(error).splitlines())} line")
        else:
            outcomes.add("made")

    assert outcomes == {"refused in 1 line", "made"}


def paths(tree, before=()):
    yield before
    steps = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for step, value in steps:
        yield from paths(value, (*before, step))


def with_value(tree, path, value):
    if not path:
        return value
    changed = tree.copy()
    changed[path[0]] = with_value(tree[path[0]], path[1:], value)
    return changed


def test_what_no_bundle_can_hold_is_left_out_with_one_warning_each():
    warnings: list[str] = []
    sources = [
        deployment(),
        thing("apps/v1", "StatefulSet", "cache"),
        thing("y.io/v1", "Strange", "one"),
        thing("v1", "ConfigMap", "c"),
    ]

    found = assemble(Sources(package="shop", version="1.0.0", base=BASE, objects=sources), warn=warnings.append)

    assert [told(each) for each in found.others] == ["ConfigMap/c"]
    assert warnings == [
        "StatefulSet/cache (apps/v1) is left out, because a bundle cannot have this kind",
        "Strange/one (y.io/v1) is left out, because a bundle cannot have this kind",
    ]


def test_what_is_in_another_namespace_stays_with_a_warning():
    warnings: list[str] = []
    sources = [deployment(), thing("v1", "ConfigMap", "c", "elsewhere"), thing("v1", "ConfigMap", "d", "")]

    found = assemble(Sources(package="shop", version="1.0.0", base=BASE, objects=sources), warn=warnings.append)

    assert [each["metadata"] for each in found.others] == [{"name": "c"}, {"name": "d"}]
    assert len(warnings) == 1
    assert warnings[0].startswith("ConfigMap/c is in the namespace elsewhere")


@pytest.mark.parametrize(("release", "name"), [("2.rc-1", "shop-v1.2.3-2.rc-1"), ("", "shop.v1.2.3")])
def test_a_release_is_in_the_name(release, name):
    csv, _ = made([deployment()], base={"metadata": {}, "spec": {"displayName": "Shop", "release": release}})

    assert (csv.metadata.name, csv.spec.version, csv.spec.release) == (name, "1.2.3", release)


@pytest.mark.parametrize("release", [1, 0, "a b", "1+2", "01", ["1"], {"a": "b"}])
def test_what_is_no_release_is_refused(release):
    with pytest.raises(GenerateError, match=r"spec\.release .* is not valid. In the base, use identifiers"):
        made([deployment()], base={"metadata": {}, "spec": {"displayName": "Shop", "release": release}})


@pytest.mark.parametrize("release", ["RC-1", "a" * 52])
def test_a_release_that_no_name_can_have_is_refused(release):
    with pytest.raises(
        GenerateError, match=r"cannot name the ClusterServiceVersion shop-v1\.2\.3-.* Change spec\.release in the base"
    ):
        made([deployment()], base={"metadata": {}, "spec": {"displayName": "Shop", "release": release}})


def test_what_is_never_installed_is_a_warning_wherever_it_is_said():
    warnings: list[str] = []
    said = [
        {
            "type": "ConversionWebhook",
            "generateName": "c.kb.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
    ]

    made(
        [deployment()],
        base={"metadata": {}, "spec": {"displayName": "Shop", "webhookdefinitions": said}},
        warn=warnings.append,
    )

    assert "the webhook c.kb.io (ConversionWebhook) cannot be installed: conversionCRDs: " in warnings[0]


def test_the_sources_are_not_changed():
    (base,) = read("sdk_memcached_base.yaml")
    objects = read("sdk_memcached.yaml")

    made(objects, base)

    assert objects == read("sdk_memcached.yaml")
    assert [base] == read("sdk_memcached_base.yaml")


@pytest.mark.parametrize(
    ("said", "samples", "expected"),
    [
        pytest.param('[{"kind": "Old"}]', [], '[{"kind": "Old"}]', id="the base's, when there is no sample"),
        pytest.param("", [], "[]", id="none"),
        pytest.param(
            '[{"kind": "Old"}]',
            [thing("x.io/v1", "Cart", "é", "", spec={"z": 1, "a": 2})],
            '[\n  {\n    "apiVersion": "x.io/v1",\n    "kind": "Cart",\n    "metadata": {\n      "name": "é"\n    },\n'
            '    "spec": {\n      "a": 2,\n      "z": 1\n    }\n  }\n]',
            id="samples",
        ),
    ],
)
def test_examples_are_the_samples(said, samples, expected):
    base = {"metadata": {"annotations": {"alm-examples": said}}, "spec": BASE["spec"]}

    csv, found = made([deployment(), definition(), *samples], base)

    assert csv.metadata.annotations["alm-examples"] == expected
    assert [told(each) for each in found.others] == ["CustomResourceDefinition/carts.x.io"]


def test_what_the_base_alone_says_is_kept():
    base = {
        "metadata": {"annotations": {"containerImage": "mirror/shop:v1"}, "labels": {"a": "b"}},
        "status": {"phase": "Succeeded"},
        "spec": {
            "displayName": "",
            "cleanup": {"enabled": False},
            "relatedImages": [{"name": "a", "image": "a:1"}],
            "webhookdefinitions": [
                {
                    "type": "ValidatingAdmissionWebhook",
                    "generateName": "v.kb.io",
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                }
            ],
            "apiservicedefinitions": {
                "required": [],
                "owned": [{"name": "a", "group": "a.io", "version": "v1", "kind": "A", "deploymentName": "shop"}],
            },
            "links": [],
        },
    }

    _, found = made([deployment()], base)

    assert found.csv["metadata"]["annotations"]["containerImage"] == "mirror/shop:v1"
    assert (found.csv["apiVersion"], found.csv["kind"]) == ("operators.coreos.com/v1alpha1", "ClusterServiceVersion")
    assert "status" not in found.csv
    spec = found.csv["spec"]
    assert (spec["displayName"], spec["cleanup"]) == ("", {"enabled": False})
    assert spec["relatedImages"] == base["spec"]["relatedImages"]
    assert spec["webhookdefinitions"] == base["spec"]["webhookdefinitions"]
    assert spec["apiservicedefinitions"] == {"owned": base["spec"]["apiservicedefinitions"]["owned"]}
    assert not {"links", "customresourcedefinitions"} & spec.keys()


def test_a_deployment_behind_an_api_service_is_given_its_folder():
    folder = "/apiserver.local.config/certificates"
    mounted = deployment(
        {
            "name": "manager",
            "image": "shop:v1",
            "env": variables(CERTS=folder),
            "volumeMounts": [{"name": "c", "mountPath": folder}],
        },
        volumes=[{"name": "c", "secret": {"secretName": "certs"}}],
    )
    services = {
        "owned": [
            {"name": "a", "group": "a.io", "version": "v1", "kind": "A", "deploymentName": mounted["metadata"]["name"]}
        ]
    }
    certificate = thing("cert-manager.io/v1", "Certificate", "c", spec={"secretName": "certs"})

    _, found = made(
        [mounted, certificate], {"metadata": {}, "spec": {"displayName": "Shop", "apiservicedefinitions": services}}
    )

    pod = found.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]
    assert pod["containers"] == [{"name": "manager", "image": "shop:v1", "env": variables(CERTS=folder)}]
    assert "volumes" not in pod


def test_images_of_other_containers_are_not_the_operators():
    proxy = {"name": "proxy", "image": "proxy:1"}
    several = deployment(proxy, {"name": "main", "image": "shop:2"})
    several["spec"]["template"]["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "main"}

    _, found = made([several, service("metrics")])
    _, first = made([deployment(proxy)])

    assert found.csv["metadata"]["annotations"]["containerImage"] == "shop:2"
    assert first.csv["metadata"]["annotations"]["containerImage"] == "proxy:1"


def test_a_kind_is_known_by_its_group_version_and_kind(package):
    kinds = load(package(api=API)).kinds

    csv, _ = made([deployment(), definition()], kinds=kinds)

    assert kind_of(kinds[0]).gvk.group == "webapp.x.io"  # and the definition's is x.io
    assert csv.spec.customresourcedefinitions.owned[0].description == ""
