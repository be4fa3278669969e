"""What the server can be given at its start: tokens, authorities of clients, the key and the issuer of service account tokens."""

from __future__ import annotations

import base64
import json
import ssl

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from ctrlruntime.apiserver import Options, ServerThread
from ctrlruntime.apiserver.options import TokenUser
from ctrlruntime.certificates import make_authority
from ctrlruntime.errors import ConfigError

AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
OTHERS = make_authority("somebody else's")


def pem(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


RSA_KEY = pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


@pytest.fixture(scope="module")
def server_options() -> Options:
    return Options(
        controllers=[],
        tokens={"ann-token": TokenUser("ann", "u-1", ("dev",))},
        client_ca=OTHERS.pem,
        service_account_issuer="https://issuer.example.com",
        service_account_signing_key=RSA_KEY,
    )


def whoami(client):
    return client.made(f"{AUTHENTICATION}/selfsubjectreviews", {})["status"]["userInfo"]


def parts(token):
    return [json.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def test_static_tokens_name_user_uid_and_groups(api):
    ann = api.as_user("ann-token")

    assert whoami(ann) == {"username": "ann", "uid": "u-1", "groups": ["dev", "system:authenticated"]}
    ann.close()


def test_certificates_of_a_further_authority_are_believed(api, thread, make, tmp_path):
    pair = OTHERS.client("cora", ["ops"])
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    context.load_cert_chain(tmp_path / "pair.pem")
    cora = make.client(thread, token="", context=context)

    who = whoami(cora)
    cora.close()

    assert (who["username"], who["groups"]) == ("cora", ["ops", "system:authenticated"])


def test_an_rsa_key_signs_by_rs256(api, ns):
    api.made(f"/api/v1/{ns}/serviceaccounts", {"metadata": {"name": "bot"}})

    token = api.made(f"/api/v1/{ns}/serviceaccounts/bot/token", {})["status"]["token"]

    head, claims = parts(token)
    [key] = api.get("/openid/v1/jwks").body["keys"]
    assert (head["alg"], claims["iss"], claims["aud"]) == (
        "RS256",
        "https://issuer.example.com",
        ["https://issuer.example.com"],
    )
    assert {name: key[name] for name in ("use", "kty", "kid", "alg", "e")} == {
        "use": "sig",
        "kty": "RSA",
        "kid": head["kid"],
        "alg": "RS256",
        "e": "AQAB",
    }
    bot = api.as_user(token)
    assert whoami(bot)["username"].endswith(":bot")
    bot.close()


def test_openid_documents_name_the_server(api):
    found = api.get("/.well-known/openid-configuration")

    assert found.headers["Cache-Control"] == "public, max-age=3600"
    assert found.body["jwks_uri"] == f"{api.server.url}/openid/v1/jwks"
    assert found.body["id_token_signing_alg_values_supported"] == ["RS256"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (b"nonsense", "cannot read the key"),
        (pem(ed25519.Ed25519PrivateKey.generate()), "Ed25519PrivateKey"),
        (pem(ec.generate_private_key(ec.SECP256K1())), "secp256k1"),
    ],
)
def test_a_key_that_cannot_sign_fails_at_the_start(key, text):
    with pytest.raises(ConfigError, match=text):
        ServerThread(Options(service_account_signing_key=key))


@pytest.mark.parametrize(("curve", "algorithm"), [(ec.SECP384R1(), "ES384"), (ec.SECP521R1(), "ES512")])
def test_larger_curves_sign_too(curve, algorithm):
    from ctrlruntime.apiserver.authentication import SigningKey

    key = SigningKey(pem(ec.generate_private_key(curve)))
    signed, _, signature = key.sign({"a": 1}).rpartition(".")

    raw = base64.urlsafe_b64decode(signature + "==")
    assert (key.algorithm, key.jwk()["alg"]) == (algorithm, algorithm)
    assert key.has_signed(signed.encode(), raw, algorithm)
    assert not key.has_signed(signed.encode() + b"x", raw, algorithm)
    assert not key.has_signed(signed.encode(), raw, "ES256")


def test_a_kubelets_token_lives_a_year_and_warns_after_an_hour(api, ns):
    name = ns.removeprefix("namespaces/")
    api.made(f"/api/v1/{ns}/serviceaccounts", {"metadata": {"name": "sa"}})
    spec = {"serviceAccountName": "sa", "containers": [{"name": "c", "image": "i"}]}
    api.made(f"/api/v1/{ns}/pods", {"metadata": {"name": "p"}, "spec": spec})
    path = f"/api/v1/namespaces/{name}/serviceaccounts/sa/token"
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}

    made = api.made(path, {"spec": {"expirationSeconds": 3607, "boundObjectRef": bound}})
    other = api.made(path, {"spec": {"expirationSeconds": 3607}})

    _, claims = parts(made["status"]["token"])
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] == claims["iat"] + 3607
    assert made["spec"]["expirationSeconds"] == 3607
    _, plain = parts(other["status"]["token"])
    assert plain["exp"] - plain["iat"] == 3607


def test_where_all_is_allowed_nobody_is_asked(make):
    with ServerThread(Options(controllers=[], authorization="always-allow")) as thread:
        thread.call(lambda: thread.server.add_token("t", "tom"))
        tom = make.client(thread, "t")
        zoe = {"Impersonate-User": "zoe", "Impersonate-Group": "system:masters", "Content-Type": "application/json"}

        who = tom.request("POST", f"{AUTHENTICATION}/selfsubjectreviews", {}, headers=zoe).body["status"]["userInfo"]
        asked = {"user": "a", "resourceAttributes": {"verb": "x"}}
        access = tom.made(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": asked})["status"]
        rules = tom.made(f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "a"}})["status"]
        every = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        role = tom.post(f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": [every]})
        tom.close()

    assert who == {"username": "zoe", "groups": ["system:masters", "system:authenticated"]}
    assert access == {"allowed": True}
    assert (rules["resourceRules"], rules["incomplete"]) == ([every], False)
    assert role.code == 201
