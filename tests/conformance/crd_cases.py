"""Definitions and objects, and what kube-apiserver answered: `crd_cases.jsonl`, one case a line.

| key | meaning |
|---|---|
| ``case`` | its name |
| ``definition`` | a CustomResourceDefinition to create; with requests it is really made, without it is a dry run |
| ``requests`` | then, in order: method, path (``@`` the resource, ``@CRD`` the definition), body |
| ``answers`` | what each of them answered |

The names ``things`` and ``Thing`` stand for names of the case's own. New cases are written without answers; running this module asks
the real server (found as `Environment` finds it) and writes the answers in.
"""

from __future__ import annotations

import base64
import copy
import http.client
import itertools
import json
import re
import ssl
import time
from pathlib import Path
from typing import Any

import yaml

from ctrlruntime.testing import Environment

CASES = Path(__file__).parent / "crd_cases.jsonl"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "t.example.com"
TIME_LIMIT = 30.0
_TAKES_EFFECT = 1.3  # seconds until the real server answers by a changed definition; nothing shows when it does
_serial = itertools.count(int(time.time()) % 1_000_000)


class Client:
    """Raw requests, so that the answer is seen as it is."""

    def __init__(self, server: Environment) -> None:
        config = yaml.safe_load(server.kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        address = cluster["server"].rpartition("//")[2]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        context = ssl.create_default_context(cadata=authority)
        self.is_real = server.backend != "embedded"
        self._token = user["token"]
        self._connection = http.client.HTTPSConnection(address, context=context, timeout=TIME_LIMIT)

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any, list[str]]:
        """Return status, body and warnings; an answer that only says the storage is not ready is waited out."""
        kind = content_type or ("application/merge-patch+json" if method == "PATCH" else "application/json")
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind, "Accept": "application/json"}
        raw = body if body is None or isinstance(body, str) else json.dumps(body)
        begun = time.monotonic()
        while True:
            self._connection.request(method, path, raw, headers)
            response = self._connection.getresponse()
            text = response.read().decode()
            answer = json.loads(text) if text.startswith("{") else text
            is_missing = response.status == 404 and isinstance(answer, str) and self.is_real
            patience = TIME_LIMIT if response.status == 429 else _TAKES_EFFECT if is_missing else 0.0
            if time.monotonic() > begun + patience:
                return response.status, answer, response.headers.get_all("Warning") or []
            time.sleep(0.05)

    def close(self) -> None:
        self._connection.close()


def load() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def run(client: Client, case: dict[str, Any]) -> list[Any]:
    """Return the answers of one case, without what differs from run to run."""
    names = _Names(f"th{next(_serial)}s")
    definition = names.put(case["definition"])
    requests = case.get("requests") or []
    first = client.request("POST", DEFINITIONS if requests else f"{DEFINITIONS}?dryRun=All", definition)
    answers = [_plain(names, *first)]
    if first[0] != 201 or not requests:
        return answers
    path = f"{DEFINITIONS}/{names.plural}.{GROUP}"
    try:
        _wait_until_served(client, path)
        answers.extend(_answer(client, names, path, *request) for request in requests)
    finally:
        client.request("DELETE", path)
    return answers


def _answer(client: Client, names: _Names, definition: str, method: str, target: str, body: Any = None) -> Any:
    path = target.replace("@CRD", definition).replace("@", f"/apis/{GROUP}/v1/{names.plural}")
    path = path.replace("things", names.plural)
    body = names.put(body)
    is_object = isinstance(body, dict) and method in {"POST", "PUT"}
    if is_object:
        body = {"apiVersion": f"{GROUP}/v1", "kind": names.kind, "metadata": {"name": "a"}, **body}
    if is_object and method == "PUT":
        present = client.request("GET", path)[1]
        body["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
    answer = _plain(names, *client.request(method, path, body))
    if target.startswith("@CRD") and method != "GET" and client.is_real:
        time.sleep(_TAKES_EFFECT)
    return answer


def _wait_until_served(client: Client, path: str) -> None:
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        status = client.request("GET", path)[1]["status"]
        if any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ()):
            break
        time.sleep(0.02)
    if client.is_real:
        time.sleep(0.2)


class _Names:
    """The names one run of a case has to itself."""

    def __init__(self, plural: str) -> None:
        self.plural, self.kind = plural, f"K{plural}"

    def put(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, str):
            return tree
        text = json.dumps(tree).replace("things", self.plural).replace("Thing", self.kind)
        return json.loads(text)

    def take(self, value: Any) -> str:
        text = str(value).replace(self.kind, "Thing").replace(self.kind.lower(), "thing").replace(self.plural, "things")
        return re.sub(r"selfType\d+", "selfType", text)


def _plain(names: _Names, code: int, body: Any, warnings: list[str]) -> Any:
    if isinstance(body, str):
        return [code, body]
    if code >= 400:
        causes = [
            [names.take(cause.get("field")), cause.get("reason"), names.take(cause.get("message"))]
            for cause in (body.get("details") or {}).get("causes") or ()
        ]
        # Upstream walks maps in no order, so neither the order of causes is the same twice, nor the message that lists them.
        message = names.take(body.get("message")) if len(causes) < 2 else f"{len(causes)} causes"
        return [code, body.get("reason"), message, sorted(causes)]
    return [code, json.loads(names.take(json.dumps(_shown(body), sort_keys=True))), sorted(map(names.take, warnings))]


def _shown(body: dict[str, Any]) -> Any:
    if body["kind"] == "CustomResourceDefinition":
        status = body.get("status") or {}
        conditions = status.get("conditions")
        return {
            "conditions": sorted([c["type"], c["status"], c["reason"], c["message"]] for c in conditions or ()),
            "acceptedNames": status.get("acceptedNames"),
            "storedVersions": status.get("storedVersions"),
            "generation": body["metadata"].get("generation"),
            "labels": body["metadata"].get("labels"),
        }
    if "items" in body:
        return [[item["apiVersion"], item["metadata"]["name"], item.get("spec")] for item in body["items"]]
    return {"apiVersion": body["apiVersion"], "spec": body.get("spec"), "status": body.get("status")}


def record() -> None:
    """Ask the real server all cases and keep its answers."""
    with Environment(backend="real", controller_manager=False) as server:
        client = Client(server)
        lines = [
            json.dumps({**case, "answers": run(client, copy.deepcopy(case))}, ensure_ascii=False) for case in load()
        ]
        client.close()
    CASES.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
