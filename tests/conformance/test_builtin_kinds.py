"""Built-in kinds: what is sent to both servers is defaulted, refused and changed alike.

Nothing is stored but what a change needs to begin with: the write that is compared is a dry run.
"""

from __future__ import annotations

import copy
import json
import re
import zlib
from collections import Counter
from typing import Any

import pytest
from builtin_objects import CASES, Case

from ctrlruntime.patch import apply_merge_patch
from ctrlruntime.testing import Environment

TOLERATED: dict[str, str] = {}
"""Cases in which the embedded server differs, and why that is left."""


@pytest.fixture(scope="module")
def both(embedded_server: Environment, real_server: Environment) -> tuple[Environment, Environment, str]:
    """The two servers and a namespace that both have."""
    name = embedded_server.create_namespace()
    real_server.connection.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return embedded_server, real_server, name


def test_case_names_are_unique():
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_both_servers_answer_alike(case, both):
    embedded, real, namespace = both

    expected = answer(real, namespace, case)

    if case.name in TOLERATED:
        pytest.skip(TOLERATED[case.name])
    assert answer(embedded, namespace, case) == expected


def answer(server: Environment, namespace: str, case: Case) -> dict[str, Any]:
    """What the server says to the write, without what differs from run to run."""
    client = Client(server)
    path = path_of(case.path, namespace)
    body = placed(case.body, namespace)
    if case.changes is None and not case.is_stored:
        return normalised(*client.send("POST", f"{path}?dryRun=All", body))
    name = body["metadata"]["name"] = own_name(case, body["metadata"]["name"])
    code, warnings, made = client.send("POST", path, body)
    if case.changes is None:
        gone = client.send("DELETE", f"{path}/{name}?gracePeriodSeconds=0")
        return without_status(normalised(*gone)) if case.is_deleted else normalised(code, warnings, made)
    assert code == 201, made
    try:
        return changed(client, f"{path}/{name}", case)
    finally:
        client.send("DELETE", f"{path}/{name}?gracePeriodSeconds=0")


def own_name(case: Case, name: str) -> str:
    """A name that no other case has; what has no namespace is deleted at once and keeps its own, but for namespaces."""
    return (
        name
        if case.path.startswith("/") and case.path != "/v1/namespaces"
        else f"{name}-{zlib.crc32(case.name.encode())}"
    )


def changed(client: Client, path: str, case: Case) -> dict[str, Any]:
    """Replace the stored object; a controller may come between, then again."""
    target = f"{path}/{case.subresource}" if case.subresource else path
    for _ in range(10):
        present = client.send("GET", path)[2]
        document = apply_merge_patch(present, copy.deepcopy(case.changes or {}))
        found = client.send("PUT", f"{target}?dryRun=All", document)
        if "the object has been modified" not in found[2].get("message", ""):
            break
    shown = normalised(*found)
    return shown if case.subresource and not case.path.startswith("apps/") else without_status(shown)


def without_status(shown: dict[str, Any]) -> dict[str, Any]:
    """An answer without what controllers write meanwhile."""
    if "object" in shown:
        shown["object"].pop("status", None)
        shown["object"]["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
        if not shown["object"]["metadata"].get("annotations", True):
            del shown["object"]["metadata"]["annotations"]
    return shown


def path_of(path: str, namespace: str) -> str:
    group, _, plural = path.lstrip("/").rpartition("/")
    root = "/api" if group == "v1" else "/apis"
    scope = "" if path.startswith("/") else f"/namespaces/{namespace}"
    return f"{root}/{group}{scope}/{plural}"


def placed(body: dict[str, Any], namespace: str) -> dict[str, Any]:
    return json.loads(json.dumps(body).replace("NAMESPACE", namespace))


_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ(?!\\\\)")
_GO_DIFF = re.compile(r"\n@@ .*?(?=, \w|\Z)", re.DOTALL)
_GO_POD_SPEC = re.compile(r'Invalid value: \{"(Volumes|containers|labels|metadata)":.*\}: ', re.IGNORECASE)


def without_go(text: str) -> str:
    """A text without what only Go can print: the difference of two internal structs, and a Pod's whole spec or template."""
    text = text.replace("Key: /registry/", "Key: /")  # upstream leaves the prefix out of a dry run
    return _GO_POD_SPEC.sub("Invalid value: POD SPEC: ", _GO_DIFF.sub("", text))


def plain(cause: dict[str, Any]) -> dict[str, Any]:
    return {**cause, "message": without_go(cause["message"])}


class Client:
    """Requests whose answers are not turned into errors."""

    def __init__(self, server: Environment) -> None:
        self._connection = server.connection

    def send(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, list[str], dict[str, Any]]:
        data = None if body is None else json.dumps(body).encode()
        status, headers, text = self._connection.exchange(method, path, data, {"Content-Type": kind})
        return status, headers.get_all("Warning") or [], json.loads(text)


def normalised(code: int, warnings: list[str], body: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"code": code, "warnings": sorted(warnings)}
    body = json.loads(_UID.sub("UID", _TIME.sub("TIME", json.dumps(body)))) if len(json.dumps(body)) < 100_000 else body
    if body.get("kind") == "Status":
        details = body.get("details") or {}
        details["causes"] = [plain(cause) for cause in details.get("causes", ())]
        return {
            **shown,
            "reason": body.get("reason"),
            "message": without_go(body.get("message", "")),
            "details": details,
        }
    meta = body["metadata"]
    for key in ("uid", "creationTimestamp", "resourceVersion", "managedFields"):
        meta.pop(key, None)
    spec = body.get("spec") or {}
    if body["kind"] == "Service" and spec.get("clusterIP", "None") != "None":
        spec.update({"clusterIP": "IP", "clusterIPs": ["IP" for _ in spec["clusterIPs"]]})
    if body["kind"] == "CertificateSigningRequest":
        spec.update({name: "WHO" for name in ("username", "groups") if spec.get(name)})
        spec.pop("uid", None)  # only the real server's administrator has one
    if "healthCheckNodePort" in spec:
        spec["healthCheckNodePort"] = "PORT"
    for port in spec.get("ports") or () if body["kind"] == "Service" else ():
        if "nodePort" in port:
            port["nodePort"] = "PORT"
    return {**shown, "object": body}
