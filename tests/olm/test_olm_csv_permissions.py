"""Permissions of a ClusterServiceVersion: what is bound to the operator's accounts goes in, all else stays."""

from __future__ import annotations

import pytest
from csv_objects import account, binding, deployment, role, rule, thing

from ctrlruntime.olm.csv.objects import Objects, told
from ctrlruntime.olm.csv.permissions import granted

MANAGER = "shop-controller-manager"
PODS, NODES, LEASES = rule("pods"), rule("nodes", "list"), rule("leases", "update")


@pytest.fixture
def warnings() -> list[str]:
    return []


def grant(warnings, *documents, extra=()):
    objects = Objects([deployment(), *documents])
    found = granted(objects, extra, warnings.append)
    return found.permissions, found.cluster_permissions, [told(each) for each in objects.documents[1:]]


def entry(*rules, name=MANAGER):
    return {"serviceAccountName": name, "rules": list(rules)}


def test_the_kind_of_the_binding_says_where_rules_hold(warnings):
    permissions, of_cluster, left = grant(
        warnings,
        account(),
        role("election", LEASES),
        binding("election"),
        role("manager", PODS, NODES, kind="ClusterRole"),
        binding("manager", kind="ClusterRoleBinding"),
        role("metrics", NODES, kind="ClusterRole"),
        binding("metrics", role_kind="ClusterRole"),
    )

    assert permissions == [entry(LEASES, NODES)]
    assert of_cluster == [entry(PODS, NODES)]
    assert (left, warnings) == ([], [])


def test_accounts_are_sorted_and_the_rules_of_each_are_one_list(warnings):
    permissions, of_cluster, left = grant(
        warnings,
        account("backup"),
        deployment(name="worker", account="another"),
        role("one", PODS),
        binding("one", MANAGER, "another"),
        role("two", LEASES),
        binding("two", "backup", "another"),
        extra=["backup"],
    )

    assert permissions == [entry(PODS, LEASES, name="another"), entry(LEASES, name="backup"), entry(PODS)]
    assert of_cluster == []
    assert left == ["Deployment/worker"]


def test_what_is_bound_to_nobody_of_ours_stays(warnings):
    permissions, _, left = grant(
        warnings,
        account("backup"),
        role("viewer", PODS, kind="ClusterRole"),
        role("backup", PODS),
        binding("backup", "backup"),
    )

    assert permissions == [entry()]
    assert left == ["ServiceAccount/backup", "ClusterRole/viewer", "Role/backup", "RoleBinding/backup-binding"]
    assert warnings == []


def test_an_account_without_rules_has_an_entry_else_nobody_makes_it(warnings):
    assert grant(warnings, account()) == ([entry()], [], [])


def test_the_default_account_is_there_already(warnings):
    objects = Objects([deployment(account=""), role("one", PODS)])

    found = granted(objects, (), warnings.append)

    assert (found.permissions, found.cluster_permissions) == ([], [])


def test_a_binding_for_others_too_stays_for_those(warnings):
    permissions, _, left = grant(warnings, role("one", PODS), shared := binding("one", MANAGER, "people"))

    assert permissions == [entry(PODS)]
    assert left == ["Role/one", "RoleBinding/one-binding"]
    assert len(shared["subjects"]) == 2  # the object that was given is not changed


def test_a_role_of_another_namespace_is_no_permission(warnings):
    permissions, of_cluster, left = grant(
        warnings, role("one", PODS, namespace="elsewhere"), binding("one", namespace="elsewhere")
    )

    assert (permissions, of_cluster) == ([entry()], [])
    assert left == ["Role/one", "RoleBinding/one-binding"]


@pytest.mark.parametrize(
    "documents",
    [
        pytest.param([binding("system:auth-delegator", kind="ClusterRoleBinding")], id="of the cluster"),
        pytest.param(
            [
                role("all", kind="ClusterRole", aggregationRule={"clusterRoleSelectors": []}),
                binding("all", kind="ClusterRoleBinding"),
            ],
            id="aggregated",
        ),
    ],
)
def test_a_role_whose_rules_nobody_knows_here_stays_with_a_warning(warnings, documents):
    permissions, of_cluster, left = grant(warnings, *documents)

    assert (permissions, of_cluster) == ([entry()], [])
    assert left == [told(each) for each in documents]
    assert len(warnings) == 1
    assert "Write the rules into your own role" in warnings[0]


def test_an_extra_account_that_is_granted_nothing_is_a_warning(warnings):
    permissions, _, left = grant(warnings, account("backup"), extra=["backup", "backpu"])

    assert (permissions, left) == ([entry()], ["ServiceAccount/backup"])
    assert [each.partition(" gets no permissions")[0] for each in warnings] == [
        "the ServiceAccount backpu",
        "the ServiceAccount backup",
    ]


def test_a_namesake_in_another_namespace_is_somebody_else(warnings):
    stranger = binding("one")
    stranger["subjects"][0]["namespace"] = "elsewhere"

    permissions, _, left = grant(
        warnings, role("one", PODS), stranger, thing("v1", "ServiceAccount", MANAGER, "elsewhere")
    )

    assert permissions == [entry()]
    assert left == ["Role/one", "RoleBinding/one-binding", f"ServiceAccount/{MANAGER}"]
