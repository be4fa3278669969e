"""Asking as somebody else; the same words on both servers."""

from __future__ import annotations

import pytest
from identity_callers import rule, whoami


@pytest.mark.parametrize(
    ("name", "groups", "more", "expected"),
    [
        ("zoe", [], {}, {"groups": ["system:authenticated"]}),
        ("zoe", ["zoo"], {}, {"groups": ["zoo", "system:authenticated"]}),
        ("zoe", ["system:authenticated"], {}, {"groups": ["system:authenticated"]}),
        (
            "zoe",
            ["zoo"],
            {"Uid": "u1", "Extra_Scopes": "a", "Extra_acme.com%2fproject": "p"},
            {
                "groups": ["zoo", "system:authenticated"],
                "uid": "u1",
                "extra": {"acme.com/project": ["p"], "scopes": ["a"]},
            },
        ),
        (
            "system:serviceaccount:ns:sa",
            [],
            {},
            {"groups": ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"]},
        ),
        ("system:serviceaccount:ns:sa", ["x"], {}, {"groups": ["x", "system:authenticated"]}),
        (
            "system:anonymous",
            ["system:authenticated"],
            {},
            {"groups": ["system:authenticated", "system:unauthenticated"]},
        ),
    ],
)
def test_an_administrator_is_whom_it_says(admin, name, groups, more, expected):
    assert whoami(admin.as_other(name, groups, **more)) == {"username": name, **expected}


@pytest.mark.parametrize(
    ("groups", "more", "shown"),
    [
        (["x", "y"], {}, 'UID:"", Groups:[]string{"x", "y"}, Extra:map[string][]string(nil)'),
        ([], {"Uid": "u"}, 'UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        ([], {"Extra_Foo": "u"}, 'UID:"", Groups:[]string(nil), Extra:map[string][]string{"foo":[]string{"u"}}'),
    ],
)
def test_impersonation_needs_a_name(admin, groups, more, shown):
    answer = admin.as_other("", groups, **more).get("/version")

    said = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    assert answer.outcome == ("BadRequest", said)


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        (
            "/api/v1/namespaces",
            "zoe",
            (
                'namespaces is forbidden: User "{user}" cannot impersonate-on:user-info:list resource "namespaces" in API group "" '
                "at the cluster scope"
            ),
        ),
        (
            "/api/v1/namespaces",
            "system:serviceaccount:ns:sa",
            (
                'namespaces is forbidden: User "{user}" cannot impersonate-on:serviceaccount:list resource "namespaces" in API '
                'group "" at the cluster scope'
            ),
        ),
        (
            "/api/v1/namespaces",
            "system:node:n1",
            (
                'namespaces is forbidden: User "{user}" cannot impersonate-on:arbitrary-node:list resource "namespaces" in API '
                'group "" at the cluster scope'
            ),
        ),
        ("/metrics", "zoe", 'forbidden: User "{user}" cannot impersonate-on:user-info:get path "/metrics"'),
        (
            "/api/v1/namespaces/default/pods/x/log",
            "zoe",
            (
                'pods "x" is forbidden: User "{user}" cannot impersonate-on:user-info:get resource "pods/log" in API group "" in '
                'the namespace "default"'
            ),
        ),
    ],
)
def test_impersonation_without_permission(alice, user, path, name, said):
    assert alice.as_other(name).get(path).outcome == ("Forbidden", said.format(user=user))


def test_impersonating_a_service_account_with_groups_asks_the_old_verb(alice, user):
    answer = alice.as_other("system:serviceaccount:ns:sa", ["x"]).get("/api")

    said = f'serviceaccounts "sa" is forbidden: User "{user}" cannot impersonate resource "serviceaccounts" in API group "" '
    assert answer.outcome == ("Forbidden", f'{said}in the namespace "ns"')


async def test_the_verb_impersonate_is_asked_for_every_part(alice, user, grant):
    await grant(rule(["impersonate"], resources=["users"], resourceNames=["zoe"]))
    other = "/api/v1/pods"

    plain = alice.as_other("zoe").get(other)
    grouped = alice.as_other("zoe", ["zoo"]).get(other)
    numbered = alice.as_other("zoe", Uid="u").get(other)
    scoped = alice.as_other("zoe", Extra_Scopes="x").get(other)
    mia = alice.as_other("mia").get(other)

    assert (
        plain.message
        == 'pods is forbidden: User "zoe" cannot list resource "pods" in API group "" at the cluster scope'
    )
    assert [answer.message for answer in (grouped, numbered, scoped, mia)] == [
        f'groups "zoo" is forbidden: User "{user}" cannot impersonate resource "groups" in API group "" at the cluster scope',
        (
            f'uids.authentication.k8s.io "u" is forbidden: User "{user}" cannot impersonate resource "uids" in API group '
            '"authentication.k8s.io" at the cluster scope'
        ),
        (
            f'userextras.authentication.k8s.io "x" is forbidden: User "{user}" cannot impersonate resource "userextras/scopes" in '
            'API group "authentication.k8s.io" at the cluster scope'
        ),
        f'users "mia" is forbidden: User "{user}" cannot impersonate resource "users" in API group "" at the cluster scope',
    ]


async def test_the_narrow_verbs_permit_one_user_one_thing(alice, user, grant):
    await grant(
        rule(["impersonate:user-info"], ["authentication.k8s.io"], ["users"], resourceNames=["zoe"]),
        rule(["impersonate-on:user-info:list"], resources=["pods"]),
    )

    allowed = alice.as_other("zoe").get("/api/v1/pods")
    grouped = alice.as_other("zoe", ["zoo"]).get("/api/v1/pods")

    assert (
        allowed.message
        == 'pods is forbidden: User "zoe" cannot list resource "pods" in API group "" at the cluster scope'
    )
    assert grouped.message == (
        f'groups.authentication.k8s.io "zoo" is forbidden: User "{user}" cannot impersonate:user-info resource "groups" in API '
        'group "authentication.k8s.io" at the cluster scope'
    )


async def test_nobody_becomes_a_master_by_the_narrow_verbs(alice, user, grant):
    await grant(
        rule(["*"], ["authentication.k8s.io"], ["*"]), rule(["impersonate-on:user-info:list"], resources=["pods"])
    )

    answer = alice.as_other("zoe", ["system:masters"]).get("/api/v1/pods")

    assert answer.message == (
        f'groups.authentication.k8s.io "system:masters" is forbidden: User "{user}" cannot impersonate:user-info resource '
        '"groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not '
        "allowed"
    )


async def test_an_impersonated_node_is_in_the_group_of_nodes(alice, grant):
    await grant(
        rule(["impersonate:arbitrary-node"], ["authentication.k8s.io"], ["nodes"]),
        rule(["impersonate-on:arbitrary-node:create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
    )

    assert whoami(alice.as_other("system:node:n1")) == {
        "username": "system:node:n1",
        "groups": ["system:nodes", "system:authenticated"],
    }
