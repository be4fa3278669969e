"""What the exceptions say of a server's answer."""

from ctrlruntime.errors import APIStatusError, Unauthorized


def test_a_bare_unauthorized_says_what_to_look_at():
    status = {"kind": "Status", "message": "Unauthorized", "reason": "Unauthorized", "code": 401}

    error = APIStatusError.from_status(status)

    assert isinstance(error, Unauthorized)
    assert "check the user in the kubeconfig" in str(error)


def test_an_unauthorized_with_a_message_keeps_it():
    assert str(Unauthorized("the token has expired")) == "the token has expired"
