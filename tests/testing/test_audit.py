"""Permissions used beside permissions granted: the comparison, what is recorded, and the pytest option."""

from __future__ import annotations

import json
import os
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import ctrlruntime as ctrl
from ctrlruntime.api import apps
from ctrlruntime.client.observers import CallObservers, witnesses
from ctrlruntime.errors import ConfigError
from ctrlruntime.manager.manager import running
from ctrlruntime.rest.fence import Actor, acting
from ctrlruntime.testing import Environment, eventually
from ctrlruntime.testing.audit import Permission, Recorder, compare, read_roles
from examples.memcached.api import Memcached
from examples.memcached.controller import ELECTION, setup

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "examples/memcached/config/rbac/role.yaml"


def role(*rules, kind="ClusterRole", namespace=""):
    metadata = {"name": "r", "namespace": namespace} if namespace else {"name": "r"}
    return {"kind": kind, "metadata": metadata, "rules": [dict(rule) for rule in rules]}


def rule(group, resource, verbs, **more):
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs.split(), **more}


def differences(used, *roles):
    found = compare([Permission(*each) for each in used], roles)
    return [each[:3] for each in found.missing], [(g.group, g.resource, g.verb) for g in found.unused]


# The comparison


def test_what_is_granted_and_used_is_neither_missing_nor_unused():
    granted = role(rule("apps", "deployments", "create"))

    assert differences([("apps", "deployments", "create", "ns", "a")], granted) == ([], [])


def test_a_permission_no_role_grants_is_missing_and_a_grant_nobody_uses_unused():
    granted = role(rule("apps", "deployments", "create"))

    assert differences([("apps", "deployments", "update")], granted) == (
        [("apps", "deployments", "update")],
        [("apps", "deployments", "create")],
    )


@pytest.mark.parametrize("verb", ["bind", "escalate", "impersonate"])
def test_verb_that_no_request_has_is_not_unused(verb):
    assert differences([], role(rule("rbac.authorization.k8s.io", "clusterroles", verb))) == ([], [])


def test_a_subresource_is_a_resource_of_its_own():
    granted = role(rule("apps", "deployments", "update"))

    assert differences([("apps", "deployments/status", "update")], granted)[0] == [
        ("apps", "deployments/status", "update")
    ]


@pytest.mark.parametrize(
    "granted",
    [rule("*", "deployments/status", "update"), rule("apps", "*", "*"), rule("apps", "*/status", "update")],
)
def test_stars_grant_everything_of_their_place(granted):
    assert differences([("apps", "deployments/status", "update")], role(granted)) == ([], [])


def test_a_star_over_one_subresource_grants_no_other():
    granted = role(rule("apps", "*/status", "update"))

    assert differences([("apps", "deployments/scale", "update")], granted)[0] != []


def test_names_limit_a_grant():
    granted = role(rule("", "secrets", "get", resourceNames=["mine"]))

    assert differences([("", "secrets", "get", "ns", "mine")], granted) == ([], [])
    assert differences([("", "secrets", "get", "ns", "other")], granted)[0] == [("", "secrets", "get")]


def test_a_role_grants_in_its_namespace_and_one_without_wherever_it_is_put():
    used = [("", "secrets", "get", "zoo", "a")]

    assert differences(used, role(rule("", "secrets", "get"), kind="Role", namespace="zoo")) == ([], [])
    assert differences(used, role(rule("", "secrets", "get"), kind="Role")) == ([], [])
    assert differences(used, role(rule("", "secrets", "get"), kind="Role", namespace="park"))[0] != []
    assert differences([("", "secrets", "list")], role(rule("", "secrets", "list"), kind="Role"))[0] != []


def test_a_role_of_a_project_is_put_where_kustomize_puts_it():
    used = [("", "secrets", "get", "zoo")]
    moved = role(rule("", "secrets", "get"), kind="Role", namespace="system")
    named = {**moved, "metadata": {**moved["metadata"], "annotations": {"ctrlruntime.dev/namespace": "zoo"}}}

    assert differences(used, moved) == ([], [])
    assert differences(used, named) == ([], [])
    assert differences([("", "secrets", "get", "park")], named)[0] != []


def test_get_is_part_of_reading_through_a_cache():
    granted = role(rule("", "pods", "get list watch"))

    assert differences([("", "pods", "list"), ("", "pods", "watch")], granted) == ([], [])
    assert differences([], role(rule("", "pods", "get")))[1] == [("", "pods", "get")]


def test_what_a_manager_needs_for_itself_is_not_unused():
    granted = role(
        rule("coordination.k8s.io", "leases", "create get update"),
        rule("events.k8s.io", "events", "create patch"),
    )

    assert differences([], granted) == ([], [])
    assert differences([], role(rule("coordination.k8s.io", "leases", "delete")))[1] != []


def test_the_secret_of_a_webhook_certificate_is_not_unused_when_it_is_limited_to_its_name():
    named = rule("", "secrets", "get update", resourceNames=["cert"])
    trusting = rule("apiextensions.k8s.io", "customresourcedefinitions", "get update", resourceNames=["games.x.io"])

    assert differences([], role(named, rule("", "secrets", "create"), trusting)) == ([], [])
    assert differences([], role(rule("", "secrets", "create")))[1] == [("", "secrets", "create")]
    assert differences([], role(rule("", "secrets", "get update")))[1] != []


def test_urls_are_not_judged():
    assert differences([], role({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})) == ([], [])


def test_the_lines_name_each_missing_permission_once_and_who_used_it():
    used = {
        Permission("apps", "deployments", "create", "one", "a"): "memcached",
        Permission("apps", "deployments", "create", "two", "b"): "memcached",
    }

    found = compare(used, [role(rule("", "pods", "list"))])

    assert found.lines(by=used) == [
        "missing: create deployments.apps in one (used by memcached)",
        "unused:  list pods (ClusterRole r)",
    ]
    assert compare(used, [role(rule("apps", "deployments", "create"))]).lines() == [
        "nothing missing, nothing unused; 1 permissions used"
    ]


# What is recorded


CONTROLLER = Actor("memcached")


def recorded(*arguments, actor=CONTROLLER, origin="client", cluster="", **more):
    observers = CallObservers(origin=origin, cluster=cluster)
    with Recorder() as recorder:
        if actor is None:
            observers.record(*arguments, **more)
        else:
            with acting(actor):
                observers.record(*arguments, **more)
    return set(recorder.used)


def test_what_a_controller_does_is_counted_and_what_a_test_does_is_not():
    call = ("create", "apps", "deployments", "", "ns", "a")

    assert recorded(*call) == {Permission("apps", "deployments", "create", "ns", "a")}
    assert recorded(*call, actor=None) == set()


def test_a_cache_that_a_test_fills_is_not_the_operators():
    call = ("list", "", "pods")

    assert recorded(*call, origin="cache") == {Permission("", "pods", "list")}
    assert recorded(*call, origin="cache", actor=None) == set()


def test_of_a_manager_itself_leases_and_events_are_counted():
    assert recorded("update", "coordination.k8s.io", "leases", origin="unfenced", actor=None) != set()
    assert recorded("create", "events.k8s.io", "events", origin="unfenced", actor=None) != set()
    assert recorded("create", "", "secrets", origin="unfenced", actor=None) == set()


def test_another_cluster_has_other_roles():
    assert recorded("create", "", "pods", cluster="member") == set()


def test_blocking_the_deletion_of_an_owner_needs_its_finalizers():
    owner = {"apiVersion": "g.example.com/v1", "kind": "Policy", "name": "p", "uid": "u"}

    def used(**more):
        body = {"metadata": {"ownerReferences": [{**owner, **more}]}}
        return recorded("create", "", "pods", "", "ns", "a", body=json.dumps(body).encode())

    created = Permission("", "pods", "create", "ns", "a")
    assert used(blockOwnerDeletion=True) == {
        created,
        Permission("g.example.com", "policies/finalizers", "update", "ns", "p"),
    }
    assert used(blockOwnerDeletion=False) == {created}


def test_a_patch_that_is_a_list_is_read_too():
    body = b'[{"op": "add", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": true}]'

    assert recorded("patch", "", "pods", "", "ns", "a", body=body) == {Permission("", "pods", "patch", "ns", "a")}


def test_nothing_is_recorded_afterwards():
    with Recorder() as recorder:
        pass
    with acting(CONTROLLER):
        CallObservers().record("create", "", "pods")

    assert recorder.used == {}
    assert recorder.note not in witnesses


async def test_an_apply_that_creates_needs_both_permissions(embedded: Environment):
    cluster = ctrl.Cluster(ctrl.get_config(str(embedded.kubeconfig_path)))
    kind = ctrl.Unstructured.of("v1", "ConfigMap")
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied", "namespace": "default"}}
    with Recorder() as recorder, acting(CONTROLLER):
        await cluster.client.apply(kind.from_dict(tree), field_owner="me")
        first = {permission.verb for permission in recorder.used}
        recorder.used.clear()
        await cluster.client.apply(kind.from_dict(tree), field_owner="me")
        second = {permission.verb for permission in recorder.used}
    await cluster.close()

    assert (first, second) == ({"patch", "create"}, {"patch"})


async def test_the_memcached_example_uses_what_its_role_grants_and_nothing_else():
    with Environment(backend="embedded", crds=ROOT / "examples/memcached/config/crd/bases") as server:
        config = ctrl.get_config(str(server.kubeconfig_path))
        scheme = ctrl.Scheme(Memcached)
        mgr = ctrl.new_manager(
            config, scheme=scheme, metrics_bind_address="0", leader_election=replace(ELECTION, namespace="default")
        )
        mine = ctrl.Cluster(config, scheme=scheme)
        client = mine.unfenced_client()
        key = ctrl.NamespacedName("default", "m")

        async def reaches(size):
            async def is_there():
                memcached = await client.get(Memcached, key)
                deployment = await client.get_or_none(apps.Deployment, key)
                return len(memcached.status.nodes) == size and deployment.spec.replicas == size

            await eventually(is_there)

        with Recorder() as recorder:
            setup(mgr)
            async with running(mgr):
                memcached = await client.create(
                    Memcached(metadata={"name": "m", "namespace": "default"}, spec={"size": 1})
                )
                await reaches(1)
                memcached = await client.get(Memcached, key)
                memcached.spec.size = 2
                await client.update(memcached)
                await reaches(2)
        await mine.close()

    found = compare(recorder.used, read_roles([ROLE]))
    assert found.lines(by=recorder.used) == [f"nothing missing, nothing unused; {found.used} permissions used"]
    assert found.used > 8


# Files


def test_roles_are_read_from_files_and_other_documents_passed_over(tmp_path):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump_all([role(), {"kind": "ServiceAccount"}, None]))

    assert read_roles([tmp_path / "a.yaml"]) == [role()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read roles from .*: no such file; create it with: ctrl manifests"),
        ("a: [", "cannot read"),
        ("kind: Pod", "no Role or ClusterRole"),
    ],
)
def test_a_file_without_roles_is_named(tmp_path, text, message):
    if text is not None:
        (tmp_path / "a.yaml").write_text(text)

    with pytest.raises(ConfigError, match=message):
        read_roles([tmp_path / "a.yaml"])


# The option


@pytest.fixture
def run(tmp_path, forked_pytest):
    def run(*arguments, calls="create", ini=""):
        lines = "\n".join(f'        CallObservers().record("{verb}", "apps", "deployments")' for verb in calls.split())
        (tmp_path / "test_it.py").write_text(
            textwrap.dedent("""
            from ctrlruntime.client.observers import CallObservers
            from ctrlruntime.rest.fence import Actor, acting

            def test_it():
                with acting(Actor("game")):
            """)
            + (lines or "        pass")
            + "\n\ndef test_more(): pass\n"
        )
        (tmp_path / "role.yaml").write_text(yaml.safe_dump(role(rule("apps", "deployments", "create update"))))
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nrbac_audit = {ini}\n" if ini else "[pytest]\n")
        return forked_pytest.run_pytest(tmp_path, "-p", "no:cacheprovider", *arguments, env=dict(os.environ))

    return run


def test_a_run_that_uses_all_that_is_granted_passes(run):
    result = run("--rbac-audit=role.yaml", calls="create update")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["*rbac audit of role.yaml*", "nothing missing, nothing unused; 2 permissions used"])


def test_a_run_with_a_difference_fails_though_its_tests_pass(run):
    result = run("--rbac-audit=role.yaml", calls="create delete")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        ["missing: delete deployments.apps (used by game)", "unused:  update deployments.apps*"]
    )


def test_several_files_count_together(run, tmp_path):
    (tmp_path / "more.yaml").write_text(yaml.safe_dump(role(rule("apps", "deployments", "delete"))))

    assert run("--rbac-audit=role.yaml,more.yaml", calls="create update delete").ret == 0


def test_the_configuration_asks_for_it_and_a_selection_then_may_leave_some_unused(run):
    assert run(ini="role.yaml").ret == pytest.ExitCode.TESTS_FAILED
    assert run("-k", "test_it", ini="role.yaml").ret == 0
    missing = run("-k", "test_it", ini="role.yaml", calls="delete")
    assert missing.ret == pytest.ExitCode.TESTS_FAILED


def test_a_run_without_calls_says_so(run):
    result = run("--rbac-audit=role.yaml", calls="")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["no call of a manager was seen*"])


def test_a_file_that_is_not_there_is_wrong_usage(run):
    result = run("--rbac-audit=nowhere.yaml")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--rbac-audit: cannot read roles from *nowhere.yaml: no such file*"])


def test_without_it_nothing_is_recorded_and_nothing_printed(run):
    result = run()

    assert result.ret == 0
    assert "rbac audit" not in result.stdout.str()
