"""What rules grant, and that nobody grants more than they hold; the same words on both servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from identity_callers import GROUP, MERGE, RBAC, REVIEWS, Answer, bound, has_controller_manager, may, rule
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually

# What rules grant


async def test_a_role_and_its_binding_grant_in_one_namespace(admin, alice, user, namespace):
    place = f"{RBAC}/namespaces/{namespace}"
    admin.made(f"{place}/roles", {"metadata": {"name": "r"}, "rules": [rule(["list"], resources=["configmaps"])]})
    made = admin.made(
        f"{place}/rolebindings", bound("rb", {"kind": "Role", "name": "r"}, {"kind": "User", "name": user})
    )

    await eventually(lambda: not alice.get(f"/api/v1/namespaces/{namespace}/configmaps").reason, timeout=LONGEST_WAIT)
    assert alice.get(f"/api/v1/namespaces/{namespace}/configmaps?watch=1&timeoutSeconds=1").reason == "Forbidden"
    assert alice.get("/api/v1/namespaces/default/configmaps").reason == "Forbidden"
    assert alice.get("/api/v1/configmaps").reason == "Forbidden"
    assert (made["roleRef"]["apiGroup"], made["subjects"][0]["apiGroup"]) == (GROUP, GROUP)
    spec = {"user": user, "resourceAttributes": {"verb": "list", "resource": "configmaps", "namespace": namespace}}
    reason = f'RBAC: allowed by RoleBinding "rb/{namespace}" of Role "r" to User "{user}"'
    assert admin.made(REVIEWS, {"spec": spec})["status"] == {"allowed": True, "reason": reason}
    admin.ask("DELETE", f"{place}/rolebindings/rb")
    await eventually(lambda: alice.get(f"/api/v1/namespaces/{namespace}/configmaps").reason, timeout=LONGEST_WAIT)


async def test_resource_names_allow_lists_of_one_name_but_no_create(alice, grant):
    verbs = ["get", "list", "watch", "create", "delete", "deletecollection"]
    await grant(rule(verbs, resources=["configmaps"], resourceNames=["one"]))
    path = "/api/v1/namespaces/default/configmaps"

    def reason(method: str, query: str = "", body: Any = None) -> str:
        return alice.ask(method, f"{path}{query}", body).reason

    assert reason("GET", "?fieldSelector=metadata.name%3Done") == ""
    assert reason("GET", "?fieldSelector=metadata.name%3D%3Done") == ""
    assert reason("GET", "?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1") == ""
    assert reason("GET", "/one") == "NotFound"
    assert reason("GET") == "Forbidden"
    assert reason("GET", "?fieldSelector=metadata.name%3Dtwo") == "Forbidden"
    assert reason("GET", "?fieldSelector=metadata.name!%3Done") == "Forbidden"
    assert reason("POST", "", {"metadata": {"name": "one"}}) == "Forbidden"
    assert reason("DELETE", "?fieldSelector=metadata.name%3Done") == "Forbidden"


GRANTED: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    (rule(["*"], ["*"], ["*"]), {"verb": "x", "group": "g", "resource": "r", "subresource": "s", "name": "n"}, True),
    (rule(["get"], ["apps"]), {"verb": "get", "resource": "pods"}, False),
    (rule(["get"]), {"verb": "get", "resource": "pods", "subresource": "log"}, False),
    (rule(["get"], resources=["pods/log"]), {"verb": "get", "resource": "pods", "subresource": "log"}, True),
    (rule(["get"], resources=["pods/log"]), {"verb": "get", "resource": "pods"}, False),
    (rule(["get"], ["*"], ["*/scale"]), {"verb": "get", "group": "a", "resource": "b", "subresource": "scale"}, True),
    (rule(["get"], ["*"], ["*/scale"]), {"verb": "get", "group": "a", "resource": "b"}, False),
    (rule(["get"], resources=["pods/*"]), {"verb": "get", "resource": "pods", "subresource": "log"}, False),
    (rule(["get"], resources=["*"]), {"verb": "get", "resource": "pods", "subresource": "log"}, True),
    (rule(["get"], resourceNames=["one"]), {"verb": "get", "resource": "pods", "name": "one"}, True),
    (rule(["get"], resourceNames=["one"]), {"verb": "get", "resource": "pods", "name": "two"}, False),
    (rule(["list"], resourceNames=["one"]), {"verb": "list", "resource": "pods"}, False),
    (rule(["get"]), {"verb": "GET", "resource": "pods"}, False),
    (rule(["get"]), {"verb": "get", "resource": "Pods"}, False),
    (rule(["deletecollection"]), {"verb": "delete", "resource": "pods"}, False),
]
GRANTED_PATHS: list[tuple[str, str, bool]] = [
    ("/metrics", "/metrics", True),
    ("/metrics", "/metrics/", False),
    ("/metrics", "/metrics/x", False),
    ("/debug/*", "/debug/pprof/heap", True),
    ("/debug/*", "/debug/", True),
    ("/debug/*", "/debug", False),
    ("/debug*", "/debugger", True),
    ("/*/x", "/a/x", False),
    ("*", "/anything", True),
]


@pytest.mark.parametrize(("granted", "asked", "expected"), GRANTED)
async def test_what_a_rule_allows(admin, user, grant, granted, asked, expected):
    await grant(granted)

    assert may(admin, {"user": user, "resourceAttributes": asked}) is expected


async def test_what_a_path_allows(admin, user, cleanup, server):
    for number, (pattern, path, expected) in enumerate(GRANTED_PATHS):
        name = f"{user}-{number}"
        rules = [{"verbs": ["get"], "nonResourceURLs": [pattern]}]
        admin.made(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        cleanup.append(f"{RBAC}/clusterroles/{name}")
        admin.made(
            f"{RBAC}/clusterrolebindings",
            bound(name, {"kind": "ClusterRole", "name": name}, {"kind": "User", "name": name}),
        )
        cleanup.append(f"{RBAC}/clusterrolebindings/{name}")
        probe = {"user": name, "nonResourceAttributes": {"verb": "get", "path": pattern}}
        await eventually(lambda probe=probe: may(admin, probe), timeout=LONGEST_WAIT)
        spec = {"user": name, "nonResourceAttributes": {"verb": "get", "path": path}}
        assert may(admin, spec) is expected, (pattern, path)


# Nobody grants what they do not hold

HELD = [
    rule(["create", "update", "patch", "get", "delete"], [GROUP], ["*"]),
    rule(["get", "list"], resources=["configmaps", "pods"]),
    rule(["get"], ["apps"], ["deployments/scale"]),
    rule(["get"], resources=["secrets"], resourceNames=["a", "b"]),
    {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/*"]},
]
ESCALATIONS: list[tuple[list[dict[str, Any]], list[str]]] = [
    ([rule(["get"])], []),
    ([rule(["get", "watch"])], ['{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}']),
    (
        [rule(["watch"]), rule(["get", "delete"], ["apps"], ["deployments", "replicasets"])],
        [
            '{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}',
            '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "delete"]}',
            '{APIGroups:["apps"], Resources:["replicasets"], Verbs:["get" "delete"]}',
        ],
    ),
    ([rule(["*"])], ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}']),
    ([rule(["get"], ["*"], ["*"])], ['{APIGroups:["*"], Resources:["*"], Verbs:["get"]}']),
    ([rule(["get"], resources=["secrets"])], ['{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}']),
    ([rule(["get"], resources=["secrets"], resourceNames=["a"])], []),
    (
        [rule(["get"], resources=["secrets"], resourceNames=["a", "c", "d"])],
        [
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["c"], Verbs:["get"]}',
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["d"], Verbs:["get"]}',
        ],
    ),
    (
        [rule(["get"], ["apps"], ["*/scale", "deployments/scale"])],
        ['{APIGroups:["apps"], Resources:["*/scale"], Verbs:["get"]}'],
    ),
    ([rule(["get"], resources=["pods/log"])], ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}']),
    ([{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/debug/x", "/debug/*"]}], []),
    (
        [{"verbs": ["get", "post"], "nonResourceURLs": ["/metrics", "/debug/x", "/*", "*"]}],
        [
            '{NonResourceURLs:["*"], Verbs:["get"]}',
            '{NonResourceURLs:["*"], Verbs:["post"]}',
            '{NonResourceURLs:["/*"], Verbs:["get"]}',
            '{NonResourceURLs:["/*"], Verbs:["post"]}',
            '{NonResourceURLs:["/debug/x"], Verbs:["post"]}',
            '{NonResourceURLs:["/metrics"], Verbs:["post"]}',
        ],
    ),
    (
        [rule(["b", "a", "list"], ["z", ""], ["pods", "q/status"])],
        [
            '{APIGroups:[""], Resources:["pods"], Verbs:["b" "a"]}',
            '{APIGroups:[""], Resources:["q/status"], Verbs:["b" "a" "list"]}',
            '{APIGroups:["z"], Resources:["pods"], Verbs:["b" "a" "list"]}',
            '{APIGroups:["z"], Resources:["q/status"], Verbs:["b" "a" "list"]}',
        ],
    ),
    ([rule(["delete"]), rule(["delete"])], ['{APIGroups:[""], Resources:["pods"], Verbs:["delete" "delete"]}']),
    ([rule(["delete"]), rule(["watch"])], ['{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}']),
]


def escalating(plural: str, name: str, user: str, missing: Sequence[str]) -> tuple[str, str]:
    about = f'{plural}.{GROUP} "{name}"' if name else f"{plural}.{GROUP}"
    groups = 'groups=["dev" "ops" "system:authenticated"]'
    said = f'{about} is forbidden: user "{user}" ({groups}) is attempting to grant RBAC permissions not currently held:'
    return "Forbidden", "\n".join([said, *missing])


async def test_a_role_grants_only_what_its_author_holds(alice, user, grant):
    await grant(*HELD)

    for rules, missing in ESCALATIONS:
        answer = alice.post(f"{RBAC}/clusterroles?dryRun=All", {"metadata": {"name": f"r-{user}"}, "rules": rules})
        assert answer.outcome == (escalating("clusterroles", f"r-{user}", user, missing) if missing else ("", "")), (
            rules
        )


async def test_escalation_is_checked_at_every_write_of_a_role(admin, alice, user, grant, namespace):
    await grant(*HELD)
    place = f"{RBAC}/namespaces/{namespace}/roles"
    more = {"metadata": {"name": "t"}, "rules": [rule(["delete"])]}
    refused = escalating("roles", "t", user, ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'])

    assert alice.post(place, more).outcome == refused
    alice.made(place, {"metadata": {"name": "t"}, "rules": [rule(["get"])]})
    assert alice.ask("PUT", f"{place}/t", more).outcome == refused
    assert alice.ask("PATCH", f"{place}/t", {"rules": more["rules"]}, content_type=MERGE).outcome == refused
    assert admin.ask("PUT", f"{place}/t", more).reason == ""
    labelled = {"metadata": {"labels": {"a": "b"}}}
    assert alice.ask("PATCH", f"{place}/t", labelled, content_type=MERGE).outcome == refused
    held = {"metadata": {"finalizers": ["example.com/x"]}}
    assert alice.ask("PATCH", f"{place}/t", held, content_type=MERGE).reason == ""
    assert alice.ask("PATCH", f"{place}/t", {"metadata": {"finalizers": None}}, content_type=MERGE).reason == ""
    assert alice.ask("DELETE", f"{place}/t").reason == ""
    unnamed = alice.post(place, {"metadata": {"generateName": "t"}, "rules": [rule(["delete"])]})
    assert unnamed.outcome == escalating("roles", "", user, ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'])


async def test_escalation_is_checked_when_a_role_is_applied(admin, alice, user, grant, cleanup):
    await grant(*HELD)
    path = f"{RBAC}/clusterroles/{user}?fieldManager=m"
    cleanup.append(f"{RBAC}/clusterroles/{user}")
    head = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": user}}
    refused = escalating("clusterroles", user, user, ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'])

    def apply(*rules: dict[str, Any]) -> Answer:
        return alice.ask("PATCH", path, {**head, "rules": list(rules)}, content_type="application/apply-patch+yaml")

    assert apply(rule(["delete"])).outcome == refused
    assert apply(rule(["get"])).reason == ""
    assert apply(rule(["get"]), rule(["delete"])).outcome == refused


async def test_missing_roles_are_named_where_they_may_explain_a_refusal(admin, alice, user, grant, cleanup):
    await grant(rule(["create"], [GROUP], ["*"]))
    name = f"ghost-{user}"
    admin.made(
        f"{RBAC}/clusterrolebindings",
        bound(name, {"kind": "ClusterRole", "name": name}, {"kind": "User", "name": user}),
    )
    cleanup.append(f"{RBAC}/clusterrolebindings/{name}")
    missing = '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; resolution errors: '
    expected = escalating("clusterroles", "r", user, [f'{missing}[clusterroles.{GROUP} "{name}" not found]'])

    def refused() -> bool:
        role = {"metadata": {"name": "r"}, "rules": [rule(["get"])]}
        return alice.post(f"{RBAC}/clusterroles?dryRun=All", role).outcome == expected

    await eventually(refused, timeout=LONGEST_WAIT)


async def test_a_binding_gives_only_what_its_author_holds(admin, alice, user, grant, namespace, cleanup):
    await grant(*HELD)
    place = f"{RBAC}/namespaces/{namespace}"
    other = {"kind": "User", "name": "z"}
    admin.made(f"{place}/roles", {"metadata": {"name": "t"}, "rules": [rule(["delete"])]})
    admin.made(f"{place}/rolebindings", bound("made", {"kind": "Role", "name": "t"}, other))
    missing = ['{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}']

    def bind(name: str, kind: str, role: str) -> tuple[str, str]:
        ref = {"kind": kind, "name": role, "apiGroup": GROUP}
        return alice.post(f"{place}/rolebindings?dryRun=All", bound(name, ref, other)).outcome

    assert bind("a", "Role", "t") == escalating("rolebindings", "a", user, missing)
    assert bind("a", "ClusterRole", "system:basic-user") == ("", "")
    assert bind("a", "ClusterRole", f"no-{user}") == ("NotFound", f'rolebindings.{GROUP} "no-{user}" not found')
    assert bind("a", "Role", "none") == ("NotFound", f'rolebindings.{GROUP} "none" not found')
    assert bind("a", "Foo", "x") == ("500", 'unsupported role reference kind: "Foo"')
    assert alice.post(
        f"{RBAC}/clusterrolebindings?dryRun=All", bound("a", {"kind": "Role", "name": "x"}, other)
    ).outcome == ("BadRequest", "Namespace parameter required.")
    patch = {"subjects": [{"kind": "User", "name": "q"}]}
    patched = alice.ask("PATCH", f"{place}/rolebindings/made", patch, content_type=MERGE)
    assert patched.outcome == escalating("rolebindings", "made", user, missing)


async def test_bind_and_escalate_lift_the_check(alice, user, grant, namespace):
    await grant(
        *HELD,
        rule(["bind"], [GROUP], ["clusterroles"], resourceNames=["edit"]),
        rule(["escalate"], [GROUP], ["roles"]),
    )
    place = f"{RBAC}/namespaces/{namespace}"
    more = {"metadata": {"name": "t"}, "rules": [rule(["delete"])]}
    edit, view = ({"kind": "ClusterRole", "name": name} for name in ("edit", "admin"))

    assert alice.post(f"{place}/rolebindings", bound("e", edit, {"kind": "User", "name": "z"})).reason == ""
    assert alice.post(f"{place}/rolebindings", bound("v", view, {"kind": "User", "name": "z"})).reason == "Forbidden"
    assert alice.post(f"{place}/roles", more).reason == ""
    assert alice.post(f"{RBAC}/clusterroles?dryRun=All", more).reason == "Forbidden"


async def test_an_aggregated_role_needs_everything(alice, user, grant):
    await grant(*HELD)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}

    answer = alice.post(f"{RBAC}/clusterroles?dryRun=All", {"metadata": {"name": "agg"}, "aggregationRule": selectors})

    said = f'clusterroles.{GROUP} "agg" is forbidden: must have cluster-admin privileges to use the aggregationRule'
    assert answer.outcome == ("Forbidden", said)


async def test_an_aggregated_role_has_the_rules_of_those_it_selects(admin, user, cleanup, server):
    if server.backend == "real" and not has_controller_manager(admin):
        pytest.skip("aggregation is kube-controller-manager's")
    label = {"agg": user}
    names = [f"{user}-{letter}" for letter in "cab"]
    for name, verb in zip(names, ["x", "y", "x"], strict=True):
        admin.made(f"{RBAC}/clusterroles", {"metadata": {"name": name, "labels": label}, "rules": [rule([verb])]})
        cleanup.append(f"{RBAC}/clusterroles/{name}")
    whole = {
        "metadata": {"name": user},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label}]},
        "rules": [rule(["own"])],
    }
    admin.made(f"{RBAC}/clusterroles", whole)
    cleanup.append(f"{RBAC}/clusterroles/{user}")

    def verbs() -> list[str]:
        return [one["verbs"][0] for one in admin.get(f"{RBAC}/clusterroles/{user}").body.get("rules") or ()]

    await eventually(lambda: verbs() == ["y", "x"], timeout=LONGEST_WAIT)
    admin.ask("PATCH", f"{RBAC}/clusterroles/{user}", {"rules": [rule(["mine"])]}, content_type=MERGE)
    await eventually(lambda: verbs() == ["y", "x"], timeout=LONGEST_WAIT)
    admin.ask("DELETE", f"{RBAC}/clusterroles/{user}-a")
    await eventually(lambda: verbs() == ["x"], timeout=LONGEST_WAIT)
