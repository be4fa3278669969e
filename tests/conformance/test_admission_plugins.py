"""Admission plugins: both servers set, refuse and warn alike.

The servers are this module's own, without controllers: default classes are for the whole server.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from plugin_cases import (
    DEFAULTED,
    LIMITED,
    QUOTED,
    RESIZED,
    SECURED,
    VALIDATED,
    Case,
    Request,
    asking,
    claim,
    counted,
    dry,
    pod,
    service,
)
from test_builtin_kinds import normalised

from ctrlruntime.apiserver import Options
from ctrlruntime.testing import Environment, eventually

CASES = {**DEFAULTED, **RESIZED, **LIMITED, **QUOTED, **SECURED, **VALIDATED}
STRATEGIC = "application/strategic-merge-patch+json"
_GENERATED = re.compile(r"generated-[a-z0-9]{5}\b")


@pytest.fixture(scope="module")
def pair(own_real_server) -> Iterator[tuple[Environment, Environment]]:
    with (
        Environment(backend="embedded", embedded=Options(controllers=[])) as embedded,
        own_real_server() as real,
    ):
        yield embedded, real


def send(server: Environment, namespace: str, request: Request) -> dict[str, Any]:
    method, path, body = copy.deepcopy(request)
    if not path.startswith("/"):
        version, _, rest = path.partition("/") if path.startswith("v1/") else path.partition("/v1/")
        root = "/api/v1" if path.startswith("v1/") else f"/apis/{version}/v1"
        path = f"{root}/namespaces/{namespace}/{rest}"
    path = path.replace("NAMESPACE", namespace)
    kind = STRATEGIC if method == "PATCH" else "application/json"
    data = None if body is None else json.dumps(body).encode()
    code, headers, text = server.connection.exchange(method, path, data, {"Content-Type": kind})
    found = json.loads(_GENERATED.sub("generated-NAME", text.decode()))
    return normalised(code, headers.get_all("Warning") or [], found)


def prepare(server: Environment, namespace: str, case: Case) -> None:
    body = {"metadata": {"name": namespace, "labels": case.labels}}
    made = [send(server, namespace, ("POST", "/api/v1/namespaces", body))]
    made += [send(server, namespace, request) for request in case.stored]
    assert [one for one in made if one["code"] not in {200, 201}] == []


@pytest.mark.parametrize("name", CASES, ids=lambda name: name.replace(" ", "-"))
async def test_both_servers_answer_alike(pair, name):
    case, namespace = CASES[name], name.replace(" ", "-")
    embedded, real = pair
    for server in pair:
        prepare(server, namespace, case)
    for request in case.requests:
        expected = send(embedded, namespace, request)

        def agrees(request=request, expected=expected) -> bool:
            assert send(real, namespace, request) == expected, request
            return True

        if "dryRun" in request[1]:
            await eventually(agrees)
        else:
            agrees()


HARD = {
    "configmaps": "9",
    "count/deployments.apps": "1",
    "count/nothing.example.com": "1",
    "pods": "2",
    "requests.cpu": "1",
    "requests.storage": "1Gi",
    "services.nodeports": "2",
}
MADE = [
    ("v1/configmaps", counted("a")),
    ("v1/pods", pod(asking(requests={"cpu": "500m"}), name="a")),
    ("v1/persistentvolumeclaims", claim("a", size="512Mi", storageClassName="")),
    ("v1/services", service("NodePort", "a")),
]


async def test_a_controller_counts_what_is_used(server, namespace):
    def reads(hard: dict[str, str] = HARD, without: Sequence[str] = (), **used: str) -> Callable[[], bool]:
        whole = {name: used.get(name.replace("/", "_").replace(".", "_"), "0") for name in HARD}
        whole["configmaps"] = used.get("configmaps", "1")  # the certificate of the server
        whole = {name: text for name, text in whole.items() if name not in {*without, "count/nothing.example.com"}}
        hard = {name: text for name, text in hard.items() if name not in without}

        def check() -> bool:
            status = send(server, namespace, ("GET", "v1/resourcequotas/q", None))["object"]["status"]
            assert status == {"hard": hard, "used": whole}
            return True

        return check

    send(server, namespace, ("POST", "v1/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": HARD}}))
    await eventually(reads())
    # Until kube-apiserver has heard of the status it charges nothing.
    await eventually(lambda: send(server, namespace, dry("POST", "v1/pods", pod()))["code"] == 403)
    for plural, body in MADE:
        assert send(server, namespace, ("POST", plural, body))["code"] == 201
    reads(configmaps="2", pods="1", requests_cpu="500m", requests_storage="512Mi", services_nodeports="1")()
    for plural in ("v1/pods", "v1/services"):
        assert send(server, namespace, ("DELETE", f"{plural}/a?gracePeriodSeconds=0", None))["code"] == 200
    await eventually(reads(configmaps="2", requests_storage="512Mi"))
    for plural in ("v1/configmaps", "v1/persistentvolumeclaims"):
        assert send(server, namespace, ("DELETE", f"{plural}/a", None))["code"] == 200
    await eventually(reads())
    hard = {"spec": {"hard": {"pods": "1", "configmaps": None}}}
    assert send(server, namespace, ("PATCH", "v1/resourcequotas/q", hard))["code"] == 200
    await eventually(reads(hard={**HARD, "pods": "1"}, without=["configmaps"]))
