from __future__ import annotations

import base64
import hashlib
import json
import ssl

import pytest

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.fixture
def ann(api):
    api.call(lambda: api.server.add_token("ann-token", "ann", ("dev",)))
    client = api.as_user("ann-token")
    yield client
    client.close()


def test_a_bad_token_is_401_everywhere(api):
    bad = api.as_user("nonsense")

    for path in ("/api/v1/namespaces", "/version"):
        answer = bad.get(path)
        assert (answer.code, answer.reason, answer.message) == (401, "Unauthorized", "Unauthorized")
    bad.close()


def test_a_token_can_be_taken_back(api):
    api.call(lambda: api.server.add_token("short", "bob", ("system:masters",)))
    bob = api.as_user("short")
    assert bob.get("/api/v1/namespaces").code == 200

    api.call(lambda: api.server.remove_token("short"))

    assert bob.get("/api/v1/namespaces").code == 401
    bob.close()


def test_a_client_certificate_names_user_and_groups(api, thread, make, tmp_path):
    pair = api.server.client_pair("cora", ("ops", "dev"))
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    context.load_cert_chain(tmp_path / "pair.pem")
    cora = make.client(thread, token="", context=context)

    who = cora.post(f"{AUTHENTICATION}/selfsubjectreviews", {}).body["status"]["userInfo"]

    credential = f"X509SHA256={hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.certificate.decode())).hexdigest()}"
    assert who.pop("extra") == {"authentication.kubernetes.io/credential-id": [credential]}
    assert who == {"username": "cora", "groups": ["ops", "dev", "system:authenticated"]}
    cora.close()


def test_a_role_and_its_binding_allow_at_once(api, ann, ns):
    refused = ann.get(f"/api/v1/{ns}/configmaps")
    api.made(
        f"{RBAC}/{ns}/roles",
        {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]},
    )
    subject = {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    api.made(f"{RBAC}/{ns}/rolebindings", {"metadata": {"name": "rb"}, "subjects": [subject], "roleRef": role})

    assert (refused.code, refused.reason) == (403, "Forbidden")
    name = ns.removeprefix("namespaces/")
    assert refused.message == (
        f'configmaps is forbidden: User "ann" cannot list resource "configmaps" in API group "" in the namespace "{name}"'
    )
    assert ann.get(f"/api/v1/{ns}/configmaps").code == 200
    assert ann.get(f"/api/v1/{ns}/configmaps", watch="1").code == 403
    api.delete(f"{RBAC}/{ns}/rolebindings/rb")
    assert ann.get(f"/api/v1/{ns}/configmaps").code == 403


def test_permission_is_asked_before_the_path_is_looked_up(ann):
    answer = ann.get("/apis/nope.io/v1/things")

    assert answer.code == 403
    assert "at the cluster scope" in answer.message


def test_access_reviews(api, ann):
    asked = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}

    mine = ann.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": asked})
    theirs = api.post(
        f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {**asked, "user": "x", "groups": ["system:masters"]}}
    )
    nobody = api.post(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": asked})
    nothing = api.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {}})

    assert (mine.code, mine.body["status"]["allowed"]) == (201, False)
    assert theirs.body["status"]["allowed"] is True
    assert (nobody.code, nothing.code) == (422, 422)


def test_rules_reviews(api):
    answer = api.post(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})

    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in answer.body["status"]["resourceRules"]


def test_token_reviews(api, ann):
    good = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "ann-token"}}).body["status"]
    bad = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": "x"}}).body["status"]
    empty = api.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {}})

    assert good == {
        "authenticated": True,
        "user": {"username": "ann", "groups": ["dev", "system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc.cluster.local"],
    }
    assert bad == {"user": {}, "error": "invalid bearer token"}
    assert empty.code == 400


def test_a_service_account_token_authenticates(api, ns):
    api.made(f"/api/v1/{ns}/serviceaccounts", {"metadata": {"name": "bot"}})
    made = api.post(f"/api/v1/{ns}/serviceaccounts/bot/token", {"spec": {"expirationSeconds": 600}})
    name = ns.removeprefix("namespaces/")

    bot = api.as_user(made.body["status"]["token"])
    who = bot.post(f"{AUTHENTICATION}/selfsubjectreviews", {}).body["status"]["userInfo"]
    bot.close()

    assert made.code == 201
    assert who["username"] == f"system:serviceaccount:{name}:bot"
    assert f"system:serviceaccounts:{name}" in who["groups"]


def test_impersonation_needs_permission(api, ann):
    as_ann = api.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    impersonated = api.request(
        "POST",
        f"{AUTHENTICATION}/selfsubjectreviews",
        {},
        headers={"Impersonate-User": "zoe", "Impersonate-Group": "zoo"},
    )
    refused = ann.get("/api/v1/namespaces", headers={"Impersonate-User": "zoe"})
    groupless = api.get("/api/v1/namespaces", headers={"Impersonate-Group": "zoo"})

    assert as_ann.body["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert impersonated.body["status"]["userInfo"]["username"] == "zoe"
    assert impersonated.body["status"]["userInfo"]["groups"] == ["zoo", "system:authenticated"]
    assert (refused.code, groupless.code) == (403, 400)


def test_the_kubeconfig_works_with_a_certificate_too(api, tmp_path):
    path = tmp_path / "below" / "config"
    api.server.write_kubeconfig(path, "cora", ("system:masters",))

    config = json.loads(path.read_text())

    assert path.stat().st_mode & 0o777 == 0o600
    assert config["clusters"][0]["cluster"]["server"] == api.server.url
    assert base64.b64decode(config["users"][0]["user"]["client-certificate-data"]).startswith(b"-----BEGIN CERTIFICATE")
    assert json.loads(api.server.kubeconfig())["users"][0]["user"] == {"token": api.server.admin_token}
