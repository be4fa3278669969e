"""One embedded server per test module, and a plain synchronous HTTP client that hides nothing."""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import pytest

from ctrlruntime.apiserver import Options, ServerThread

TIME_LIMIT = 10.0


@dataclass
class Answer:
    code: int
    headers: http.client.HTTPMessage
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def reason(self) -> str:
        return self.body.get("reason", "")

    @property
    def message(self) -> str:
        return self.body["message"]

    @property
    def causes(self) -> list[tuple[str, str]]:
        return [(cause["field"], cause["reason"]) for cause in self.body["details"].get("causes", [])]

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []

    @property
    def version(self) -> str:
        return self.body["metadata"]["resourceVersion"]


class Frames:
    """The frames of one watch, in order."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.code = response.status
        self.server = response.headers.get("Server")

    def next(self) -> dict[str, Any] | None:
        """The next frame; None when the watch has ended."""
        line = self._response.readline()
        return json.loads(line) if line else None

    def take(self, count: int) -> list[tuple[str, str]]:
        frames = [self.next() for _ in range(count)]
        return [(frame["type"], frame["object"]["metadata"].get("name", "")) for frame in frames]

    def rest(self) -> list[dict[str, Any]]:
        return list(iter(self.next, None))


class Client:
    """Requests of one user, over one connection."""

    def __init__(self, thread: ServerThread, token: str | None = None, context: ssl.SSLContext | None = None) -> None:
        self.thread = thread
        self.server = thread.server
        self._token = thread.server.admin_token if token is None else token
        self._context = context or ssl.create_default_context(cadata=thread.server.ca_pem.decode())
        self._connection = self._connect()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self.server.port, context=self._context, timeout=TIME_LIMIT)

    def close(self) -> None:
        self._connection.close()

    def as_user(self, token: str) -> Client:
        return Client(self.thread, token)

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        return {**({"Authorization": f"Bearer {self._token}"} if self._token else {}), **headers}

    def request(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, **query: Any
    ) -> Answer:
        full = f"{path}?{urlencode(query, doseq=True)}" if query else path
        raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        self._connection.request(method, full, raw, self._headers(headers or {}))
        response = self._connection.getresponse()
        return Answer(response.status, response.headers, response.read())

    def get(self, path: str, *, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        return self.request("GET", path, headers=headers, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("POST", path, body, headers={"Content-Type": "application/json"}, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        return self.request("PUT", path, body, headers={"Content-Type": "application/json"}, **query)

    def patch(self, path: str, body: Any, kind: str = "merge-patch", **query: Any) -> Answer:
        return self.request("PATCH", path, body, headers={"Content-Type": f"application/{kind}+json"}, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return self.request("DELETE", path, body, **query)

    def made(self, path: str, body: Any, **query: Any) -> dict[str, Any]:
        answer = self.post(path, body, **query)
        assert answer.code == 201, answer.raw
        return answer.body

    @contextmanager
    def watch(self, path: str, *, headers: dict[str, str] | None = None, **query: Any) -> Iterator[Frames]:
        connection = self._connect()
        try:
            connection.request(
                "GET", f"{path}?{urlencode({'watch': '1', **query})}", headers=self._headers(headers or {})
            )
            yield Frames(connection.getresponse())
        finally:
            connection.close()

    def call(self, function: Any) -> Any:
        """Run a function on the server's loop."""
        return self.thread.call(function)


@pytest.fixture(scope="module")
def server_options() -> Options:
    return Options(controllers=[])


@pytest.fixture(scope="module")
def thread(server_options: Options) -> Iterator[ServerThread]:
    with ServerThread(server_options) as running:
        yield running


@pytest.fixture
def api(thread: ServerThread) -> Iterator[Client]:
    client = Client(thread)
    yield client
    client.close()


_names = (f"t{number}" for number in itertools.count(1))


@pytest.fixture
def ns(api: Client) -> str:
    """A new namespace; the value is its path below a group version (`namespaces/t1`)."""
    name = next(_names)
    api.made("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"namespaces/{name}"


GROUP = "stable.example.com"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 0},
                "mode": {"type": "string", "enum": ["A", "B"], "default": "A"},
                "image": {"type": "string", "minLength": 1, "maxLength": 10},
                "replicas": {"type": "integer"},
                "selector": {"type": "string"},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "phase": {"type": "string"},
                "selector": {"type": "string"},
            },
        },
    },
}


def definition(plural: str, kind: str, schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    """A CustomResourceDefinition with one version v1."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": version.pop("scope", "Namespaced"),
            "names": {"plural": plural, "kind": kind, **version.pop("names", {})},
            "versions": version.pop("versions", None)
            or [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema or SCHEMA},
                    "subresources": {"status": {}},
                    **version,
                }
            ],
        },
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def widgets(thread: ServerThread) -> str:
    """The kind Widget; the value is its group version path."""
    client = Client(thread)
    client.made(DEFINITIONS, definition("widgets", "Widget"))
    client.close()
    return f"/apis/{GROUP}/v1"


def widget(name: str, size: int = 1, **extra: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}, **extra}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


@pytest.fixture(scope="session")
def make() -> Any:
    """Builders of request bodies: make.widget(...), make.config_map(...), make.deployment(...), make.definition(...)."""

    class Make:
        widget = staticmethod(widget)
        config_map = staticmethod(config_map)
        deployment = staticmethod(deployment)
        definition = staticmethod(definition)
        group = GROUP
        definitions = DEFINITIONS
        client = Client

    return Make
