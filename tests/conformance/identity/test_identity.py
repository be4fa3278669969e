"""Who calls, and what those are told who may not; the same words on both servers."""

from __future__ import annotations

import pytest
from identity_callers import AUTHENTICATION, AUTHORIZATION, RBAC, Caller, bound, token_of, whoami
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually

# Refusals


REFUSALS = [
    ("GET", "/api/v1/namespaces", "", "list", "namespaces", "", "at the cluster scope"),
    ("GET", "/api/v1/namespaces/default", "default", "get", "namespaces", "", 'in the namespace "default"'),
    ("GET", "/api/v1/namespaces/default/pods/x", "x", "get", "pods", "", 'in the namespace "default"'),
    ("GET", "/api/v1/namespaces/default/pods/x/log", "x", "get", "pods/log", "", 'in the namespace "default"'),
    ("GET", "/api/v1/namespaces/default/pods?watch=1", "", "watch", "pods", "", 'in the namespace "default"'),
    ("GET", "/api/v1/watch/namespaces/default/pods", "", "watch", "pods", "", 'in the namespace "default"'),
    ("GET", "/api/v1/namespaces/default/pods/x?watch=1", "x", "get", "pods", "", 'in the namespace "default"'),
    ("GET", "/api/v1/pods", "", "list", "pods", "", "at the cluster scope"),
    ("POST", "/api/v1/namespaces/default/pods", "", "create", "pods", "", 'in the namespace "default"'),
    ("PUT", "/api/v1/namespaces/default/pods/x", "x", "update", "pods", "", 'in the namespace "default"'),
    ("PATCH", "/api/v1/namespaces/default/pods/x", "x", "patch", "pods", "", 'in the namespace "default"'),
    ("DELETE", "/api/v1/namespaces/default/pods/x", "x", "delete", "pods", "", 'in the namespace "default"'),
    ("DELETE", "/api/v1/namespaces/default/pods", "", "deletecollection", "pods", "", 'in the namespace "default"'),
    (
        "PUT",
        "/apis/apps/v1/namespaces/default/deployments/x/scale",
        "x",
        "update",
        "deployments/scale",
        "apps",
        'in the namespace "default"',
    ),
    ("GET", "/apis/nope.io/v1/things", "", "list", "things", "nope.io", "at the cluster scope"),
    ("GET", "/apis/nope.io/v1/namespaces/a/things/b", "b", "get", "things", "nope.io", 'in the namespace "a"'),
    (
        "GET",
        "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx",
        "x",
        "list",
        "pods",
        "",
        'in the namespace "default"',
    ),
    (
        "GET",
        "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx&watch=1",
        "x",
        "watch",
        "pods",
        "",
        'in the namespace "default"',
    ),
    (
        "GET",
        "/api/v1/namespaces/default/pods?fieldSelector=metadata.name!%3Dx",
        "",
        "list",
        "pods",
        "",
        'in the namespace "default"',
    ),
    (
        "DELETE",
        "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dx",
        "",
        "deletecollection",
        "pods",
        "",
        'in the namespace "default"',
    ),
    ("POST", "/api/v1/namespaces/default/pods/x/exec", "x", "create", "pods/exec", "", 'in the namespace "default"'),
    ("GET", "/api/v1/namespaces/default/pods/x/proxy/a/b", "x", "get", "pods/proxy", "", 'in the namespace "default"'),
    ("GET", "/api/v1/nodes/x/proxy/y", "x", "get", "nodes/proxy", "", "at the cluster scope"),
    ("PUT", "/api/v1/namespaces/a/status", "a", "update", "namespaces/status", "", 'in the namespace "a"'),
    ("PUT", "/api/v1/namespaces/a/finalize", "a", "update", "namespaces/finalize", "", 'in the namespace "a"'),
]


def test_a_refused_request_says_who_cannot_do_what_and_where(alice, user):
    for method, path, name, verb, resource, group, where in REFUSALS:
        answer = alice.ask(method, path, {} if method in {"POST", "PUT", "PATCH"} else None)

        plural = resource.partition("/")[0]
        about = f"{plural}.{group}" if group else plural
        about += f' "{name}"' if name else ""
        said = f'{about} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
        expected = {"name": name, "group": group, "kind": plural}
        assert answer.outcome == ("Forbidden", said), path
        assert answer.details == {key: value for key, value in expected.items() if value}, path


@pytest.mark.parametrize(
    ("method", "path", "shown"),
    [
        ("GET", "/metrics", "/metrics"),
        ("POST", "/metrics", "/metrics"),
        ("GET", "/nope", "/nope"),
        ("GET", "/logs", "/logs"),
        ("GET", "/healthz/ping", "/healthz/ping"),
        ("GET", "/debug/x<y", "/debug/x&lt;y"),
        ("GET", "/openid/v1/jwks", "/openid/v1/jwks"),
    ],
)
def test_a_refused_path_is_named(alice, user, method, path, shown):
    answer = alice.ask(method, path, {} if method == "POST" else None)

    assert answer.outcome == ("Forbidden", f'forbidden: User "{user}" cannot {method.lower()} path "{shown}"')
    assert answer.details == {}


def test_a_user_name_is_quoted(admin):
    answer = admin.as_other('al"ice').get("/api/v1/pods")

    assert (
        answer.message
        == 'pods is forbidden: User "al\\"ice" cannot list resource "pods" in API group "" at the cluster scope'
    )


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_some_paths_are_open_to_all(server, path):
    assert Caller(server.kubeconfig, "").get(path).reason == ""


@pytest.mark.parametrize("path", ["/api", "/apis", "/metrics", "/healthz/ping", "/.well-known/openid-configuration"])
def test_an_anonymous_caller_is_named_so(server, path):
    answer = Caller(server.kubeconfig, "").get(path)

    assert answer.outcome == ("Forbidden", f'forbidden: User "system:anonymous" cannot get path "{path}"')


@pytest.mark.parametrize("path", ["/version", "/api/v1/namespaces", "/nope"])
def test_a_bad_token_is_refused_everywhere(server, path):
    answer = Caller(server.kubeconfig, "nonsense").get(path)

    assert answer.outcome == ("Unauthorized", "Unauthorized")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize("header", ["Basic YWxpY2U6eA==", "Bearer", "Bearer ", "Bearer  x", "Token x"])
def test_other_credentials_are_no_credentials(server, header):
    caller = Caller(server.kubeconfig, "", [("Authorization", header)])

    assert caller.get("/api").message == 'forbidden: User "system:anonymous" cannot get path "/api"'


def test_a_certificate_goes_before_a_token(server, user):
    caller = Caller(server.add_user(user, ["dev"]), headers=[("Authorization", "Bearer nonsense")])

    assert whoami(caller)["username"] == user


# Who am I


def test_a_certificate_says_name_and_groups(alice, user):
    who = whoami(alice)

    [credential] = who.pop("extra")["authentication.kubernetes.io/credential-id"]
    assert credential.startswith("X509SHA256=")
    assert len(credential) == len("X509SHA256=") + 64
    assert who == {"username": user, "groups": ["dev", "ops", "system:authenticated"]}


def test_a_self_subject_review_answers_with_who_and_when_only(admin):
    sent = {"metadata": {"name": "x", "labels": {"a": "b"}}, "status": {"userInfo": {"username": "liar"}}}

    made = admin.made(f"{AUTHENTICATION}/selfsubjectreviews", sent)

    assert set(made) == {"kind", "apiVersion", "metadata", "status"}
    assert set(made["metadata"]) == {"creationTimestamp"}
    assert "system:masters" in made["status"]["userInfo"]["groups"]


# A metrics endpoint


async def test_a_metrics_endpoint_protects_itself(server, admin, namespace, user, grant, cleanup):
    """As operators do it: the endpoint asks the server whose token it was shown, and whether that one may read /metrics."""
    place = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    for name in ("operator", "scraper"):
        admin.made(place, {"metadata": {"name": name}})
    delegator = {"kind": "ClusterRole", "name": "system:auth-delegator"}
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": namespace}
    admin.made(f"{RBAC}/clusterrolebindings", bound(user, delegator, subject))
    cleanup.append(f"{RBAC}/clusterrolebindings/{user}")
    operator = Caller(server.kubeconfig, token_of(admin, f"{place}/operator/token"))
    shown = token_of(admin, f"{place}/scraper/token")

    def endpoint(token: str) -> int:
        found = operator.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
        assert not found.reason, found.message
        if not found.status.get("authenticated"):
            return 401
        who = found.status["user"]
        spec = {
            "user": who["username"],
            "groups": who["groups"],
            "uid": who["uid"],
            "extra": who.get("extra"),
            "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
        }
        answer = operator.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec})
        return 200 if answer.status["allowed"] else 403

    await eventually(lambda: endpoint("nonsense") == 401, timeout=LONGEST_WAIT)
    assert endpoint(shown) == 403
    scraper = {"kind": "ServiceAccount", "name": "scraper", "namespace": namespace}
    reads = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    await grant(reads, subject=scraper, who=f"system:serviceaccount:{namespace}:scraper")
    assert endpoint(shown) == 200
