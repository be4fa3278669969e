"""Service account tokens by themselves: what a token says, and when it is believed."""

from __future__ import annotations

import base64

import pytest

from ctrlruntime.apiserver.authentication import AccountTokens, Authenticator, Bound, SigningKey, TokenRefused
from ctrlruntime.apiserver.options import TokenUser
from ctrlruntime.errors import ConfigError, Unauthorized

ISSUER = "https://issuer"
START = 1_000_000.0


class Cluster:
    """Core objects by (resource, namespace, name), and a clock."""

    def __init__(self):
        self.objects = {}
        self.time = START
        self.reads = 0

    def get(self, group, resource, namespace, name):
        self.reads += 1
        return self.objects.get((resource, namespace, name))

    def add(self, resource, name, uid, namespace="ns", **more):
        found = {"metadata": {"name": name, "namespace": namespace, "uid": uid}, **more}
        self.objects[resource, namespace, name] = found
        return found


@pytest.fixture
def world():
    return Cluster()


@pytest.fixture
def tokens(world):
    return AccountTokens(ISSUER, world, now=lambda: world.time, make_id=lambda: "id-1")


@pytest.fixture
def account(world):
    return world.add("serviceaccounts", "bot", "u-1")


def user_of(tokens, token):
    found = tokens.user_of(token, [ISSUER])
    assert found is not None
    return found[0]


def make(tokens, account, *bound, seconds=600):
    return tokens.make(account, [ISSUER], seconds, *bound, issued=int(START))


def refusal(tokens, token):
    with pytest.raises(TokenRefused) as caught:
        tokens.user_of(token, [ISSUER])
    return str(caught.value)


def test_a_token_stands_for_its_account(tokens, account):
    user = user_of(tokens, make(tokens, account))

    assert (user.name, user.uid) == ("system:serviceaccount:ns:bot", "u-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert user.extra == {"authentication.kubernetes.io/credential-id": ("JTI=id-1",)}


@pytest.mark.parametrize(
    ("after", "text"),
    [
        (0, ""),
        (659, ""),
        (661, "service account token has expired"),
        (-59, ""),
        (-61, "service account token is not valid yet"),
    ],
)
def test_a_token_is_believed_while_it_is_valid_and_a_minute_longer(tokens, world, account, after, text):
    token = make(tokens, account)
    world.time = START + after

    assert (refusal(tokens, token) if text else "") == text
    assert text or user_of(tokens, token).uid == "u-1"


def test_a_token_ends_with_its_account_at_once(tokens, world, account):
    token = make(tokens, account)
    assert user_of(tokens, token).uid == "u-1"

    world.objects.clear()
    assert refusal(tokens, token) == 'serviceaccounts "bot" not found'
    world.add("serviceaccounts", "bot", "u-2")
    assert refusal(tokens, token) == "service account UID (u-2) does not match claim (u-1)"


def test_an_account_that_finalizers_hold_loses_its_tokens_after_a_minute(tokens, world, account):
    token = make(tokens, account)
    account["metadata"]["deletionTimestamp"] = "1970-01-12T13:46:40Z"  # START

    assert user_of(tokens, token).uid == "u-1"
    world.time = START + 61
    assert refusal(tokens, token) == "service account ns/bot has been deleted"


def test_a_token_of_a_pod_names_the_pod_and_its_node(tokens, world, account):
    world.add("pods", "p", "p-1")
    token = make(tokens, account, Bound("pod", "p", "p-1"), Bound("node", "n", "n-1"))

    extra = user_of(tokens, token).extra

    prefix = "authentication.kubernetes.io/"
    assert {key.removeprefix(prefix): value for key, value in extra.items()} == {
        "credential-id": ("JTI=id-1",),
        "node-name": ("n",),
        "node-uid": ("n-1",),
        "pod-name": ("p",),
        "pod-uid": ("p-1",),
    }


@pytest.mark.parametrize(("kind", "resource"), [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")])
def test_a_bound_token_ends_with_what_it_is_bound_to(tokens, world, account, kind, resource):
    namespace = "" if kind == "node" else "ns"
    world.add(resource, "thing", "t-1", namespace)
    token = make(tokens, account, Bound(kind, "thing", "t-1"))
    assert user_of(tokens, token).uid == "u-1"

    world.add(resource, "thing", "t-2", namespace)
    assert refusal(tokens, token) == f"{kind} UID (t-2) does not match service account {kind} ref claim (t-1)"
    del world.objects[resource, namespace, "thing"]
    assert refusal(tokens, token) == "service account token has been invalidated"


def test_a_legacy_token_lives_in_its_secret(tokens, world, account):
    token = tokens.make_legacy(account, "s")
    data = {"token": base64.b64encode(token.encode()).decode()}
    secret = world.add("secrets", "s", "s-1", data=data)

    user = user_of(tokens, token)

    assert (user.name, user.uid, dict(user.extra)) == ("system:serviceaccount:ns:bot", "u-1", {})
    secret["data"] = {"token": base64.b64encode(b"other").decode()}
    assert refusal(tokens, token) == "Token does not match server's copy"
    del world.objects["secrets", "ns", "s"]
    assert refusal(tokens, token) == "Token has been invalidated"


@pytest.mark.parametrize("token", ["", "a", "a.b", "a.b.c", "!.!.!", "bnVsbA.bnVsbA.bnVsbA", "e30.e30.e30", "é.é.é"])
def test_what_is_no_token_of_ours_is_not_read(tokens, token):
    assert tokens.user_of(token, [ISSUER]) is None


def test_a_token_of_another_key_is_refused(tokens, world, account):
    other = AccountTokens(ISSUER, world, now=lambda: world.time)

    assert refusal(tokens, make(other, account)) == "invalid signature, no keys found"


def test_a_signature_is_checked_once(tokens, account, monkeypatch):
    token = make(tokens, account)
    assert user_of(tokens, token).uid == "u-1"

    monkeypatch.setattr(SigningKey, "has_signed", lambda *_: pytest.fail("checked again"))

    assert user_of(tokens, token).uid == "u-1"


def test_no_key_is_made_before_a_token_is_wanted(world, monkeypatch):
    monkeypatch.setattr(SigningKey, "__init__", lambda *_: pytest.fail("a key was made"))
    authenticator = Authenticator(AccountTokens(ISSUER, world), {"t": TokenUser("tom")})

    assert authenticator.authenticate("Bearer t", None).name == "tom"
    with pytest.raises(Unauthorized):
        authenticator.authenticate("Bearer x", None)


def test_a_static_token_costs_no_read(world, tokens):
    authenticator = Authenticator(tokens, {"t": TokenUser("tom", groups=("dev",))})

    assert authenticator.authenticate("Bearer t", None).groups == ("dev", "system:authenticated")
    assert world.reads == 0


def public_pem(key):
    from cryptography.hazmat.primitives import serialization

    public = serialization.load_pem_private_key(key.pem, None).public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def test_tokens_of_further_keys_and_issuers_are_believed(world, account):
    earlier, other = SigningKey(), SigningKey()
    before = AccountTokens("https://before", world, earlier.pem, now=lambda: world.time)
    token = before.make(account, ["https://before"], 600, issued=int(START))

    tokens = AccountTokens(
        ISSUER,
        world,
        issuers=["https://before"],
        keys=[other.pem + public_pem(earlier)],
        now=lambda: world.time,
    )

    assert tokens.audiences == (ISSUER, "https://before")
    assert [key.id for key in tokens.keys] == [tokens.key.id, other.id, earlier.id]
    assert tokens.user_of(token, tokens.audiences)[0].name == "system:serviceaccount:ns:bot"


def test_a_token_of_an_unknown_key_is_refused_though_its_issuer_is_known(world, account):
    strange = AccountTokens(ISSUER, world, now=lambda: world.time)
    tokens = AccountTokens(ISSUER, world, keys=[SigningKey().pem], now=lambda: world.time)

    assert refusal(tokens, make(strange, account)) == "invalid signature, no keys found"


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_key_that_cannot_check_tokens_is_told(world, pem):
    with pytest.raises(ConfigError, match="cannot read a key that verifies service account tokens"):
        AccountTokens(ISSUER, world, keys=[pem])
