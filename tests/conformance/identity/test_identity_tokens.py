"""Service account tokens and TokenReview; the same words on both servers."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import yaml
from identity_callers import AUTHENTICATION, Caller, has_controller_manager, review, token_of, whoami
from servers import LONGEST_WAIT

from ctrlruntime.testing import eventually


@pytest.fixture
def issuer(admin: Caller) -> str:
    return admin.get("/.well-known/openid-configuration").body["issuer"]


@pytest.fixture
def bot(admin: Caller, namespace: str) -> str:
    """A ServiceAccount; the value is the path of its tokens."""
    admin.made(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "bot"}})
    return f"/api/v1/namespaces/{namespace}/serviceaccounts/bot/token"


def claims_of(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    head, body, _ = token.split(".")
    return json.loads(base64.urlsafe_b64decode(head + "==")), json.loads(base64.urlsafe_b64decode(body + "=="))


def test_a_token_request_is_answered_in_full(admin, bot, namespace, issuer):
    account = admin.get(bot.removesuffix("/token")).body
    made = admin.made(bot, {"metadata": {"labels": {"a": "b"}}, "status": {"token": "mine"}})

    metadata = {
        key: value for key, value in made["metadata"].items() if key not in {"managedFields", "creationTimestamp"}
    }
    assert metadata == {
        "name": "bot",
        "namespace": namespace,
        "uid": account["metadata"]["uid"],
        "labels": {"a": "b"},
    }
    assert made["spec"] == {"audiences": [issuer], "expirationSeconds": 3600, "boundObjectRef": None}
    assert set(made["status"]) == {"token", "expirationTimestamp"}
    head, claims = claims_of(made["status"]["token"])
    assert (head["alg"], len(head["kid"]), set(head)) == ("ES256", 43, {"alg", "kid"})
    assert len(claims.pop("jti")) == 36
    issued = claims["iat"]
    assert claims == {
        "aud": [issuer],
        "exp": issued + 3600,
        "iat": issued,
        "iss": issuer,
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": {"name": "bot", "uid": account["metadata"]["uid"]},
        },
        "nbf": issued,
        "sub": f"system:serviceaccount:{namespace}:bot",
    }


TEN_MINUTES = "may not specify a duration less than 10 minutes"
TOO_LONG = "may not specify a duration larger than 2^32 seconds"
UNBOUND = "cannot bind token to object of type"


def duration(seconds: int, text: str) -> tuple[str, str]:
    said = f"spec.expirationSeconds: Invalid value: {seconds}: {text}"
    return "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: {said}'


def to(kind: str, name: str = "nope", version: str = "v1", **more: str) -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": kind, "apiVersion": version, "name": name, **more}}}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"spec": {"expirationSeconds": 600}}, ("", "")),
        ({"spec": {"expirationSeconds": 2**32}}, ("", "")),
        ({"spec": {"expirationSeconds": 599}}, duration(599, TEN_MINUTES)),
        ({"spec": {"expirationSeconds": 0}}, duration(0, TEN_MINUTES)),
        ({"spec": {"expirationSeconds": -1}}, duration(-1, TEN_MINUTES)),
        ({"spec": {"expirationSeconds": 2**32 + 1}}, duration(2**32 + 1, TOO_LONG)),
        (
            {"metadata": {"name": "other"}},
            (
                "Invalid",
                (
                    'TokenRequest.authentication.k8s.io "bot" is invalid: metadata.name: Invalid value: "other": must match the '
                    "service account name if specified"
                ),
            ),
        ),
        (
            {"metadata": {"namespace": "other"}},
            ("BadRequest", "the namespace of the provided object does not match the namespace sent on the request"),
        ),
        (to("Pod"), ("NotFound", 'pods "nope" not found')),
        (to("Secret"), ("NotFound", 'secrets "nope" not found')),
        (to("Node"), ("NotFound", 'nodes "nope" not found')),
        (to("Pod", ""), ("BadRequest", "Name parameter required.")),
        (to("ConfigMap"), ("BadRequest", f"{UNBOUND} /v1, Kind=ConfigMap")),
        ({"spec": {"boundObjectRef": {}}}, ("BadRequest", f"{UNBOUND} /, Kind=")),
        (
            {"spec": {"expirationSeconds": "x"}},
            (
                "BadRequest",
                (
                    'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string into Go '
                    "struct field TokenRequestSpec.spec.expirationSeconds of type int64"
                ),
            ),
        ),
        (
            {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1"},
            (
                "BadRequest",
                (
                    'TokenReview in version "v1" cannot be handled as a TokenRequest: converting (v1.TokenReview) to '
                    "(authentication.TokenRequest): unknown conversion"
                ),
            ),
        ),
    ],
)
def test_token_requests_that_are_refused(admin, bot, body, expected):
    assert admin.post(bot, body).outcome == expected


def test_a_token_of_nobody(admin, namespace):
    there = f"/api/v1/namespaces/{namespace}/serviceaccounts/nope/token"

    assert admin.post(there, {}).outcome == ("NotFound", 'serviceaccounts "nope" not found')
    nowhere = "/api/v1/namespaces/no-such-place/serviceaccounts/nope/token"
    assert admin.post(nowhere, {}).outcome == ("NotFound", 'namespaces "no-such-place" not found')


def test_a_service_account_token_authenticates(server, admin, bot, namespace):
    token = token_of(admin, bot)

    who = whoami(Caller(server.kubeconfig, token))

    assert who == {
        "username": f"system:serviceaccount:{namespace}:bot",
        "uid": claims_of(token)[1]["kubernetes.io"]["serviceaccount"]["uid"],
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"JTI={claims_of(token)[1]['jti']}"]},
    }


def test_a_token_is_for_its_audiences(server, admin, bot, issuer):
    own, others, both = (
        token_of(admin, bot),
        token_of(admin, bot, audiences=["a", "b"]),
        token_of(admin, bot, audiences=["a", issuer]),
    )

    def seen(token: str, *audiences: str) -> tuple[bool, Any]:
        status = review(admin, token, *audiences)
        return status.get("authenticated", False), status.get("audiences", status.get("error"))

    def refused(has: str, asked: str) -> tuple[bool, str]:
        return False, f"[invalid bearer token, token audiences [{has}] is invalid for the target audiences [{asked}]]"

    assert seen(own) == (True, [issuer])
    assert seen(own, issuer, "b") == (True, [issuer])
    assert seen(own, "a", "b") == refused(f'"{issuer}"', '"a" "b"')
    assert seen(others) == refused('"a" "b"', f'"{issuer}"')
    assert seen(others, "a", "b", "c") == (True, ["a", "b"])
    assert seen(others, "c") == refused('"a" "b"', '"c"')
    assert seen(both, "a", "c") == (True, ["a"])
    assert seen(both) == (True, [issuer])
    assert Caller(server.kubeconfig, others).get("/version").outcome == ("Unauthorized", "Unauthorized")
    assert Caller(server.kubeconfig, both).get("/version").reason == ""


def test_a_review_of_a_static_token(server, admin, issuer):
    token = yaml.safe_load(server.kubeconfig)["users"][0]["user"]["token"]

    plain, asked, other = review(admin, token), review(admin, token, issuer, "b"), review(admin, token, "b")

    assert (plain["authenticated"], plain["audiences"], asked["audiences"]) == (True, [issuer], [issuer])
    assert plain["user"]["groups"] == ["system:masters", "system:authenticated"]
    assert other == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize("token", ["x", "x.y.z", "a.b", "é"])
def test_a_review_of_what_is_no_token(admin, token):
    assert review(admin, token) == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize("body", [{}, {"spec": {}}, {"spec": {"token": ""}}])
def test_a_review_without_a_token(admin, body):
    expected = ("BadRequest", "token is required for TokenReview in authentication")
    assert admin.post(f"{AUTHENTICATION}/tokenreviews", body).outcome == expected


def test_a_token_review_keeps_what_it_was_called(admin):
    sent = {"metadata": {"name": "a", "namespace": "q", "labels": {"a": "b"}, "uid": "u"}, "spec": {"token": "x"}}

    made = admin.made(f"{AUTHENTICATION}/tokenreviews", sent)

    assert {key: value for key, value in made["metadata"].items() if key != "managedFields"} == {
        "name": "a",
        "labels": {"a": "b"},
    }


def test_a_token_that_was_tampered_with(admin, bot):
    head, body, signature = token_of(admin, bot).split(".")
    part = lambda tree: base64.urlsafe_b64encode(json.dumps(tree).encode()).decode().rstrip("=")  # noqa: E731
    kid = claims_of(f"{head}.{body}.")[0]["kid"]
    wrong = {"user": {}, "error": "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]"}

    assert review(admin, f"{head}.{body}.AAAA") == wrong
    assert review(admin, f"{head}.{body}.{signature[:-6]}AAAAAA") == wrong
    assert review(admin, f"{part({'alg': 'RS256', 'kid': kid})}.{body}.{signature}") == wrong
    assert review(admin, f"{part({'alg': 'none', 'kid': kid})}.{body}.") == wrong
    assert review(admin, f"{part({'alg': 'ES256', 'kid': 'other'})}.{body}.{signature}") == {
        "user": {},
        "error": "[invalid bearer token, invalid signature, no keys found]",
    }
    assert review(admin, f"{head}.{body}.!!!") == {"user": {}, "error": "invalid bearer token"}
    assert review(admin, f"{head}.{body}") == {"user": {}, "error": "invalid bearer token"}


async def test_a_token_ends_with_its_account(admin, bot, namespace):
    # Not reviewed before: the real server keeps a good answer for ten seconds.
    token = token_of(admin, bot)
    uid = claims_of(token)[1]["kubernetes.io"]["serviceaccount"]["uid"]
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"

    admin.ask("DELETE", f"{path}/bot")
    gone = {"user": {}, "error": '[invalid bearer token, serviceaccounts "bot" not found]'}
    await eventually(
        lambda: admin.get(f"{path}/bot").reason == "NotFound" and review(admin, token) == gone, timeout=LONGEST_WAIT
    )
    again = admin.made(path, {"metadata": {"name": "bot"}})["metadata"]["uid"]

    text = f"service account UID ({again}) does not match claim ({uid})"
    other = {"user": {}, "error": f"[invalid bearer token, {text}]"}
    await eventually(lambda: review(admin, token) == other, timeout=LONGEST_WAIT)


def pod(name: str, account: str = "bot", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name}, "spec": {"serviceAccountName": account, "containers": containers, **spec}}


async def test_a_token_lives_with_what_it_is_bound_to(admin, bot, namespace, user, cleanup):
    place = f"/api/v1/namespaces/{namespace}"
    uids = {
        "secret": admin.made(f"{place}/secrets", {"metadata": {"name": "s"}})["metadata"]["uid"],
        "node": admin.made("/api/v1/nodes", {"metadata": {"name": user}})["metadata"]["uid"],
        "pod": admin.made(f"{place}/pods", pod("p", nodeName=user))["metadata"]["uid"],
    }
    cleanup.append(f"/api/v1/nodes/{user}")
    names = {"secret": "s", "node": user, "pod": "p"}
    extra = "authentication.kubernetes.io/"

    for kind, name in names.items():
        token = admin.made(bot, to(kind.capitalize(), name))["status"]["token"]
        private = claims_of(token)[1]["kubernetes.io"]
        bound_to = {"node", "pod"} if kind == "pod" else {kind}
        assert {one: private[one] for one in bound_to} == {
            one: {"name": names[one], "uid": uids[one]} for one in bound_to
        }
        assert set(private) == {"namespace", "serviceaccount", *bound_to}
        shown = set(review(admin, token)["user"]["extra"]) - {f"{extra}credential-id"}
        assert shown == {f"{extra}{one}-{part}" for one in bound_to - {"secret"} for part in ("name", "uid")}

        wrong = admin.post(bot, to(kind.capitalize(), name, uid="zz"))
        assert wrong.outcome == (
            "Conflict",
            (
                f'Operation cannot be fulfilled on {kind.capitalize()} "{name}": the UID in the bound object reference (zz) does '
                "not match the UID in record. The object might have been deleted and then recreated"
            ),
        )

    fresh = {kind: admin.made(bot, to(kind.capitalize(), name))["status"]["token"] for kind, name in names.items()}
    admin.ask("DELETE", f"{place}/pods/p?gracePeriodSeconds=0")
    admin.ask("DELETE", f"{place}/secrets/s")
    admin.ask("DELETE", f"/api/v1/nodes/{user}")
    ended = {"user": {}, "error": "[invalid bearer token, service account token has been invalidated]"}
    for token in fresh.values():
        await eventually(lambda token=token: review(admin, token) == ended, timeout=LONGEST_WAIT)


def test_a_token_is_not_bound_to_the_pod_of_another_account(admin, bot, namespace):
    admin.made(f"/api/v1/namespaces/{namespace}/pods", pod("p", "default"))

    assert admin.post(bot, to("Pod", "p")).outcome == (
        "BadRequest",
        'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    )


async def test_a_secret_is_filled_with_a_token(server, admin, bot, namespace):
    if server.backend == "real" and not has_controller_manager(admin):
        pytest.skip("token secrets are kube-controller-manager's")
    place = f"/api/v1/namespaces/{namespace}"
    named = {"kubernetes.io/service-account.name": "bot"}
    asking = {"metadata": {"name": "t", "annotations": named}, "type": "kubernetes.io/service-account-token"}
    admin.made(f"{place}/secrets", asking)

    secret = await eventually(
        lambda: (body := admin.get(f"{place}/secrets/t").body).get("data") and body, timeout=LONGEST_WAIT
    )

    uid = admin.get(f"{place}/serviceaccounts/bot").body["metadata"]["uid"]
    assert set(secret["data"]) == {"ca.crt", "namespace", "token"}
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == uid
    token = base64.b64decode(secret["data"]["token"]).decode()
    prefix = "kubernetes.io/serviceaccount/"
    assert claims_of(token)[1] == {
        "iss": "kubernetes/serviceaccount",
        f"{prefix}namespace": namespace,
        f"{prefix}secret.name": "t",
        f"{prefix}service-account.name": "bot",
        f"{prefix}service-account.uid": uid,
        "sub": f"system:serviceaccount:{namespace}:bot",
    }
    assert review(admin, token)["user"] == {
        "username": f"system:serviceaccount:{namespace}:bot",
        "uid": uid,
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
    }
    admin.ask("DELETE", f"{place}/serviceaccounts/bot")
    await eventually(lambda: admin.get(f"{place}/secrets/t").reason == "NotFound", timeout=LONGEST_WAIT)


async def test_a_secret_that_asks_for_the_token_of_nobody_goes(server, admin, namespace):
    if server.backend == "real" and not has_controller_manager(admin):
        pytest.skip("token secrets are kube-controller-manager's")
    place = f"/api/v1/namespaces/{namespace}/secrets"
    named = {"kubernetes.io/service-account.name": "nobody"}
    admin.made(place, {"metadata": {"name": "t", "annotations": named}, "type": "kubernetes.io/service-account-token"})

    await eventually(lambda: admin.get(f"{place}/t").reason == "NotFound", timeout=LONGEST_WAIT)


def test_relying_parties_find_the_keys(server, admin, bot, issuer):
    keys = admin.ask("GET", "/openid/v1/jwks")
    wide = Caller(server.kubeconfig, headers=[("Accept", "*/*")]).get("/openid/v1/jwks").body
    configuration = admin.get("/.well-known/openid-configuration").body

    assert keys.outcome == (
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/jwk-set+json",
    )
    [key] = wide["keys"]
    assert set(key) == {"use", "kty", "kid", "crv", "alg", "x", "y"}
    assert key["kid"] == claims_of(token_of(admin, bot))[0]["kid"]
    assert configuration.pop("jwks_uri").endswith("/openid/v1/jwks")
    assert configuration == {
        "issuer": issuer,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert admin.post("/openid/v1/jwks", {}).reason == "MethodNotAllowed"
