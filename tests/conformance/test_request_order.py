"""Which of several errors wins, and small answers that no table holds, on both servers."""

from __future__ import annotations

import http.client
import time
import uuid
from collections.abc import Iterator

import pytest

from ctrlruntime.errors import APIStatusError
from ctrlruntime.testing import Environment

RBAC = "/apis/rbac.authorization.k8s.io/v1"
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
WARNING = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'


def refused(server: Environment, method: str, path: str, body: object = None, user: str = "") -> tuple[int, str]:
    """Code and message of a write that fails."""
    connection = server.connection
    headers = connection.headers
    if user:
        connection.headers = [*headers, ("Impersonate-User", user)]
    try:
        connection.request(method, path, body)
    except APIStatusError as error:
        return error.code, str(error.status.get("message", ""))
    finally:
        connection.headers = headers
    pytest.fail(f"{method} {path} was accepted")


@pytest.fixture
def role(server: Environment) -> Iterator[str]:
    """A cluster role, by whose name a user is called that may write cluster roles and nothing else."""
    name = f"order-{uuid.uuid4().hex[:8]}"
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [group], "resources": ["clusterroles"], "verbs": ["create", "update"]}]
    binding = {
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": name}],
        "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": group},
    }
    server.connection.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    server.connection.request("POST", f"{RBAC}/clusterrolebindings", binding)
    yield name
    for plural in ("clusterrolebindings", "clusterroles"):
        server.connection.request("DELETE", f"{RBAC}/{plural}/{name}")


def grants(name: str, **metadata: str) -> dict:
    return {"metadata": {"name": name, **metadata}, "rules": EVERYTHING}


def test_escalation_is_refused_before_the_version_is_looked_at(server, role) -> None:
    roles = f"{RBAC}/clusterroles"
    limit = time.monotonic() + 10  # kube-apiserver takes a moment to know the binding
    while "attempting to grant" not in refused(server, "POST", roles, grants(f"{role}-new"), user=role)[1]:
        assert time.monotonic() < limit, "the binding did not come into force"
        time.sleep(0.05)

    for method, path, body in (
        ("POST", roles, grants(f"{role}-new", resourceVersion="5")),
        ("PUT", f"{roles}/{role}", grants(role, resourceVersion="5")),
        ("PUT", f"{roles}/{role}", grants(role, resourceVersion="abc")),
    ):
        code, message = refused(server, method, path, body, user=role)
        assert code == 403
        assert "attempting to grant RBAC permissions not currently held" in message


def test_another_uid_is_refused_before_escalation(server, role) -> None:
    for name in (role, f"{role}-absent"):
        code, message = refused(server, "PUT", f"{RBAC}/clusterroles/{name}", grants(name, uid="x"))

        assert code == 409
        assert "Precondition failed: UID in precondition: x, UID in object meta: " in message


def test_a_version_on_create_is_looked_at_last(server, namespace) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    versioned = {"name": "a", "resourceVersion": "5"}
    absent = "/api/v1/namespaces/none-such/configmaps"

    server.connection.request("POST", path, {"metadata": {"name": "present"}})
    codes = [
        refused(server, "POST", path, {"metadata": versioned})[0],
        refused(server, "POST", path, {"metadata": {**versioned, "name": "present"}})[0],
        refused(server, "POST", path, {"metadata": {**versioned, "name": "A_"}})[0],
        refused(server, "POST", absent, {"metadata": versioned})[0],
    ]
    dry = server.connection.request("POST", f"{path}?dryRun=All", {"metadata": versioned})
    made = server.connection.request("POST", path, {"metadata": {**versioned, "resourceVersion": "abc"}})

    assert codes == [500, 500, 422, 404]
    assert dry["metadata"]["resourceVersion"] == "5"
    assert made["metadata"]["resourceVersion"].isdigit()


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("-x", 'unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of'),
        ("a/b/c%3D1", 'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key must consist of'),
        ("a%3D-b", 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must be'),
    ],
)
def test_a_bad_label_selector_is_refused_with_these_words(server, namespace, selector, message) -> None:
    code, found = refused(server, "GET", f"/api/v1/namespaces/{namespace}/configmaps?labelSelector={selector}")

    assert code == 400
    assert found.startswith(message)


@pytest.mark.parametrize("query", ["", "/a", "?watch=1&timeoutSeconds=1"])
def test_reads_of_a_deprecated_kind_warn(server, namespace, query) -> None:
    path = f"/api/v1/namespaces/{namespace}/endpoints"
    server.connection.request("POST", path, {"metadata": {"name": "a"}})

    assert warnings(server, path + query) == [WARNING]


def warnings(server: Environment, path: str) -> list[str]:
    address = server.connection.url.removeprefix("https://")
    connection = http.client.HTTPSConnection(address, context=server.connection.tls, timeout=120)
    try:
        connection.request("GET", path, headers=dict(server.connection.headers))
        answer = connection.getresponse()
        return [value for name, value in answer.getheaders() if name == "Warning"]
    finally:
        connection.close()
