"""The annotation that counts the templates of a DaemonSet is a Go int64: both servers read and refuse it alike."""

from __future__ import annotations

from typing import Any

import pytest
from crd_cases import Client

KEY = "deprecated.daemonset.template.generation"
PATH = "/apis/apps/v1/namespaces/default/daemonsets"
LARGEST = 2**63 - 1
SYNTAX, RANGE = "invalid syntax", "value out of range"
REFUSED = {
    "empty": ("", SYNTAX),
    "word": ("x", SYNTAX),
    "underscore": ("1_0", SYNTAX),
    "too large": (str(2**63), RANGE),
    "too small": (str(-(2**63) - 1), RANGE),
    "many digits": ("1" * 5000, RANGE),
}
TAKEN = {"sign": ("+5", "5"), "negative": ("-3", "1"), "zeros": ("0" * 5000 + "7", "7"), "largest": (str(LARGEST),) * 2}
WAYS = {
    "create": ("POST", PATH, "", 400, 'DaemonSet in version "v1" cannot be handled as a DaemonSet: '),
    "apply": (
        "PATCH",
        f"{PATH}/new",
        "application/apply-patch+yaml",
        500,
        "failed to convert to unversioned (/new; apps/v1, Kind=DaemonSet): ",
    ),
    "strategic": ("PATCH", f"{PATH}/one", "application/strategic-merge-patch+json", 500, ""),
}


def daemon_set(name: str, count: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    metadata = {"name": name, "annotations": {KEY: count}}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


@pytest.fixture(scope="module")
def client(server):
    client = Client(server)
    for name in ("one", "largest"):
        client.request("POST", PATH, daemon_set(name, str(LARGEST)))
    yield client
    for name in ("one", "largest"):
        client.request("DELETE", f"{PATH}/{name}")
    client.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", REFUSED)
def test_what_is_no_int64_is_refused(client, way: str, count: str) -> None:
    text, problem = REFUSED[count]
    method, path, kind, wanted, prefix = WAYS[way]
    name = path.removeprefix(PATH).removeprefix("/") or "new"

    code, body, _ = client.request(method, f"{path}?dryRun=All&fieldManager=f", daemon_set(name, text), kind)

    assert (code, body["message"]) == (wanted, f'{prefix}strconv.ParseInt: parsing "{text}": {problem}')


@pytest.mark.parametrize("count", TAKEN)
def test_an_int64_is_written_as_a_plain_number(client, count: str) -> None:
    given, wanted = TAKEN[count]

    code, body, _ = client.request("POST", f"{PATH}?dryRun=All", daemon_set("new", given))

    assert (code, body["metadata"]["annotations"]) == (201, {KEY: wanted})


def test_a_template_beyond_the_largest_count_is_refused(client) -> None:
    change = {"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}}

    code, body, _ = client.request("PATCH", f"{PATH}/largest", change)

    shown = f"Invalid value: {-(2**63)}"
    assert code == 422
    assert [cause["message"] for cause in body["details"]["causes"]] == [
        f"{shown}: must not be decremented",
        f"{shown}: must be greater than or equal to 0",
    ]
