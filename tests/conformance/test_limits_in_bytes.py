"""Limits of texts: Kubernetes counts bytes of UTF-8, and characters only for `maxLength` of a schema."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from ctrlruntime.errors import APIStatusError, Invalid

GROUP = f"bytes-{secrets.token_hex(3)}.example.com"
WIDE = "é"  # two bytes


def texts(limit: int) -> tuple[str, str]:
    """Return a text that has just the bytes of a limit, and one that has a byte more; both have fewer characters."""
    return WIDE * (limit // 2), "a" + WIDE * (limit // 2)


def event(field: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": "wide-"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "type": "Normal",
        "reason": "Fine",
        "action": "Look",
        "note": "note",
        "reportingController": "example.com/wide",
        "reportingInstance": "one",
        field: text,
    }


@pytest.mark.parametrize(
    ("field", "limit"), [("note", 1024), ("reason", 128), ("action", 128), ("reportingInstance", 128)]
)
def test_texts_of_events(server, namespace, field, limit):
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    fits, over = texts(limit)

    made = server.connection.request("POST", path, {**event(field, fits), "regarding": {"namespace": namespace}})
    with pytest.raises(APIStatusError) as refused:
        server.connection.request("POST", path, {**event(field, over), "regarding": {"namespace": namespace}})

    assert made[field] == fits
    name = "message" if field == "note" else field
    assert f'{name}: Invalid value: "": can have at most {limit} characters' in str(refused.value)


def test_annotations(server, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    fits, over = texts(262_144 - 2)

    def annotated(text):
        return {"metadata": {"generateName": "wide-", "annotations": {"ab": text}}}

    assert server.connection.request("POST", path, annotated(fits))["metadata"]["annotations"]["ab"] == fits
    with pytest.raises(APIStatusError, match=r"metadata\.annotations: Too long: may not be more than 262144 bytes"):
        server.connection.request("POST", path, annotated(over))


def test_values_and_keys_of_labels_are_refused_for_their_bytes_and_their_letters(server, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    over = texts(63)[1] + "a"
    labels = {over: over, f"example.com/{over}": "a"}
    with pytest.raises(APIStatusError) as refused:
        server.connection.request("POST", path, {"metadata": {"name": "wide", "labels": labels}})

    assert str(refused.value).count("must be no more than 63 bytes") == 3


def definition(warning: str | None = None, *, message: str | None = None, plural: str = "wides") -> dict[str, Any]:
    rules = [] if message is None else [{"rule": "self == ''", "messageExpression": message, "message": "the other"}]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "maxLength": 20_000, "x-kubernetes-validations": rules},
                    "short": {"type": "string", "maxLength": 4, "minLength": 4},
                },
            }
        },
    }
    if warning is not None:
        version |= {"deprecated": True, "deprecationWarning": warning}
    kind = plural.title()
    names = {"plural": plural, "singular": plural, "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"


def test_the_warning_of_a_deprecated_version(server):
    fits, over = texts(256)

    made = server.connection.request("POST", DEFINITIONS, definition(fits))
    with pytest.raises(APIStatusError, match="must be <= 256 characters long"):
        server.connection.request("POST", DEFINITIONS, definition(over))
    with pytest.raises(APIStatusError, match="non-printable character found at index 4"):
        server.connection.request("POST", DEFINITIONS, definition(f"{WIDE}{WIDE}\x07"))

    assert made["spec"]["versions"][0]["deprecationWarning"] == fits


def test_the_group_of_a_definition_is_refused_for_its_bytes_and_its_letters(server):
    wide = definition()
    wide["spec"]["group"] = texts(253)[1] + "aa"
    wide["metadata"]["name"] = "wides." + wide["spec"]["group"]
    with pytest.raises(APIStatusError) as refused:
        server.connection.request("POST", DEFINITIONS, wide)

    assert "must be no more than 253 characters,a lowercase RFC 1123 subdomain" in str(refused.value)


@pytest.fixture
def wides(server, namespace):
    """The path of a kind whose rule says what stands in its field."""
    made = definition(message="' ' + self + '\\n'")
    server.install_crds(made, timeout=60)
    yield f"/apis/{GROUP}/v1/namespaces/{namespace}/wides"
    server.uninstall_crds([made["metadata"]["name"]])


def test_texts_of_objects_and_the_messages_of_their_rules(server, wides):
    fits, over = texts(5120)

    def refusal(**fields):
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Wides", "metadata": {"name": "one"}, **fields}
        with pytest.raises(APIStatusError) as refused:
            server.connection.request("POST", wides, body)
        return str(refused.value)

    assert f": {fits}" in refusal(text=fits)  # spaces and the end of the line around it do not count
    assert "the other" in refusal(text=over)
    assert "the other" in refusal(text="two\nlines")
    assert "short" not in refusal(text="a", short=WIDE * 4)  # characters
    assert "short" in refusal(text="a", short=WIDE * 2)


def test_copies_of_a_json_patch(server, namespace):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    server.connection.request("POST", path, {"metadata": {"name": "wide"}, "data": {"a": WIDE * 100_000}})

    def copy(times):
        once = [{"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "remove", "path": "/data/b"}]
        form = "application/json-patch+json"
        return server.connection.request("PATCH", f"{path}/wide", once * times, content_type=form)

    assert copy(15)["data"].keys() == {"a"}
    with pytest.raises(Invalid, match="the server rejected our request due to an error in our request"):
        copy(16)  # 3,200,032 bytes; the limit is 3 MiB
