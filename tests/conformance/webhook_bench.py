"""A bench for webhooks: one of the two servers, a webhook server it calls, and what came of it without what differs from run to run."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctrlruntime.testing import Environment

sys.path.append(str(Path(__file__).parents[1] / "apiserver"))

from webhook_receiver import Answer, Received, WebhookReceiver, allow

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_KINDS = {MUTATING: "MutatingWebhookConfiguration", VALIDATING: "ValidatingWebhookConfiguration"}
_TIME_LIMIT = 20.0
_numbers = itertools.count(1)
_VOLATILE = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d{2,5}"), r"\1:PORT"),
)


def json_patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """The response of a webhook that changes the object."""
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


class Bench:
    """One server under test. Objects live in a namespace of its own, and webhooks see that one alone."""

    def __init__(self, server: Environment, receiver: WebhookReceiver) -> None:
        self.server = server
        self.receiver = receiver
        self.namespace = server.create_namespace("hooks")
        self.path = f"/api/v1/namespaces/{self.namespace}"
        self._configurations: list[str] = []
        # What controllers put into a new namespace is not part of a scenario.
        self.wait_for(f"{self.path}/configmaps/kube-root-ca.crt")
        self.wait_for(f"{self.path}/serviceaccounts/default")

    @property
    def is_real(self) -> bool:
        return self.server.backend == "real"

    def close(self) -> None:
        for path in self._configurations:
            self.request("DELETE", path)
        self.receiver.answers.clear()
        self.server.delete_namespace(self.namespace)

    # Requests

    def request(self, method: str, path: str, body: Any = None, content_type: str = "") -> dict[str, Any]:
        """What the server answers: code, body, warnings, Retry-After."""
        if self.is_real and method in {"PUT", "PATCH", "DELETE"}:
            self._wait_for_watch_cache(urlsplit(path).path)
        answer, raw = self._exchange(method, path, body, content_type)
        try:
            shown = json.loads(raw)
        except ValueError:
            shown = raw.decode("utf-8", "replace")
        warnings = sorted(answer.headers.get_all("Warning") or [])
        return self.cleaned(
            {
                "code": answer.status,
                "body": shown,
                "warnings": warnings,
                "retryAfter": answer.headers.get("Retry-After"),
            }
        )

    def _exchange(
        self, method: str, path: str, body: Any = None, content_type: str = ""
    ) -> tuple[http.client.HTTPResponse, bytes]:
        connection = self.server.connection
        parts = urlsplit(connection.url)
        opened = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=connection.tls, timeout=120)
        try:
            headers = dict(connection.headers)
            if body is not None:
                headers["Content-Type"] = content_type or "application/json"
            opened.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            answer = opened.getresponse()
            return answer, answer.read()
        finally:
            opened.close()

    def _wait_for_watch_cache(self, path: str) -> None:
        """Wait until kube-apiserver's watch cache holds what etcd holds.

        A change starts from the cached object. If that object is stale, the server calls the webhooks a second time.
        What cannot be read (its conversion fails) cannot be compared.
        """
        end = time.monotonic() + _TIME_LIMIT
        while (
            None not in (versions := (self._versions(path), self._versions(f"{path}?resourceVersion=0")))
            and versions[0] != versions[1]
        ):
            assert time.monotonic() < end, f"etcd and the watch cache hold {versions}"
            time.sleep(0.01)

    def _versions(self, path: str) -> list[tuple[str, str]] | None:
        """The UID and the resource version of each object at a path; None when they cannot be read."""
        answer, raw = self._exchange("GET", path)
        if answer.status != 200:
            return [] if answer.status == 404 else None
        body = json.loads(raw)
        found = [each["metadata"] for each in body.get("items", [body])]
        return sorted((each.get("uid", ""), each.get("resourceVersion", "")) for each in found)

    def post(self, path: str, body: Any) -> dict[str, Any]:
        return self.request("POST", path, body)

    def patch(self, path: str, body: Any, kind: str = "merge-patch+json") -> dict[str, Any]:
        return self.request("PATCH", path, body, f"application/{kind}")

    def config_map(self, name: str = "", **metadata: Any) -> dict[str, Any]:
        """Create a ConfigMap."""
        name = name or f"c{next(_numbers)}"
        answer = self.post(f"{self.path}/configmaps", {"metadata": {"name": name, **metadata}, "data": {"a": "b"}})
        return json.loads(json.dumps(answer).replace(f'"{name}"', '"NAME"').replace(f'\\"{name}\\"', '\\"NAME\\"'))

    def wait_for(self, path: str, condition: Callable[[dict[str, Any]], Any] = bool) -> None:
        """Wait until an object is there, and as it should be."""
        end = time.monotonic() + _TIME_LIMIT
        while True:
            answer = self.request("GET", path)
            if answer["code"] == 200 and condition(answer["body"]):
                return
            assert time.monotonic() < end, answer
            time.sleep(0.02)

    # Webhooks

    def webhook(self, path: str = "/hook", name: str = "hook.example.com", **fields: Any) -> dict[str, Any]:
        """An entry of a configuration, for ConfigMaps of the bench's namespace unless `fields` say otherwise."""
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}
        entry = {
            "name": name,
            "clientConfig": self.receiver.client(path),
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            **fields,
        }
        return {key: value for key, value in entry.items() if value is not None}

    def rule(self, *resources: str, groups: tuple[str, ...] = ("*",), **fields: Any) -> list[dict[str, Any]]:
        """The `rules` for these resources."""
        rule = {"apiGroups": list(groups), "apiVersions": ["*"], "operations": ["*"], "resources": list(resources)}
        return [{**rule, **fields}]

    def register(self, plural: str, *entries: dict[str, Any], name: str = "") -> None:
        """Create a configuration, and wait until the server acts on it: it carries a probe of its own, as its first entry."""
        name = f"{name}{self.namespace}-{next(_numbers)}"
        probe = self.webhook(f"/probe/{name}", "probe.example.com", rules=self.rule("secrets"), failurePolicy="Ignore")
        body = {"metadata": {"name": name}, "webhooks": [probe, *entries]}
        answer = self.post(f"{ADMISSION}/{plural}", body)
        assert answer["code"] == 201, answer
        self._configurations.append(f"{ADMISSION}/{plural}/{name}")
        end = time.monotonic() + _TIME_LIMIT
        while not self.receiver.at(f"/probe/{name}"):
            assert time.monotonic() < end, "the server does not act on the configuration"
            self.post(f"{self.path}/secrets?dryRun=All", {"metadata": {"name": "probe"}})
            if self.is_real:
                time.sleep(0.05)
        self.receiver.received.clear()

    def unregister(self) -> None:
        """Delete what was registered, and wait until the server forgets it."""
        names = [path.rpartition("/")[2] for path in self._configurations]
        for path in self._configurations:
            self.request("DELETE", path)
        self._configurations.clear()
        end = time.monotonic() + _TIME_LIMIT
        while True:
            self.receiver.received.clear()
            self.post(f"{self.path}/secrets?dryRun=All", {"metadata": {"name": "probe"}})
            if not any(self.receiver.at(f"/probe/{name}") for name in names):
                break
            assert time.monotonic() < end, "the server still acts on the configuration"
            time.sleep(0.05)
        self.receiver.received.clear()

    def answer(self, answer: Answer, path: str = "/hook") -> None:
        self.receiver.answers[path] = answer

    def reviews(self, path: str = "/hook") -> list[dict[str, Any]]:
        """The reviews that came to a path since the last look."""
        found = self.receiver.at(path)
        self.receiver.received[:] = [one for one in self.receiver.received if one.path != path]
        return [self.cleaned(_shown(one)) for one in found]

    def paths(self) -> list[str]:
        """Which webhooks were called, in order, since the last look."""
        found = [one.path for one in self.receiver.received if not one.path.startswith("/probe/")]
        self.receiver.received.clear()
        return found

    def cleaned(self, value: Any) -> Any:
        """The value without what differs from run to run."""
        text = json.dumps(_without_managed_fields(value), sort_keys=True)
        text = text.replace(self.namespace, "NAMESPACE")
        text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "N"', text)
        for pattern, word in _VOLATILE:
            text = pattern.sub(word, text)
        return json.loads(text)


def _shown(one: Received) -> dict[str, Any]:
    body = json.loads(json.dumps(one.body))
    user = body["request"].pop("userInfo", {})
    body["request"]["groups"] = user.get("groups")
    return {"timeout": one.query.get("timeout"), "agent": one.headers.get("User-Agent"), **body}


def _without_managed_fields(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_managed_fields(item) for key, item in value.items() if key != "managedFields"}
    if isinstance(value, list):
        return [_without_managed_fields(item) for item in value]
    return value


__all__ = ["ADMISSION", "MUTATING", "VALIDATING", "Bench", "WebhookReceiver", "allow", "json_patch"]
