"""The server: store, registry, application, controllers and the listening socket, started and stopped together."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import json
import os
import socket
import ssl
import time
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from typing_extensions import override

from ctrlruntime.apiserver.admission import AdmissionChain, MutatingPolicies, ValidatingPolicies, WebhookAdmission
from ctrlruntime.apiserver.admission.plugins import PLUGINS
from ctrlruntime.apiserver.apply import ManagedFieldsTracker
from ctrlruntime.apiserver.authentication import AccountTokens, Authenticator
from ctrlruntime.apiserver.authorization import MASTERS, RBAC, AuthorizationAttributes, Escalation, User, bootstrap
from ctrlruntime.apiserver.containers import Containers
from ctrlruntime.apiserver.discovery import Discovery
from ctrlruntime.apiserver.faults import Faults
from ctrlruntime.apiserver.http.application import BODY_LIMIT, Application
from ctrlruntime.apiserver.interfaces import Admission, Controller, allow_all
from ctrlruntime.apiserver.interfaces import UserIdentity as Caller
from ctrlruntime.apiserver.options import ADMISSION_PLUGINS, Options, TokenUser
from ctrlruntime.apiserver.registry import Registry, WriteOptions
from ctrlruntime.apiserver.registry.apiservices import APIServices
from ctrlruntime.apiserver.registry.conditions import Conditions
from ctrlruntime.apiserver.registry.metrics import READER, serve_metrics
from ctrlruntime.apiserver.registry.restoration import Beginning, clear, restore
from ctrlruntime.apiserver.server_keys import ServerKeys
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.apiserver.storage.persistence import DataFile
from ctrlruntime.apiserver.webhook_client import WebhookClient
from ctrlruntime.certificates import KeyPair, SigningRequest
from ctrlruntime.errors import ConfigError
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document
from ctrlruntime.tls import load_pair, server_context, trust_clients

_NAMES = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "::1")
_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_log = get_logger("apiserver")


class _Request(web.BaseRequest):
    """Its answers have no `Server` header: kube-apiserver sends none, and aiohttp would tell its version and Python's."""

    @override
    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)


class APIServer:
    """An API server in this process, on 127.0.0.1 over TLS. Start and stop it on one event loop."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self._file = DataFile(options.data) if options.data is not None else None
        self._keys = ServerKeys(options, self._file)
        self.options = self._keys.fill(options)
        self.admin_token = self._keys.admin_token
        self.store = Store(history=self.options.history)
        self.registry = Registry(self.store)
        """The inside door (`API`)."""
        self._fields = self.registry.extensions.fields = ManagedFieldsTracker(self.registry)
        self.registry.leave_out(self.options.unserved)
        if self.options.metrics:
            serve_metrics(self.registry, time.time)
        self.registry.features = self.options.features
        self.registry.extensions.addresses.network = ipaddress.IPv4Network(self.options.service_network)
        self.registry.extensions.plugins = self.options.acting_admission
        self._api_services = APIServices(self.registry)
        self._conditions = Conditions(self.registry)
        self._webhooks = WebhookClient(self.options.webhook_services)
        self._webhooks.find_service = partial(self.registry.get, "", "services")
        self.registry.definitions.caller = self._webhooks
        self.faults = Faults(self.store)
        self.containers = Containers()
        self.port = self.options.port
        accounts = AccountTokens(
            self.options.service_account_issuer,
            self.registry,
            self.options.service_account_signing_key,
            issuers=self.options.service_account_issuers,
            keys=self.options.service_account_keys,
        )
        self._authenticator = Authenticator(accounts, self.options.tokens)
        self._authenticator.add_token(self.admin_token, TokenUser("kubernetes-admin", groups=(MASTERS,)))
        self._rbac = RBAC(self.registry)
        self._context: ssl.SSLContext | None = None
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._controllers: list[asyncio.Task[None]] = []
        self._beginning: Beginning | None = None
        self._resetting = asyncio.Lock()

    @property
    def url(self) -> str:
        address = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.options.address, self.options.address)  # noqa: S104 - compared
        return f"https://[{address}]:{self.port}" if ":" in address else f"https://{address}:{self.port}"

    @property
    def ca_pem(self) -> bytes:
        """The certificate that clients trust, PEM."""
        pair = self.options.serving_pair
        return pair.certificate if pair is not None else self._keys.authority.pem

    async def start(self) -> None:
        """Listen and serve; returns when the server answers.

        Raises: ConfigError if the port is in use, the data file cannot be used, or a controller does not exist.
        """
        try:
            listener = self._listen()
            try:
                await self._serve(listener)
            except BaseException:
                listener.close()
                raise
            self._start_controllers()
        except BaseException:
            await self.stop()
            raise

    async def _serve(self, listener: socket.socket) -> None:
        context = self._tls()
        self._begin()
        self._rbac_follows()
        self._api_services.follow()
        self._conditions.follow()
        self._admission_follows()
        application = Application(
            self.registry,
            self._authenticator,
            self._rbac,
            Discovery(self.registry, self.url.removeprefix("https://")),
            self.faults,
            self.containers,
            allows_all=self.options.authorization == "always-allow",
            bookmark_interval=self.options.bookmark_interval,
        )
        loop = asyncio.get_running_loop()

        def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> _Request:
            return _Request(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT + 1)

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
        site = web.SockSite(self._runner, listener, ssl_context=context, backlog=512)
        await site.start()

    async def stop(self) -> None:
        """End watches, controllers and connections, free the port, and close the data file.

        Raises: ConfigError when the data file could not take everything.
        """
        await _end(self._controllers)
        await _end(self._tasks)
        for table in self.store.tables():
            table.close_subscriptions()
        if self._runner is not None and self._server is not None:
            transports = [each.transport for each in self._server.connections]
            await self._runner.cleanup()
            self._runner = None
            for transport in transports:
                if transport is not None:  # it would wait for the client to end the TLS session
                    transport.abort()
            await asyncio.sleep(0)  # in which the loop closes their sockets
        await self._webhooks.close()
        if self._file is not None:
            self._file.close(self.store.revision)

    async def reset(self) -> None:
        """Go back to the state right after the start, in a few milliseconds: for the next test.

        All objects go, also those an earlier run left in the data file, and what the server itself makes at its start is there again.
        Custom kinds are no longer served, watches end (and find their version too old), faults are cleared, the controllers start again.
        Versions keep increasing. Connections, tokens and client certificates stay. A running request may still write after it.
        """
        async with self._resetting:
            await _end(self._controllers)
            self.faults.clear()
            self.containers.clear()
            if self._beginning is not None:
                self._beginning.bring_back()
            else:  # the start took over what an earlier run left
                clear(self.registry)
                self._bootstrap()
                self._beginning = Beginning(self.registry)
            self._start_controllers()

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
        self._trust_own_authority()
        return self._keys.authority.client(user, groups)

    def add_token(self, token: str, user: str, groups: tuple[str, ...] = ()) -> None:
        """Accept a bearer token for a user."""
        self._authenticator.add_token(token, TokenUser(user, groups=groups))

    def remove_token(self, token: str) -> None:
        """Refuse a bearer token from now on: its next request gets 401."""
        self._authenticator.remove_token(token)

    def route_service(self, service: str, address: str) -> None:
        """Call webhooks that name a Service (`namespace/name:port`) at an address (`host:port`) from now on; an empty one forgets it.

        The certificate is still expected to be for `name.namespace.svc`.
        """
        if address:
            self._webhooks.services[service] = address
        else:
            self._webhooks.services.pop(service, None)

    # Parts of the start

    def _listen(self) -> socket.socket:
        listener = None
        if not self.options.port and self._keys.port:
            with contextlib.suppress(ConfigError):  # somebody else has it now: take a free one
                listener = self._bound(self._keys.port)
        if listener is None:
            listener = self._bound(self.options.port)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        return listener

    def _bound(self, port: int) -> socket.socket:
        address = self.options.address
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
        except OSError as error:
            listener.close()
            raise ConfigError(
                f"cannot listen on {address}:{port}: {error.strerror}. Use another --port, or 0 for a free one"
            ) from error
        return listener

    def _tls(self) -> ssl.SSLContext:
        context = self._context = server_context()
        context.verify_mode = ssl.CERT_OPTIONAL
        pair = self.options.serving_pair
        if self.options.client_ca:
            try:
                trust_clients(context, self.options.client_ca)
            except ValueError as error:
                raise ConfigError(f"cannot use the CA of client certificates: {error}") from error
        if pair is None:
            self._trust_own_authority()
            pair = self._keys.authority.server((*_NAMES, self.options.address))
        try:
            load_pair(context, pair.certificate, pair.key)
        except ValueError as error:
            raise ConfigError(f"cannot use the serving certificate and its key: {error}") from error
        return context

    def _sign(self, asked: SigningRequest, usages: Collection[str], *, lifetime: float, now: datetime) -> bytes:
        self._trust_own_authority()
        return self._keys.authority.sign(asked, usages, lifetime=lifetime, now=now)

    def _trust_own_authority(self) -> None:
        """Believe client certificates of our own authority. With a foreign serving pair it is not even made before somebody asks."""
        if self._context is not None:
            trust_clients(self._context, self._keys.authority.pem)

    def _begin(self) -> None:
        """Take over what an earlier run left, and make what is missing of the beginning."""
        restored = 0
        if self._file is not None:
            restored = restore(self.registry, self._file.objects(), self._file.revision)
            self._keys.remember_port(self.port)
            self.store.backing = self._file
        self._bootstrap()
        if not restored:
            self._beginning = Beginning(self.registry)

    def _bootstrap(self) -> None:
        """Make what every cluster has before anybody asks."""
        for name in _NAMESPACES:
            self._put("", "namespaces", {"metadata": {"name": name}})
        if self.options.authorization == "rbac":
            for plural, document in bootstrap():
                self._put("rbac.authorization.k8s.io", plural, document)
            if self.options.metrics:
                self._put("rbac.authorization.k8s.io", "clusterroles", READER)
        for name, value in (("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)):
            self._put("scheduling.k8s.io", "priorityclasses", {"metadata": {"name": name}, "value": value})
        port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": self.port}
        labels = {"component": "apiserver", "provider": "kubernetes"}
        address = str(self.registry.extensions.addresses.network[1])
        spec = {"clusterIP": address, "ports": [port], "ipFamilyPolicy": "SingleStack"}
        metadata = {"name": "kubernetes", "namespace": "default", "labels": labels}
        self._put("", "services", {"metadata": metadata, "spec": spec})
        self._api_services.install()

    def _put(self, group: str, plural: str, document: Document) -> None:
        resource = self.registry.canonical(group, plural)
        metadata = document["metadata"]
        if (metadata.get("namespace", ""), metadata["name"]) in self.store.table(group, plural).records:
            return  # an earlier run made it
        whole = {**document, "kind": resource.kind, "apiVersion": resource.api_version}
        namespace = document["metadata"].get("namespace", "")
        self.registry.writer.create_directly(resource, namespace, whole, WriteOptions(field_manager="kube-apiserver"))

    def _rbac_follows(self) -> None:
        if self.options.authorization != "rbac":
            return
        self.registry.extensions.escalation_check = Escalation(self._rbac)
        for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings"):
            # Inside the write, so the answer to a binding's create already finds it in force.
            self.store.table("rbac.authorization.k8s.io", plural).listen(lambda _change: self._rbac.invalidate())
        self._tasks.append(asyncio.create_task(self._rbac.run(), name="rbac"))

    def _admission_follows(self) -> None:
        acting = self.options.acting_admission
        decide = self._decide if self.options.authorization == "rbac" else allow_all
        self.registry.extensions.decide = decide
        webhooks = WebhookAdmission(
            self.registry,
            self._webhooks,
            mutates="MutatingAdmissionWebhook" in acting,
            validates="ValidatingAdmissionWebhook" in acting,
            decide=decide,
        )
        webhooks.follow()
        mutating = MutatingPolicies(self.registry, self._fields.type_of, decide=decide)
        if "MutatingAdmissionPolicy" in acting:
            mutating.follow()
        validating = ValidatingPolicies(self.registry, decide=decide)
        if "ValidatingAdmissionPolicy" in acting:
            validating.follow()
        made: dict[str, Admission] = {
            "MutatingAdmissionPolicy": mutating,
            "ValidatingAdmissionPolicy": validating,
            "ValidatingAdmissionWebhook": webhooks,  # of both kinds
            **{name: plugin(self.registry) for name, plugin in PLUGINS.items() if name in acting},
        }
        chain = AdmissionChain([made[name] for name in ADMISSION_PLUGINS if name in made])
        self.registry.extensions.admission = chain

    def _decide(self, user: Caller | None, asked: Mapping[str, str]) -> tuple[bool, str]:
        """Answer what a condition of a webhook or a plugin asks the authorizer (`interfaces.Decide`)."""
        parts = ("group", "resource", "subresource", "namespace", "name", "path")
        question = AuthorizationAttributes(
            asked["verb"], **{part: asked.get(part, "") for part in parts}, is_resource=not asked.get("path")
        )
        if account := asked.get("user"):
            namespace = account.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")  # upstream asks with no more
            return self._rbac.allowed(User(account, groups), question)
        if user is None:  # the server's own writes
            return True, ""
        return self._rbac.allowed(User(user.name, tuple(user.groups), user.uid), question)

    def _start_controllers(self) -> None:
        options = self.options
        if options.controllers is not None and not options.controllers:
            return
        from ctrlruntime.apiserver import controllers  # a tenth of the start of a server that has none

        names = None if options.controllers is None else list(options.controllers)
        chosen = controllers.build(
            names,
            pod_ready_delay=options.pod_ready_delay,
            event_ttl=options.event_ttl,
            nodes=options.nodes and options.workloads,
            root_ca=self.ca_pem.decode(),
            make_token=self._authenticator.accounts.make_legacy,
            sign=self._sign,
        )
        for controller in chosen:
            if not options.workloads and controller.name in {*controllers.WORKLOADS, *controllers.NODES}:
                continue
            self._controllers.append(asyncio.create_task(self._run_controller(controller), name=controller.name))

    async def _run_controller(self, controller: Controller) -> None:
        try:
            await controller.run(self.registry)
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - one controller must not take the server with it
            _log.exception("simulated controller failed", controller=controller.name)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
