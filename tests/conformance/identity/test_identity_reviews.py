"""Access reviews and rules reviews; the same words on both servers."""

from __future__ import annotations

from typing import Any

import pytest
from identity_callers import AUTHORIZATION, GROUP, RBAC, REVIEWS, bound, rule
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually

ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
NO_ATTRIBUTES = ("spec.resourceAttributes", f"Invalid value: null: {ONE_OF}")
NO_SUBJECT = ("spec.user", 'Invalid value: "": at least one of user or group must be specified')
ATTRIBUTES = "spec.resourceAttributes"
VALUES_NEEDED = "Required value: must be specified when `operator` is 'In' or 'NotIn'"
VALUES_FORBIDDEN = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
SELF, ALL = f"{AUTHORIZATION}/selfsubjectaccessreviews", REVIEWS
LOCAL = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"


def needs_one(name: str) -> tuple[str, str]:
    where = f"{ATTRIBUTES}.{name}"
    return (
        f"{where}.requirements",
        f"Required value: when {where} is specified, requirements or rawSelector is required",
    )


def selecting(**selectors: Any) -> dict[str, Any]:
    return {"user": "a", "resourceAttributes": {"verb": "list", "resource": "pods", **selectors}}


@pytest.mark.parametrize(
    ("path", "spec", "causes"),
    [
        (SELF, {}, [NO_ATTRIBUTES]),
        (
            SELF,
            {"nonResourceAttributes": {}, "resourceAttributes": {}},
            [
                (
                    "spec.nonResourceAttributes",
                    'Invalid value: {"Path":"","Verb":""}: cannot be specified in combination with resourceAttributes',
                )
            ],
        ),
        (ALL, {"resourceAttributes": {}}, [NO_SUBJECT]),
        (ALL, {}, [NO_ATTRIBUTES, NO_SUBJECT]),
        (ALL, {"user": "a"}, [NO_ATTRIBUTES]),
        (LOCAL, {}, [NO_ATTRIBUTES, NO_SUBJECT]),
        (
            LOCAL,
            {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}},
            [(f"{ATTRIBUTES}.namespace", 'Invalid value: "": must match metadata.namespace')],
        ),
        (
            LOCAL,
            {"user": "a", "resourceAttributes": {"namespace": "other"}},
            [(f"{ATTRIBUTES}.namespace", 'Invalid value: "other": must match metadata.namespace')],
        ),
        (
            LOCAL,
            {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/x"}},
            [
                (
                    "spec.nonResourceAttributes",
                    'Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
                )
            ],
        ),
        (ALL, selecting(fieldSelector={}, labelSelector={}), [needs_one("fieldSelector"), needs_one("labelSelector")]),
        (
            ALL,
            selecting(fieldSelector={"requirements": [{"operator": "Exists", "values": ["a"]}]}),
            [
                (f"{ATTRIBUTES}.fieldSelector.requirements[0].key", "Required value: must be specified"),
                (f"{ATTRIBUTES}.fieldSelector.requirements[0].values", VALUES_FORBIDDEN),
            ],
        ),
        (
            ALL,
            selecting(fieldSelector={"requirements": [{"key": "a", "operator": "In"}]}),
            [(f"{ATTRIBUTES}.fieldSelector.requirements[0].values", VALUES_NEEDED)],
        ),
        (
            ALL,
            selecting(labelSelector={"requirements": [{"key": "a", "operator": "In"}]}),
            [(f"{ATTRIBUTES}.labelSelector.requirements[0].values", VALUES_NEEDED)],
        ),
        (
            ALL,
            selecting(labelSelector={"requirements": [{"operator": "Exists", "values": ["a"]}]}),
            [
                (f"{ATTRIBUTES}.labelSelector.requirements[0].values", VALUES_FORBIDDEN),
                (f"{ATTRIBUTES}.labelSelector.requirements[0].key", 'Invalid value: "": name part must be non-empty'),
                (f"{ATTRIBUTES}.labelSelector.requirements[0].key", f'Invalid value: "": {NAME_PART}'),
            ],
        ),
        (
            ALL,
            selecting(labelSelector={"rawSelector": "a=b", "requirements": [{"key": "a b"}]}),
            [
                (
                    f"{ATTRIBUTES}.labelSelector.rawSelector",
                    'Invalid value: "a=b": may not specified at the same time as requirements',
                ),
                (f"{ATTRIBUTES}.labelSelector.requirements[0].key", f'Invalid value: "a b": {NAME_PART}'),
            ],
        ),
    ],
)
def test_an_access_review_that_asks_nothing_sensible(admin, path, spec, causes):
    answer = admin.post(path, {"spec": spec})

    listed = [f"{field}: {message}" for field, message in causes]
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    assert answer.outcome == ("Invalid", f'.authorization.k8s.io "" is invalid: {text}')
    assert (answer.causes, answer.details) == (causes, {"group": "authorization.k8s.io"})


@pytest.mark.parametrize(
    ("path", "text"),
    [(SELF, "must be empty"), (ALL, "must be empty"), (LOCAL, "must be empty except for namespace")],
)
def test_an_access_review_has_no_metadata(admin, path, text):
    spec = {"resourceAttributes": {"namespace": "default"}, **({} if path == SELF else {"user": "a"})}

    answer = admin.post(path, {"metadata": {"labels": {"a": "b"}}, "spec": spec})

    [(field, message)] = answer.causes
    assert (answer.reason, field) == ("Invalid", "metadata")
    assert '"labels":{"a":"b"}' in message
    assert message.endswith(f": {text}")


@pytest.mark.parametrize(
    ("selectors", "problem"),
    [
        ({"fieldSelector": {"rawSelector": "a=b"}}, None),
        ({"fieldSelector": {"rawSelector": "a"}}, "fieldSelector"),
        ({"fieldSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}}, "fieldSelector"),
        ({"labelSelector": {"rawSelector": "a in (b"}}, "labelSelector"),
        ({"labelSelector": {"requirements": [{"key": "a", "operator": "Foo"}]}}, "labelSelector"),
        ({"labelSelector": {"requirements": [{"key": "a", "operator": "Exists"}]}}, None),
    ],
)
def test_a_selector_that_cannot_be_read_is_left_out_of_the_decision(admin, selectors, problem):
    status = admin.made(ALL, {"spec": selecting(**selectors)})["status"]

    expected = {"evaluationError": f"{ATTRIBUTES}.{problem} ignored due to parse error"} if problem else {}
    assert status == {"allowed": False, **expected}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"user": "a", "groups": ["system:masters"], "resourceAttributes": {"verb": "get"}}, {"allowed": True}),
        ({"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}, {"allowed": False}),
        (
            {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "get", "resource": "pods"}},
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler" '
                'to User "system:kube-scheduler"',
            },
        ),
        (
            {"user": "system:kube-scheduler", "resourceAttributes": {"verb": "*", "resource": "pods"}},
            {"allowed": False},
        ),
        (
            {
                "user": "a",
                "groups": ["system:authenticated"],
                "nonResourceAttributes": {"path": "/api/v1", "verb": "get"},
            },
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group '
                '"system:authenticated"',
            },
        ),
        (
            {"user": "system:serviceaccount:default:a", "nonResourceAttributes": {"path": "/api", "verb": "get"}},
            {"allowed": False},
        ),
    ],
)
def test_an_access_review_decides_with_a_reason(admin, spec, status):
    made = admin.made(ALL, {"metadata": {"namespace": "is ignored"}, "spec": spec})

    assert made["status"] == status
    assert made["spec"] == spec


def test_reviews_are_for_creating_only(admin):
    assert admin.get(ALL).outcome == (
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )
    assert admin.ask("PUT", f"{ALL}/x", {}).outcome == (
        "NotFound",
        "the server could not find the requested resource",
    )


def test_a_local_review_of_another_namespace(admin):
    body = {"metadata": {"namespace": "other"}, "spec": {"user": "a", "resourceAttributes": {"namespace": "other"}}}

    text = "the namespace of the provided object does not match the namespace sent on the request"
    assert admin.post(LOCAL, body).outcome == ("BadRequest", text)


def test_rules_reviews_need_a_namespace(alice):
    assert alice.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {}}).outcome == (
        "BadRequest",
        "no namespace on request",
    )


async def test_a_rules_review_lists_all_that_is_held(alice, grant, namespace):
    named = rule(["get", "list"], resourceNames=["b", "a"])
    await grant(named, rule(["get"], ["apps"], ["deployments", "deployments/scale"]))

    made = alice.made(
        f"{AUTHORIZATION}/selfsubjectrulesreviews", {"metadata": {"name": "x"}, "spec": {"namespace": namespace}}
    )

    status = made["status"]
    assert (made["metadata"], made["spec"], status["incomplete"]) == ({}, {}, False)
    assert named in status["resourceRules"]
    assert rule(["get"], ["apps"], ["deployments", "deployments/scale"]) in status["resourceRules"]
    assert rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]) in status["resourceRules"]
    public = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]}
    assert public in status["nonResourceRules"]
    assert len(status["nonResourceRules"]) == 3


async def test_roles_that_do_not_exist_are_named_in_refusals(admin, alice, user, cleanup, namespace):
    name = f"ghost-{user}"
    subject = {"kind": "User", "name": user}
    admin.made(f"{RBAC}/clusterrolebindings", bound(name, {"kind": "ClusterRole", "name": name}, subject))
    cleanup.append(f"{RBAC}/clusterrolebindings/{name}")
    admin.made(f"{RBAC}/namespaces/{namespace}/rolebindings", bound(name, {"kind": "Role", "name": name}, subject))
    both = f'RBAC: [clusterrole.{GROUP} "{name}" not found, role.{GROUP} "{name}" not found]'

    def refused() -> bool:
        answer = alice.get(f"/api/v1/namespaces/{namespace}/pods")
        said = f'pods is forbidden: User "{user}" cannot list resource "pods" in API group "" in the namespace "{namespace}"'
        return answer.message == f"{said}: {both}"

    await eventually(refused, timeout=LONGEST_WAIT)
    spec = {"user": user, "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}}
    assert admin.made(ALL, {"spec": spec})["status"] == {"allowed": False, "reason": both}
    status = alice.made(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": namespace}})["status"]
    assert status["evaluationError"] == both.removeprefix("RBAC: ")
