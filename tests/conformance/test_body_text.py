"""What a body may hold as text, on both servers: JSON is lenient about what is not a Unicode, YAML is not, and an apply is YAML."""

from __future__ import annotations

import base64
import http.client
import json
import ssl

import pytest
import yaml

NO_CHARACTER = "found invalid Unicode character escape code"
NO_HEX = "did not find expected hexdecimal number"
UNKNOWN_ESCAPE = "found unknown escape character"
CONTROL = "control characters are not allowed"
REFUSED_ESCAPES = {
    rb"\ud800": NO_CHARACTER,
    rb"\udc00": NO_CHARACTER,
    rb"a\ud800b": NO_CHARACTER,
    rb"\ud83d\ude00": NO_CHARACTER,
    rb"\U00110000": NO_CHARACTER,
    rb"\u12": NO_HEX,
    rb"\/": UNKNOWN_ESCAPE,
    rb"\q": UNKNOWN_ESCAPE,
    b"\x7f": CONTROL,
    b"\x01": CONTROL,
    b"\xc2\x80": CONTROL,
    b"\xff": "invalid leading UTF-8 octet",
    b"\xc3(": "invalid trailing UTF-8 octet",
    b"\xed\xa0\x80": "invalid Unicode character",
    b"\xc0\x80": "invalid length of a UTF-8 sequence",
}
TAKEN_BY_YAML = {rb"\U0001F600": "😀", rb"\x80": "\x80", rb"\'": "'", rb"\\ud800": r"\ud800", "😀".encode(): "😀"}
TAKEN_BY_JSON = {
    rb"\ud800": "\ufffd",
    rb"\ude00\ud83d": "\ufffd\ufffd",
    rb"a\udc00b": "a\ufffdb",
    rb"\ud83d\ude00": "😀",
    rb"\\ud800": r"\ud800",
    rb"\/": "/",
    b"\xff": "\ufffd",
    b"\xed\xa0\x80": "\ufffd\ufffd\ufffd",
    b"\xe2\x82": "\ufffd\ufffd",
    b"\x7f": "\x7f",
}


@pytest.fixture(scope="module")
def connection(server):
    """Sends a body as the administrator; (status, tree of the answer)."""
    config = yaml.safe_load(server.kubeconfig)
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    connection = http.client.HTTPSConnection(cluster["server"].removeprefix("https://"), context=context, timeout=120)

    def send(method, path, body, content_type):
        headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": content_type}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    yield send
    connection.close()


@pytest.fixture
def path(namespace):
    return f"/api/v1/namespaces/{namespace}/configmaps"


def body(text: bytes) -> bytes:
    return b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"texts"},"data":{"k":"%s"}}' % text


@pytest.mark.parametrize("text", REFUSED_ESCAPES)
def test_yaml_refuses_what_is_no_character(connection, path, text):
    applied = connection("PATCH", f"{path}/texts?fieldManager=me", body(text), "application/apply-patch+yaml")
    posted = connection("POST", path, body(text), "application/yaml")

    why = f"yaml: {REFUSED_ESCAPES[text]}"
    assert (applied[0], applied[1]["message"]) == (400, f"error decoding YAML: error converting YAML to JSON: {why}")
    shown = (
        f'the object provided is unrecognized (must be of type ConfigMap): {why} ({{"apiVersion":"v1","kind":"Con ...)'
    )
    assert (posted[0], posted[1]["message"]) == (400, shown)


def test_a_refusal_names_the_line_unless_it_is_the_first(connection, path):
    text = b'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: texts\ndata:\n  k: "\\ud800"\n'

    code, status = connection("PATCH", f"{path}/texts?fieldManager=me", text, "application/apply-patch+yaml")

    assert code == 400
    assert status["message"].endswith(f"yaml: line 6: {NO_CHARACTER}")


@pytest.mark.parametrize("text", TAKEN_BY_YAML)
def test_yaml_takes_the_other_escapes(connection, path, text):
    code, found = connection("PATCH", f"{path}/texts?fieldManager=me", body(text), "application/apply-patch+yaml")

    assert (code, found["data"]) == (201, {"k": TAKEN_BY_YAML[text]})


@pytest.mark.parametrize("text", TAKEN_BY_JSON)
def test_json_replaces_what_is_no_character(connection, path, text):
    code, found = connection("POST", path, body(text), "application/json")

    assert (code, found["data"]) == (201, {"k": TAKEN_BY_JSON[text]})


def test_a_key_given_twice_is_found_in_a_body_that_is_no_text(connection, path):
    twice = body(b"\xff").replace(b'"data":{', b'"data":{"k":"first",')

    code, status = connection("POST", f"{path}?fieldValidation=Strict", twice, "application/json")

    assert code == 400
    assert 'duplicate field "data.k"' in status["message"]
