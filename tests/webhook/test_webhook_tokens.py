"""The token authentication webhook."""

from __future__ import annotations

import json

import pytest

import ctrlruntime as ctrl
from ctrlruntime.errors import TransportError
from ctrlruntime.webhook import TokenAuthentication, TokenRequest, authenticated, unauthenticated


def review(token: str = "t", version: str = "v1", **spec) -> bytes:
    body = {"kind": "TokenReview", "apiVersion": f"authentication.k8s.io/{version}", "spec": {"token": token, **spec}}
    return json.dumps(body).encode()


async def jane(request: TokenRequest):
    if request.token != "t":
        return unauthenticated("unknown token")
    return authenticated(ctrl.webhook.UserInfo("jane", "1", ("a",), {"x": ("y",)}), request.audiences)


async def ask(handler, body: bytes, **options):
    return json.loads(await TokenAuthentication(handler).answer(body, **options))


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_token_is_somebodys(version):
    answer = await ask(jane, review(version=version, audiences=["here"]))

    assert answer["apiVersion"] == f"authentication.k8s.io/{version}"
    assert answer["status"] == {
        "authenticated": True,
        "user": {"username": "jane", "uid": "1", "groups": ["a"], "extra": {"x": ["y"]}},
        "audiences": ["here"],
    }


async def test_a_token_is_nobodys():
    assert (await ask(jane, review("other")))["status"] == {"authenticated": False, "error": "unknown token"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (review(""), "the token is empty"),
        (b"", "the body is not a TokenReview"),
        (b'{"spec":{"token":5}}', "the body is not a TokenReview"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "the body is a 'v1' 'Pod'"),
    ],
)
async def test_what_cannot_be_read_authenticates_nobody(body, message):
    status = (await ask(jane, body))["status"]

    assert status["authenticated"] is False
    assert message in status["error"]


async def test_failures_authenticate_nobody_and_show_no_defect(capsys):
    async def broken(request):
        raise ValueError("secret")

    async def lost(request):
        raise TransportError("no answer")

    assert "secret" not in json.dumps(await ask(broken, review()))
    assert "no answer" not in json.dumps(await ask(lost, review()))
    logged = capsys.readouterr().err
    assert "secret" in logged
    assert "no answer" in logged


async def test_another_content_type_is_refused():
    assert "content type" in (await ask(jane, review(), content_type="a/b"))["status"]["error"]


def test_a_token_is_not_shown():
    assert "hunter2" not in repr(TokenRequest("hunter2"))
