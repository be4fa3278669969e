"""What deploying is made of, without a cluster; `tests/conformance/test_project_in_cluster.py` has the rest, on both servers."""

from __future__ import annotations

import pytest

from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.errors import ConfigError, NoMatchError
from ctrlruntime.project.deployment import manager_deployment, with_image
from ctrlruntime.project.deployment.access import Access, Account, told
from ctrlruntime.project.deployment.applyset import PART_OF, ApplySet, Member, Scope
from ctrlruntime.project.deployment.objects import Named, Step, in_phases
from ctrlruntime.project.deployment.preparing import check_certificates, settled
from ctrlruntime.project.deployment.pruning import in_removal_order


def obj(api_version: str, kind: str, name: str = "x", namespace: str = "", **content) -> dict:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def deployment(*containers: dict, name: str = "x") -> dict:
    return obj("apps/v1", "Deployment", name, "ns", spec={"template": {"spec": {"containers": list(containers)}}})


CRD = obj(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    spec={"group": "x.io", "names": {"kind": "Cart"}, "scope": "Namespaced"},
)
NAMESPACE = obj("v1", "Namespace")
HOOK = obj("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
ROLE = obj("rbac.authorization.k8s.io/v1", "ClusterRole")
CART = obj("x.io/v1", "Cart", namespace="ns")


def test_the_id_of_a_set_is_the_hash_that_the_convention_says():
    # sha256("shop.shop-system.ConfigMap."), as in kubectl: name, namespace, kind and group of the parent.
    made = ApplySet(None, "shop", "shop-system")

    assert made.id == "applyset-q6bjxzXsbcQhkIDLRkf_8rd2Fh44vVc7ivhh-w7bNcI-v1"


def test_a_member_keeps_its_labels():
    made, tree = ApplySet(None, "shop", "ns"), {"metadata": {"name": "x", "labels": {"a": "b"}}}

    made.mark(tree)

    assert tree["metadata"]["labels"] == {"a": "b", PART_OF: made.id}


def test_phases_put_webhooks_after_the_operator_and_custom_resources_last():
    operator = deployment({"name": "manager"})

    phases = in_phases([CART, HOOK, operator, ROLE, CRD, NAMESPACE])

    assert (phases.namespaces, phases.definitions, phases.rest) == ([NAMESPACE], [CRD], [ROLE])
    assert (phases.workloads, phases.webhooks, phases.custom) == ([operator], [HOOK], [CART])


@pytest.mark.parametrize(
    ("source", "is_refused"), [("a/cert", False), ("", False), ("b/cert", True), ("a/other", True)], ids=repr
)
def test_webhooks_get_their_ca_from_a_certificate_of_the_deployment(source, is_refused):
    annotations = {"cert-manager.io/inject-ca-from": source} if source else {}
    certificate = {
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": "cert", "namespace": "a"},
    }
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "v", "annotations": annotations},
    }
    check_certificates([hook])  # a Certificate of somebody else
    if not is_refused:
        check_certificates([certificate, hook])
        return
    with pytest.raises(ConfigError) as refused:
        check_certificates([certificate, hook])
    assert str(refused.value) == (
        f"cannot deploy ValidatingWebhookConfiguration v: annotation cert-manager.io/inject-ca-from is {source}, but the deployment has "
        "a/cert. Add `transformers: [../../replacements]` to the kustomization of the overlay"
    )


class Lacks:
    """A client of a cluster that serves no kind."""

    @property
    def mapper(self):
        return self

    async def resource_for(self, kind):
        raise NoMatchError(str(kind))


@pytest.mark.parametrize(
    ("has_pods", "advice"),
    [
        (True, "Install cert-manager, or disable it with `ctrl edit --no-cert-manager`"),
        (False, "The embedded API server runs no Pods, so neither cert-manager nor the operator can set the CA bundle"),
    ],
)
async def test_settled_advises_on_cert_manager_by_whether_the_cluster_runs_pods(has_pods, advice):
    certificate = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "cert"}}

    async def lacks_pods():
        return not has_pods

    with pytest.raises(ConfigError) as refused:
        await settled(Lacks(), [certificate], "ns", lacks_pods=lacks_pods)

    assert f"does not serve Certificate of cert-manager.io/v1. {advice}" in str(refused.value)


def test_removal_goes_the_other_way_round():
    members = [
        Member(Named.of(each), "uid", is_going=False, finalizers=())
        for each in (NAMESPACE, CRD, ROLE, deployment(), HOOK)
    ]

    kinds = [member.named.kind.kind for member in in_removal_order(members)]

    assert kinds == [
        "ValidatingWebhookConfiguration",
        "Deployment",
        "ClusterRole",
        "CustomResourceDefinition",
        "Namespace",
    ]


def test_a_scope_is_where_members_are():
    one, other = Scope.of([Named.of(CART)]), Scope.of([Named.of(ROLE)])

    assert one | other == Scope(
        frozenset({("x.io", "Cart"), ("rbac.authorization.k8s.io", "ClusterRole")}), frozenset({"ns"})
    )


def test_an_image_is_set_in_the_operator_s_container_alone():
    given = [deployment({"name": "proxy", "image": "p"}, {"name": "manager", "image": "old"}), ROLE]

    made = with_image(given, "new:v1")

    assert [each["image"] for each in made[0]["spec"]["template"]["spec"]["containers"]] == ["p", "new:v1"]
    assert given[0]["spec"]["template"]["spec"]["containers"][1]["image"] == "old"


@pytest.mark.parametrize("containers", [(), ({"name": "a"}, {"name": "b"})])
def test_an_image_without_its_container_is_refused(containers):
    with pytest.raises(ConfigError, match="no Deployment has a container 'manager'"):
        with_image([deployment(*containers)], "new:v1")


def test_the_only_deployment_is_the_operator_s():
    assert manager_deployment([ROLE, deployment({"name": "a"})])["metadata"]["name"] == "x"
    assert manager_deployment([deployment({"name": "a"}), deployment({"name": "b"})]) is None


def test_permissions_are_told_by_resource():
    wanted = [
        Access("patch", "apps", "deployments", "ns"),
        Access("create", "apps", "deployments", "ns"),
        Access("get", resource="secrets", namespace="ns", name="cert"),
        Access("get", path="/metrics"),
    ]

    assert (
        told(wanted)
        == "create, patch deployments.apps in namespace ns; get /metrics; get secrets 'cert' in namespace ns"
    )


def test_a_review_names_the_subresource_and_the_account():
    review = Access("update", "x.io", "carts/status", "ns").review(Account("ns", "operator"))

    assert review["resourceAttributes"] == {
        "verb": "update",
        "group": "x.io",
        "resource": "carts",
        "subresource": "status",
        "namespace": "ns",
    }
    assert review["user"] == "system:serviceaccount:ns:operator"
    assert "system:serviceaccounts:ns" in review["groups"]


def test_a_step_is_a_line_and_json():
    step = Step("kept", Named(GroupVersionKind("apps", "v1", "Deployment"), "ns", "x"), "why")

    assert str(step) == "kept Deployment ns/x: why"
    assert step.to_json() == {
        "action": "kept",
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "ns",
        "name": "x",
        "note": "why",
    }
