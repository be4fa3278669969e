"""Plain HTTP requests to an API server, from a kubeconfig.

`Environment` uses it to wait for a server, install CRDs and create namespaces. It uses the standard library and not this package's client,
so that a bug in the client does not stop the tests that would show it. It blocks: call it before the loop runs, or in a thread.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import select
import ssl
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from ctrlruntime.errors import APIStatusError, ConfigError, TransportError
from ctrlruntime.tls import client_context, load_pair

__all__ = ["Connection"]

_TIMEOUT = 30.0  # seconds for one request
_LONGEST_IDLE = 30.0  # seconds; load balancers forget a connection after a minute or more, and some do not close it


class Connection:
    """Requests to one API server.

    `config` is a kubeconfig as a dictionary; its current context is used. A connection stays open for the next request, because a TLS
    handshake takes ten times the processor time of a request.
    """

    def __init__(self, config: Mapping[str, Any], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Each with the time of its last response: one for each thread that sent requests at the same time.
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        cluster, user = _current(config)
        self.url = str(cluster.get("server", "")).rstrip("/")
        if not self.url:
            raise ConfigError("the kubeconfig's current context names no server")
        self._parts = urlsplit(self.url)
        self.headers = [("Accept", "application/json")]  # pairs: one user may be impersonated with several groups
        credential = {**user, **_run_exec_plugin(user)}
        self._authorize(credential)
        try:
            self.tls = _tls_context(cluster, credential) if self._parts.scheme == "https" else None
        except (OSError, ValueError) as error:
            raise ConfigError(f"the certificates of the kubeconfig cannot be used: {error}") from error
        self.server_name: str | None = cluster.get("tls-server-name")

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections. A later request opens a new one."""
        while self._idle:
            self._idle.pop()[0].close()

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "") -> dict[str, Any]:
        """Send one request and return the JSON of the response (``{"text": …}`` if it is not JSON).

        Raises: APIStatusError (by its reason) if the server rejects it, TransportError without a response.
        """
        data = None if body is None else json.dumps(body).encode()
        sent = {} if data is None else {"Content-Type": content_type or "application/json"}
        status, _, text = self.exchange(method, path, data, sent)
        if status >= 400:
            raise APIStatusError.from_response(status, text)
        try:
            return cast("dict[str, Any]", json.loads(text))
        except ValueError:
            return {"text": text.decode("utf-8", "replace")}

    def exchange(
        self, method: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send one request and return status, headers and body, also of a failure.

        `headers` are added to those of every request, or replace them. Raises: TransportError without a response.
        """
        own = dict(headers or {})
        connection, is_answered = self._take_idle() or self._open(), False
        try:
            connection.putrequest(method, self._parts.path + path)
            for name, value in (*(pair for pair in self.headers if pair[0] not in own), *own.items()):
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            text = answer.read()
            is_answered = True
        except (OSError, http.client.HTTPException) as error:
            raise TransportError(f"{method} {self.url}{path}: {error or type(error).__name__}") from error
        finally:
            if is_answered and connection.sock is not None:  # it is None when the server wants to close
                self._idle.append((connection, self._clock()))
            else:
                connection.close()
        return answer.status, answer.headers, text

    def _take_idle(self) -> http.client.HTTPConnection | None:
        """Return a connection that was used recently and that the server has not closed."""
        while True:
            try:
                connection, last_used = self._idle.pop()
            except IndexError:  # another thread may have taken the last one
                return None
            waiting = select.poll()
            waiting.register(connection.sock, select.POLLIN)
            is_open = not waiting.poll(0)  # nothing to read: no end either
            if is_open and self._clock() - last_used < _LONGEST_IDLE:
                return connection
            connection.close()

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self.tls is None:
            return http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
        if self.server_name:
            return _NamedHTTPSConnection(host, port, timeout=_TIMEOUT, context=self.tls, name=self.server_name)
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT, context=self.tls)

    def _authorize(self, user: Mapping[str, Any]) -> None:
        if token := user.get("token"):
            self.headers.append(("Authorization", f"Bearer {token}"))
        elif path := user.get("tokenFile"):
            self.headers.append(("Authorization", f"Bearer {Path(path).read_text().strip()}"))
        elif "username" in user:
            pair = f"{user['username']}:{user.get('password', '')}".encode()
            self.headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        if "as" in user:
            self.headers.append(("Impersonate-User", str(user["as"])))
        for group in cast("list[str]", user.get("as-groups") or []):
            self.headers.append(("Impersonate-Group", group))


class _NamedHTTPSConnection(http.client.HTTPSConnection):
    """HTTPS to an address whose certificate has another name."""

    def __init__(self, host: str, port: int | None, *, timeout: float, context: ssl.SSLContext, name: str) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self.tls, self._name = context, name

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self.tls.wrap_socket(self.sock, server_hostname=self._name)


def _current(config: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cluster and the user of the current context."""

    def named(section: str, inner: str, name: str) -> dict[str, Any]:
        for entry in cast("list[dict[str, Any]]", config.get(section) or []):
            if entry.get("name") == name:
                return cast("dict[str, Any]", entry.get(inner) or {})
        raise ConfigError(f"the kubeconfig has no {inner} {name!r}; its {section} are named otherwise")

    name = str(config.get("current-context") or "")
    if not name:
        raise ConfigError("the kubeconfig names no current-context; set one with `kubectl config use-context NAME`")
    context = named("contexts", "context", name)
    user = str(context.get("user") or "")
    return named("clusters", "cluster", str(context.get("cluster") or "")), named("users", "user", user) if user else {}


def _tls_context(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> ssl.SSLContext:
    authority = _content(cluster, "certificate-authority")
    context = client_context(authority, insecure=bool(cluster.get("insecure-skip-tls-verify")))
    certificate, key = _content(user, "client-certificate"), _content(user, "client-key")
    if certificate is not None:
        load_pair(context, certificate, key or certificate)  # one file may hold both
    return context


def _content(part: Mapping[str, Any], name: str) -> bytes | None:
    if data := part.get(f"{name}-data"):
        return base64.b64decode(data)
    return Path(str(part[name])).read_bytes() if part.get(name) else None


def _run_exec_plugin(user: Mapping[str, Any]) -> dict[str, Any]:
    """Run the user's credential plugin, if there is one, and return what it gives as kubeconfig fields."""
    plugin = cast("dict[str, Any] | None", user.get("exec"))
    if not plugin:
        return {}
    info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": {"interactive": False}}
    variables = {str(e["name"]): str(e["value"]) for e in cast("list[dict[str, Any]]", plugin.get("env") or [])}
    command = [str(plugin.get("command")), *map(str, plugin.get("args") or [])]
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig is the user's own
            command,
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            check=True,
            capture_output=True,
            timeout=60,
        )
        status = cast("dict[str, Any]", json.loads(done.stdout)["status"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise ConfigError(f"the kubeconfig's credential plugin {command[0]!r} gave no credential: {error}") from error
    given: dict[str, Any] = {"token": status["token"]} if status.get("token") else {}
    for field in ("clientCertificateData", "clientKeyData"):
        if status.get(field):
            name = "client-certificate-data" if field == "clientCertificateData" else "client-key-data"
            given[name] = base64.b64encode(str(status[field]).encode()).decode()
    return given
