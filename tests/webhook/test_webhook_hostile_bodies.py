"""Bodies that no API server sends: each endpoint answers that it cannot read them, and the log has no traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from webhook_reviews import Game, game, review

import ctrlruntime as ctrl
from ctrlruntime.webhook import TokenAuthentication, unauthenticated
from ctrlruntime.webhook.conversion import ConversionEndpoint

GOOD = review(object=game())
SPEC = b'{"apiVersion":"games.example.com/v1","kind":"Game","spec":{%s}}'


async def decode(request):
    request.decode(Game)
    return ctrl.webhook.allowed()


async def nobody(request):
    return unauthenticated()


def with_object(raw: bytes) -> bytes:
    return GOOD.replace(b'"object": ', b'"object": ' + raw + b', "other": ', 1)


BODIES = {
    "nothing": b" ",
    "brackets": b"[" * 100_000 + b"]" * 100_000,
    "an object of brackets": with_object(b"[" * 100_000 + b"]" * 100_000),
    "an object of braces": with_object(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "an unknown field of brackets": with_object(SPEC % (b'"extra":' + b"[" * 900 + b"]" * 900)),
    "bytes in the kind": GOOD.replace(b'"AdmissionReview"', b'"\xffAdmissionReview"'),
    "bytes in the operation": GOOD.replace(b'"CREATE"', b'"\xed\xa0\x80"'),
    "bytes in the object": with_object(SPEC % b'"image":"\xff"'),
    "half a surrogate": with_object(SPEC % b'"image":"\\ud800"'),
    "a number of 5,000 digits": with_object(SPEC % (b'"replicas":' + b"9" * 5000)),
    "a number without end": with_object(SPEC % b'"replicas":1e400'),
    "UTF-16": GOOD.decode().encode("utf-16"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_what_cannot_be_read_is_a_400(body, capsys):
    answer = json.loads(await ctrl.webhook.Admission(decode).answer(body))

    assert answer["response"]["status"]["code"] == 400
    assert not answer["response"]["allowed"]
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("endpoint", [ConversionEndpoint(), TokenAuthentication(nobody)], ids=["conversion", "token"])
async def test_other_endpoints_refuse_it_too(endpoint, body, capsys):
    kinds = {"conversion": b"ConversionReview", "token authentication": b"TokenReview"}
    text = (await endpoint.answer(body.replace(b"AdmissionReview", kinds[endpoint.kind]))).decode()

    assert '"status":"Failure"' in text or '"authenticated":false' in text
    assert "Traceback" not in capsys.readouterr().err


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["uid", "object", "operation", "userInfo", "kind", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    request=Json,
    name=st.sampled_from(["request", "kind", "apiVersion", "uid", "object", "userInfo", "options", "dryRun"]),
)
@example(request=10**400, name="uid")
async def test_any_json_at_any_place_is_answered(request, name):
    document = json.loads(GOOD)
    (document if name in document else document["request"])[name] = request
    body = json.dumps(document).encode()

    for endpoint in (ctrl.webhook.Admission(decode), ConversionEndpoint(), TokenAuthentication(nobody)):
        assert json.loads(await endpoint.answer(body))
