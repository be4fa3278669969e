"""Roles from permissions. The goldens are what controller-gen made of the markers in tests/peers/crdgen/rbac."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from controller_gen import regenerated

from ctrlruntime.data import open_data
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.rbac import (
    certificate_rules,
    check_names,
    derived_beside,
    election_role,
    event_rules,
    finalizer_rules,
    owned_rules,
    policy_rules,
    reconciled_rules,
    roles,
    watched_rules,
)
from ctrlruntime.generate.text import dump_all
from ctrlruntime.markers import RBACRule, rbac, rbac_rules

MARKERS = Path(__file__).parents[1] / "peers" / "crdgen" / "rbac"
GOLDEN = Path(__file__).parent / "golden" / "rbac"
MARKER = "// +kubebuilder:rbac:"
KEYWORDS = {
    "groups": "groups",
    "resources": "resources",
    "resourceNames": "resource_names",
    "verbs": "verbs",
    "urls": "urls",
    "namespace": "namespace",
    "roleName": "role_name",
}


def rule(marker: str) -> RBACRule:
    said = dict(part.split("=", 1) for part in marker.removeprefix(MARKER).split(","))

    @rbac(**{KEYWORDS[name]: value.strip('"') for name, value in said.items()})
    def reconcile() -> None: ...

    return rbac_rules(reconcile)[0]


@pytest.mark.parametrize("name", sorted(path.name for path in MARKERS.iterdir()))
def test_roles_are_the_bytes_controller_gen_writes(name):
    lines = (MARKERS / name / "doc.go").read_text().splitlines()
    rules = [rule(line) for line in lines if line.startswith(MARKER)]

    assert dump_all(roles(rules)) == (GOLDEN / f"{name}.yaml").read_text()


@pytest.mark.slow
def test_controller_gen_still_writes_the_goldens_of_rbac():
    assert regenerated("rbac:roleName=manager-role", "rbac") == {
        path.name: path.read_text() for path in GOLDEN.iterdir()
    }


def test_the_order_of_rules_makes_no_difference():
    lines = (MARKERS / "operator" / "doc.go").read_text().splitlines()
    rules = [rule(line) for line in lines if line.startswith(MARKER)]

    assert dump_all(roles(reversed(rules))) == dump_all(roles(rules))


def test_no_rules_make_no_role():
    assert roles([]) == []


def granted(rules):
    return {
        (group, resource, verb)
        for rule in policy_rules(rules)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def all_of(group, resource, verbs):
    return {(group, resource, verb) for verb in verbs.split()}


def test_a_watched_kind_is_read_an_owned_one_is_written_too():
    assert granted(watched_rules("", "pods")) == all_of("", "pods", "get list watch")
    assert granted(owned_rules("apps", "deployments")) == all_of(
        "apps", "deployments", "get list watch create update patch delete"
    )


def test_the_kind_of_a_controller_is_changed_and_its_status_written():
    rules = reconciled_rules("g", "games", has_status=True)

    assert granted(rules) == all_of("g", "games", "get list watch update patch") | all_of(
        "g", "games/status", "get update patch"
    )
    assert granted(reconciled_rules("g", "games", has_status=False)) == all_of(
        "g", "games", "get list watch update patch"
    )


def test_owners_and_events_have_rules_of_their_own():
    assert granted(finalizer_rules("g", "games")) == {("g", "games/finalizers", "update")}
    assert granted(event_rules()) == all_of("events.k8s.io", "events", "create patch")


def test_what_is_said_about_writing_replaces_what_is_derived():
    said = [
        RBACRule(groups=("apps",), resources=("deployments",), verbs=("create",)),
        RBACRule(groups=("g",), resources=("games/status",), verbs=("update",)),
    ]
    derived = [
        *owned_rules("apps", "deployments"),
        *reconciled_rules("g", "games", has_status=True),
        *finalizer_rules("g", "games"),
    ]

    assert granted(derived_beside(said, derived)) == (
        all_of("apps", "deployments", "get list watch create")
        | all_of("g", "games", "get list watch update patch")
        | {("g", "games/status", "update"), ("g", "games/finalizers", "update")}
    )


@pytest.mark.parametrize(
    "said",
    [
        RBACRule(groups=("",), resources=("secrets",), verbs=("get",), resource_names=("licence",)),
        RBACRule(groups=("",), resources=("secrets",), verbs=("get",), namespace="ops"),
        RBACRule(groups=("",), resources=("secrets",), verbs=("get",), namespace="ops", resource_names=("licence",)),
    ],
    ids=["names", "namespace", "both"],
)
def test_what_is_said_about_some_objects_leaves_what_is_derived_for_all(said):
    derived = owned_rules("", "secrets")

    assert derived_beside([said], derived) == [said, *derived]


def test_what_is_said_about_a_namespace_holds_for_what_is_derived_there():
    said = RBACRule(groups=("",), resources=("secrets",), verbs=("create",), namespace="ops")
    here, there = (replace(owned_rules("", "secrets")[0], namespace=namespace) for namespace in ("ops", "shop"))

    result = derived_beside([said], [here, there])

    assert result == [said, replace(here, verbs=("get", "list", "watch")), there]


def test_the_core_group_has_two_names_for_what_is_said():
    said = [RBACRule(groups=("core",), resources=("pods",), verbs=("create",))]

    assert granted(derived_beside(said, owned_rules("", "pods"))) == all_of("", "pods", "get list watch create")


def test_the_role_of_an_election_has_the_lease_and_its_events():
    role = election_role("leader-election-role")

    assert (role["kind"], role["metadata"]) == ("Role", {"name": "leader-election-role"})
    assert {tuple(rule["resources"]): rule["verbs"] for rule in role["rules"]} == {
        ("leases",): ["create", "get", "update"],
        ("events",): ["create", "patch"],
    }
    assert election_role("x", "zoo")["metadata"]["namespace"] == "zoo"
    assert len(election_role("x", with_events=False)["rules"]) == 1


def test_a_webhook_certificate_needs_its_secret_and_what_trusts_it_by_name():
    cluster, namespaced = roles(certificate_rules("cert", "zoo", mutating=["m"], definitions=["b.x.io", "a.x.io"]))

    assert (namespaced["kind"], namespaced["metadata"]["namespace"]) == ("Role", "zoo")
    assert [(rule["verbs"], rule.get("resourceNames")) for rule in namespaced["rules"]] == [
        (["create"], None),
        (["get", "update"], ["cert"]),
    ]
    assert [(rule["resources"], rule["resourceNames"]) for rule in cluster["rules"]] == [
        (["mutatingwebhookconfigurations"], ["m"]),
        (["customresourcedefinitions"], ["a.x.io", "b.x.io"]),
    ]


@pytest.mark.parametrize(
    ("bad", "advice"),
    [
        (RBACRule(resources=("pods",)), "grants nothing"),
        (RBACRule(verbs=("get",)), "grants nothing"),
        (RBACRule(resources=("pods",), verbs=("get",)), "has no API group"),
        (RBACRule(urls=("/metrics",), groups=("apps",), verbs=("get",)), "Split it into two rules"),
        (RBACRule(urls=("/metrics",), resource_names=("a",), verbs=("get",)), "Split it into two rules"),
        (RBACRule(urls=("/metrics",), verbs=("get",), namespace="zoo"), "URLs are cluster-scoped"),
        (RBACRule(urls=("/metrics",), groups=("",), resources=("pods",), verbs=("get",)), "Split it into two rules"),
    ],
)
def test_a_rule_no_server_takes_is_refused(bad, advice):
    with pytest.raises(GenerateError, match=advice):
        roles([bad])


def of(groups, resources, verbs):
    return RBACRule(
        groups=tuple(groups.split(";")), resources=tuple(resources.split(";")), verbs=tuple(verbs.split(";"))
    )


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (of("", "pods", "gett"), "Kubernetes has no verb 'gett'; did you mean 'get'?"),
        (of("core", "pods", "get;List"), "Kubernetes has no verb 'List'; did you mean 'list'?"),
        (of("", "pods", "read"), "no verb 'read'. Use get, list, watch, create, update, patch, delete or"),
        (of("apps", "deployment", "get"), "no resource 'deployment' in the group apps; did you mean 'deployments'?"),
        (of("apps", "Deployment", "get"), "did you mean 'deployments'?"),
        (of("", "pvc/status", "get"), "in the core group; did you mean 'persistentvolumeclaims'?"),
        (of("", "deployments", "*"), "no resource 'deployments' in the core group; did you mean groups=\"apps\"?"),
        (of(";batch", "pods;cronjob", "get"), "in the core group or the group batch; did you mean 'cronjobs'?"),
        (of("", "pods/logs", "get"), "no subresource 'pods/logs'; did you mean 'pods/log'?"),
    ],
)
def test_check_names_refuses_a_typing_error_in_a_built_in_group(rule, message):
    with pytest.raises(GenerateError) as refused:
        check_names([rule], pytest.fail)

    assert message in str(refused.value)
    assert str(refused.value).startswith("@rbac(groups=")


@pytest.mark.parametrize(
    "rule",
    [
        of("*", "deployment", "gett"),
        of("apps", "*", "*"),
        of("apps", "*/scale", "update"),
        of(";apps", "pods;deployments/finalizers;deployments/scale", "get"),
        of("", "nodes/stats;nodes/metrics;pods/anything", "get"),
        of("x.example.com", "deployment", "gett"),
        of("apps;x.example.com", "carts", "get"),
        of("rbac.authorization.k8s.io", "clusterroles", "bind;escalate"),
        of("", "users;groups;serviceaccounts", "impersonate"),
        of("authentication.k8s.io", "userextras/scopes;uids", "impersonate"),
        of("", "my-audience", "request-serviceaccounts-token-audience"),
        of("certificates.k8s.io", "signers", "approve;sign"),
        RBACRule(urls=("/metrics",), verbs=("head",)),
    ],
)
def test_check_names_takes_wildcards_subresources_urls_and_other_groups(rule):
    check_names([rule], pytest.fail)


def test_check_names_warns_of_a_resource_that_another_version_can_serve():
    lines = []

    check_names([of("scheduling.k8s.io", "workloads", "get")], lines.append)

    assert [line.partition(": ")[2] for line in lines] == [
        "Kubernetes 1.36 has no resource 'workloads' in the group scheduling.k8s.io. Check the name, unless your cluster serves it"
    ]


def test_check_names_takes_everything_that_the_default_roles_grant():
    recorded = json.loads(gzip.decompress(open_data("kubernetes-1.36/rbac-bootstrap.json.gz")))
    rules = [rule for role in (*recorded["clusterroles"], *recorded["roles"]) for rule in role.get("rules") or ()]

    check_names(
        [
            RBACRule(groups=tuple(rule["apiGroups"]), resources=tuple(rule["resources"]), verbs=tuple(rule["verbs"]))
            for rule in rules
            if "apiGroups" in rule
        ],
        pytest.fail,
    )


def test_the_documents_are_yaml_of_the_api():
    text = dump_all(roles(watched_rules("", "pods"), role_name="reader"))

    assert list(yaml.safe_load_all(text)) == roles(watched_rules("", "pods"), role_name="reader")
