"""Who asks in these tests: requests of one identity, and what they send again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ctrlruntime.errors import APIStatusError
from ctrlruntime.testing.connection import Connection

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
REVIEWS = f"{AUTHORIZATION}/subjectaccessreviews"
MERGE = "application/merge-patch+json"


@dataclass
class Answer:
    """`reason` is empty for a success; `message` of a failure, `body` of either."""

    reason: str
    message: str
    body: dict[str, Any]
    code: int = 0

    @property
    def outcome(self) -> tuple[str, str]:
        return self.reason, self.message

    @property
    def details(self) -> dict[str, Any]:
        return {key: value for key, value in (self.body.get("details") or {}).items() if key != "causes"}

    @property
    def causes(self) -> list[tuple[str, str]]:
        return [(cause["field"], cause["message"]) for cause in (self.body.get("details") or {}).get("causes", [])]

    @property
    def status(self) -> dict[str, Any]:
        return self.body["status"]


class Caller:
    """Requests of one identity."""

    def __init__(self, kubeconfig: str, token: str | None = None, headers: Sequence[tuple[str, str]] = ()) -> None:
        config = yaml.safe_load(kubeconfig)
        if token is not None:
            config["users"][0]["user"] = {"token": token} if token else {}
        self._config = config
        self._connection = Connection(config)
        replaced = {name for name, _ in headers if name == "Accept"}
        kept = [(name, value) for name, value in self._connection.headers if name not in replaced]
        self._connection.headers = [*kept, *headers]

    def ask(self, method: str, path: str, body: Any = None, *, content_type: str = "") -> Answer:
        try:
            found = self._connection.request(method, path, body, content_type=content_type)
        except APIStatusError as error:
            body = dict(error.status)
            return Answer(
                str(body.get("reason", "")) or str(error.code), str(body.get("message", "")), body, error.code
            )
        return Answer("", "", found)

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, body: Any) -> Answer:
        return self.ask("POST", path, body)

    def made(self, path: str, body: Any) -> dict[str, Any]:
        answer = self.post(path, body)
        assert not answer.reason, answer.message
        return answer.body

    def as_other(self, name: str = "", groups: Sequence[str] = (), **more: str) -> Caller:
        headers = [("Impersonate-User", name)] if name else []
        headers += [("Impersonate-Group", group) for group in groups]
        headers += [(f"Impersonate-{key.replace('_', '-')}", value) for key, value in more.items()]
        return Caller(yaml.safe_dump(self._config), headers=headers)


def may(admin: Caller, spec: dict[str, Any]) -> bool:
    return bool(admin.made(REVIEWS, {"spec": spec})["status"]["allowed"])


def bound(name: str, ref: dict[str, Any], *subjects: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)}


def rule(
    verbs: Sequence[str], groups: Sequence[str] = ("",), resources: Sequence[str] = ("pods",), **more: Any
) -> dict:
    return {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources), **more}


def whoami(caller: Caller) -> dict[str, Any]:
    return caller.made(f"{AUTHENTICATION}/selfsubjectreviews", {})["status"]["userInfo"]


def has_controller_manager(admin: Caller) -> bool:
    return not admin.get("/api/v1/namespaces/default/configmaps/kube-root-ca.crt").reason


def token_of(admin: Caller, path: str, **spec: Any) -> str:
    return admin.made(path, {"spec": spec})["status"]["token"]


def review(admin: Caller, token: str, *audiences: str) -> dict[str, Any]:
    spec = {"token": token, **({"audiences": list(audiences)} if audiences else {})}
    return admin.made(f"{AUTHENTICATION}/tokenreviews", {"spec": spec})["status"]
