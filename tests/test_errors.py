"""What the exceptions say of a server's answer."""

import json

import pytest

from ctrlruntime.errors import APIStatusError, NotFound, Unauthorized


def test_a_bare_unauthorized_says_what_to_look_at():
    status = {"kind": "Status", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}

    error = APIStatusError.from_status(status)

    assert isinstance(error, Unauthorized)
    assert "check the user in the kubeconfig" in str(error)


def test_an_unauthorized_with_a_message_keeps_it():
    assert str(Unauthorized("the token has expired")) == "the token has expired"


def test_a_long_message_is_cut_in_the_text_and_whole_in_the_status():
    message = "x" * 1_000_000

    error = APIStatusError.from_response(500, json.dumps({"kind": "Status", "message": message}).encode())

    assert len(str(error)) < 20_000
    assert "1000000 characters" in str(error)
    assert error.status["message"] == message


@pytest.mark.parametrize(
    "status",
    [
        {"code": "none"},
        {"code": 1e300},
        {"code": [1]},
        {"details": {"causes": "x"}},
        {"details": {"causes": [1, None, {"field": 5}], "retryAfterSeconds": "soon"}},
        {"details": []},
        {"reason": {"a": 1}, "message": [1]},
    ],
)
def test_a_status_with_fields_of_other_types_is_an_error_of_the_answer(status):
    error = APIStatusError.from_response(404, json.dumps({"kind": "Status", **status}).encode())

    assert (error.code, type(error), error.retry_after) == (404, NotFound, None)
    assert all(isinstance(cause.field, str) for cause in error.causes)
