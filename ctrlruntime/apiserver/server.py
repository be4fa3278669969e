"""The server: store, registry, application, controllers and the listening socket, started and stopped together."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

from aiohttp import web

from ctrlruntime.apiserver import controllers
from ctrlruntime.apiserver.authentication import AUTHENTICATED, Authenticator
from ctrlruntime.apiserver.authorization import RBAC, User, bootstrap
from ctrlruntime.apiserver.discovery import Discovery
from ctrlruntime.apiserver.faults import Faults
from ctrlruntime.apiserver.http.application import BODY_LIMIT, Application
from ctrlruntime.apiserver.interfaces import Controller, Document
from ctrlruntime.apiserver.options import Options
from ctrlruntime.apiserver.registry import Registry, WriteOptions
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.certificates import Authority, KeyPair, make_authority
from ctrlruntime.errors import ConfigError
from ctrlruntime.log import get_logger

_HOST = "127.0.0.1"
_NAMES = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "::1")
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_WORKLOADS = frozenset({"deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob", "endpointslice",
                        "node", "scheduler", "kubelet"})  # fmt: skip
_log = get_logger("apiserver")


class APIServer:
    """An API server in this process, on 127.0.0.1 over TLS. Start and stop it on one event loop."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.admin_token = self.options.admin_token or secrets.token_urlsafe(24)
        self.store = Store(history=self.options.history)
        self.registry = Registry(self.store)
        """The inside door (`API`)."""
        self.faults = Faults(self.store)
        self.port = self.options.port
        self._secret = secrets.token_bytes(32)
        self._authenticator = Authenticator(self.admin_token, self._secret)
        self._rbac = RBAC(self.registry)
        self._authority: Authority | None = None
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        return f"https://{_HOST}:{self.port}"

    @property
    def ca_pem(self) -> bytes:
        """The certificate that clients trust, PEM."""
        return self._made_authority().pem

    async def start(self) -> None:
        """Listen and serve; returns when the server answers. Raises: ConfigError when the port is taken."""
        listener = self._listen()
        try:
            await self._serve(listener)
        except BaseException:
            listener.close()
            raise
        self._start_controllers()

    async def _serve(self, listener: socket.socket) -> None:
        self._bootstrap()
        self._rbac_follows()
        application = Application(
            self.registry,
            self._authenticator,
            self._rbac,
            Discovery(self.registry, f"{_HOST}:{self.port}"),
            self.faults,
            allows_all=self.options.authorization == "always-allow",
            secret=self._secret,
            bookmark_interval=self.options.bookmark_interval,
        )
        loop = asyncio.get_running_loop()

        def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT + 1)

        self._server = web.Server(
            application.handle,
            request_factory=make_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=3600.0,
            max_line_size=65536,
            max_field_size=65536,
        )
        self._runner = web.ServerRunner(self._server, handle_signals=False, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.SockSite(self._runner, listener, ssl_context=self._tls(), backlog=512)
        await site.start()

    async def stop(self) -> None:
        """End watches, controllers and connections, and free the port."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for table in self.store.tables():
            table.close_subscriptions()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, user: str = "", groups: tuple[str, ...] = ()) -> str:
        """Return a kubeconfig (JSON, which is YAML) for the admin's token, or for a client certificate of `user` and `groups`."""
        credentials: Document = {"token": self.admin_token}
        if user:
            pair = self.client_pair(user, groups)
            credentials = {
                "client-certificate-data": base64.b64encode(pair.certificate).decode(),
                "client-key-data": base64.b64encode(pair.key).decode(),
            }
        name = user or "admin"
        authority = base64.b64encode(self.ca_pem).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "embedded", "cluster": {"server": self.url, "certificate-authority-data": authority}}
            ],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": name}}],
            "current-context": "embedded",
        }
        return json.dumps(config, indent=2) + "\n"

    def write_kubeconfig(self, path: str | os.PathLike[str], user: str = "", groups: tuple[str, ...] = ()) -> None:
        """Write a kubeconfig that only its owner can read (mode 0600)."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(self.kubeconfig(user, groups))
        temporary.replace(target)

    def client_pair(self, user: str, groups: tuple[str, ...] = ()) -> KeyPair:
        """Return a client certificate and key that authenticate as `user` in `groups`."""
        return self._made_authority().client(user, groups)

    def add_token(self, token: str, user: str, groups: tuple[str, ...] = ()) -> None:
        """Accept a bearer token for a user."""
        self._authenticator.tokens[token] = User(user, (*groups, AUTHENTICATED))

    def remove_token(self, token: str) -> None:
        """Refuse a bearer token from now on: its next request gets 401."""
        self._authenticator.tokens.pop(token, None)

    # Parts of the start

    def _made_authority(self) -> Authority:
        if self._authority is None:
            self._authority = make_authority("ctrlruntime-embedded-ca")
        return self._authority

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, self.options.port))
        except OSError as error:
            listener.close()
            raise ConfigError(
                f"cannot listen on {_HOST}:{self.options.port}: {error.strerror}; choose another --port, or 0 for a free one"
            ) from error
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        return listener

    def _tls(self) -> ssl.SSLContext:
        authority = self._made_authority()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=authority.pem.decode())
        pair = authority.server(_NAMES)
        with tempfile.NamedTemporaryFile() as file:  # the ssl module reads keys from files only
            file.write(pair.certificate + pair.key)
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _bootstrap(self) -> None:
        """Make what every cluster has before anybody asks."""
        for name in _NAMESPACES:
            self._put("", "namespaces", {"metadata": {"name": name}})
        if self.options.authorization == "rbac":
            for plural, document in bootstrap():
                self._put("rbac.authorization.k8s.io", plural, document)
        for name, value in (("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)):
            self._put("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": name}, "value": value})
        port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": self.port}
        labels = {"component": "apiserver", "provider": "kubernetes"}
        spec = {"clusterIP": "10.0.0.1", "ports": [port]}
        metadata = {"name": "kubernetes", "namespace": "default", "labels": labels}
        self._put("", "services", {"metadata": metadata, "spec": spec})

    def _put(self, group: str, plural: str, document: Document) -> None:
        resource = self.registry.canonical(group, plural)
        whole = {**document, "kind": resource.kind, "apiVersion": resource.api_version}
        namespace = document["metadata"].get("namespace", "")
        self.registry.writer.create(resource, namespace, whole, WriteOptions())

    def _rbac_follows(self) -> None:
        if self.options.authorization != "rbac":
            return
        for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
            # Inside the write, so the answer to a binding's create already finds it in force.
            self.store.table("rbac.authorization.k8s.io", plural).listen(lambda _change: self._rbac.invalidate())
        self._tasks.append(asyncio.create_task(self._rbac.run(), name="rbac"))

    def _start_controllers(self) -> None:
        options = self.options
        names = None if options.controllers is None else list(options.controllers)
        chosen = controllers.build(
            names,
            pod_ready_delay=options.pod_ready_delay,
            nodes=options.nodes and options.workloads,
            root_ca=self.ca_pem.decode(),
        )
        for controller in chosen:
            if not options.workloads and controller.name in _WORKLOADS:
                continue
            self._tasks.append(asyncio.create_task(self._run_controller(controller), name=controller.name))

    async def _run_controller(self, controller: Controller) -> None:
        try:
            await controller.run(self.registry)
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - one controller must not take the server with it
            _log.exception("a simulated controller ended", controller=controller.name)
