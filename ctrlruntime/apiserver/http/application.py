"""The request pipeline: identity, permission, path, verb; one function from request to answer.

The order of the checks is kube-apiserver's, so the same error wins: 401, 403, 404 or 405, 406, 415, 400 or 422, then what the
registry says.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authentication import (
    ANONYMOUS,
    Authenticator,
    Impersonation,
    is_impersonating,
    is_token_after_spaces,
    wanted_user,
)
from ctrlruntime.apiserver.authorization import RBAC, User
from ctrlruntime.apiserver.containers import Containers
from ctrlruntime.apiserver.discovery import Discovery
from ctrlruntime.apiserver.encoding import as_written
from ctrlruntime.apiserver.faults import Faults
from ctrlruntime.apiserver.http.answers import add_warnings, answer, failure, headers_of, text
from ctrlruntime.apiserver.http.calls import Call, ResourcePath, resource_path, split_query
from ctrlruntime.apiserver.http.lists import list_body
from ctrlruntime.apiserver.http.negotiation import STREAMS, negotiate
from ctrlruntime.apiserver.http.objects import Objects
from ctrlruntime.apiserver.http.options import list_options
from ctrlruntime.apiserver.http.pages import Pages
from ctrlruntime.apiserver.http.port_forward import PortForward
from ctrlruntime.apiserver.http.reviews import REVIEWS, Reviews
from ctrlruntime.apiserver.http.streams import Streams
from ctrlruntime.apiserver.http.subresources import Subresources
from ctrlruntime.apiserver.http.tokens import Tokens
from ctrlruntime.apiserver.http.watches import Watch
from ctrlruntime.apiserver.interfaces import DEFINITIONS
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.apiserver.registry.schema_cache import LARGE, prepare
from ctrlruntime.apiserver.storage import Backing
from ctrlruntime.apiserver.yaml_reader import read_yaml
from ctrlruntime.errors import APIStatusError, BadRequest, NotAcceptable, RequestEntityTooLarge
from ctrlruntime.log import get_logger
from ctrlruntime.schema.undecodable import Undecodable

BODY_LIMIT = 3_145_728
_log = get_logger("apiserver")
_SPACES = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_PUBLIC = frozenset({"/healthz", "/livez", "/readyz"})


class Application:
    """Handles every request of the server."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticator,
        rbac: RBAC,
        discovery: Discovery,
        faults: Faults,
        containers: Containers,
        *,
        allows_all: bool,
        bookmark_interval: float,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._rbac = rbac
        self._faults = faults
        self._allows_all = allows_all
        self._bookmark_interval = bookmark_interval
        self._clock = clock
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._objects = Objects(registry)
        tokens = Tokens(registry, authenticator.accounts)
        self._pages = Pages(registry, discovery, tokens)
        self._subresources = Subresources(registry, self._objects, tokens)
        self._streams = Streams(registry, containers)
        self._port_forward = PortForward(registry, containers)
        self._impersonation = Impersonation(None if allows_all else rbac)
        self._reviews = Reviews(registry, rbac, authenticator, allows_all=allows_all)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; failures become Status bodies."""
        raw_path, _, raw_query = request.path_qs.partition("?")
        query, queries = split_query(raw_query) if raw_query else ({}, {})
        call = Call(request.method, raw_path.rstrip("/") or "/", query, queries, request.headers, ANONYMOUS)
        try:
            return await self._handle(request, call, raw_path)
        except _DeniedError as denied:
            response = failure(denied.status, call)
            response.headers["X-Content-Type-Options"] = "nosniff"
            return response
        except Undecodable as error:
            text = as_written(str(error), call.body)
            return failure(error if text == str(error) else BadRequest(text), call)
        except APIStatusError as error:
            return failure(error, call)
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must not look like a dead server
            _log.exception("request failed", method=request.method, path=request.path)
            return failure(APIStatusError.from_status(_internal(error)), call)

    async def _handle(self, request: web.BaseRequest, call: Call, raw_path: str) -> web.StreamResponse:
        method, path = call.method, call.path
        injected = self._faults.next_failure(method, raw_path)
        if injected is not None:
            return _injected(*injected)
        call.user = user = self._user(request, call)
        call.target = target = resource_path(path) if path.startswith("/api") else None
        if is_impersonating(request.headers):
            try:
                wanted = wanted_user(request.headers.items())
                if wanted is not None:
                    call.user = self._impersonation.assume(user, wanted, call.attributes())
            except APIStatusError as error:
                raise _DeniedError(error) from None
        self._authorize(call)
        if target is None:
            page = self._pages.answer(call)
            if call.warnings and "Warning" not in page.headers:
                add_warnings(page.headers, call.warnings)
            return page
        resource = self._resource(target)
        if resource is None or _lacks_namespace(call, resource, target):
            return self._unknown(target)
        call.resource = resource
        if not resource.is_custom:  # upstream has no handler for what a built-in kind cannot do, so it cannot warn
            self._check_verb(call, resource, target)
        if resource.deprecation_warning:
            call.warnings.append(resource.deprecation_warning)
        if resource.is_custom:
            self._check_verb(call, resource, target)
        if "timeout" in call.query and not _DURATION.fullmatch(call.query["timeout"]):
            shown = call.query["timeout"]
            text = f'invalid timeout specified in the request URL - time: invalid duration "{shown}"'
            raise failures.bad_request(text)
        if call.verb == "watch":
            return await self._watch(request, call, resource)
        if target.subresource in _STREAMS:
            return await self._stream(request, call, resource, target)
        if method in {"POST", "PUT", "PATCH", "DELETE"}:
            call.body = await _read_body(request)
            if not self._allows_all and method in {"PUT", "PATCH"}:
                call.check_create = partial(self._authorize_create, call)
            if resource.stored_as == DEFINITIONS and len(call.body) >= LARGE:
                await _in_thread(partial(_prepare_definition, resource, call.body))
        response = await self._dispatch(call, resource, target)
        backing = self._registry.store.backing
        if backing is not None and method != "GET":
            await _committed(backing)
        return response

    # Identity and permission

    def _user(self, request: web.BaseRequest, call: Call) -> User:
        transport, authorization = request.transport, request.headers.get("Authorization")
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        user = self._authenticator.authenticate(authorization, tls)
        if user is ANONYMOUS and authorization and is_token_after_spaces(authorization):
            call.warnings.append(_SPACES)
        return user

    def _authorize(self, call: Call) -> None:
        if self._allows_all or (call.target is None and call.path in _PUBLIC):
            return
        attributes = call.attributes()
        allowed, _ = self._rbac.allowed(call.user, attributes)
        if not allowed:
            raise _DeniedError(self._rbac.forbidden(call.user, attributes))

    def _authorize_create(self, call: Call) -> None:
        attributes = replace(call.attributes(), verb="create")
        if not self._rbac.allowed(call.user, attributes)[0]:
            raise self._rbac.forbidden(call.user, attributes)

    # Resources

    def _unknown(self, target: ResourcePath) -> web.Response:
        if not target.group or self._registry.has_built_in(target.group):
            raise failures.no_such_resource()
        return text("404 page not found\n", 404)

    def _resource(self, target: ResourcePath) -> Resource | None:
        resource = self._registry.find(target.group, target.version, target.resource)
        if resource is None:
            return None
        if target.namespace and not resource.namespaced:
            return None
        if target.name and resource.namespaced and not target.namespace and not target.is_watch:
            return None
        if target.rest and target.subresource != "proxy" and not resource.is_custom:
            return None
        if target.subresource and target.subresource not in resource.subresources:
            if resource.is_custom:
                raise failures.not_found(resource.plural, resource.group, target.name)
            return None
        return resource

    @staticmethod
    def _check_verb(call: Call, resource: Resource, target: ResourcePath) -> None:
        if target.subresource:
            verbs: Iterable[str] = resource.subresources[target.subresource].verbs
            # exec and its kin may be asked by GET and POST alike; the refusal says more than a 405.
            if call.verb not in verbs:
                if resource.is_custom:
                    kind = f"{resource.plural}.{resource.group}"
                    error = failures.method_not_allowed()
                    message = f'{call.verb} is not supported on resources of kind "{kind}"'
                    details = {"group": resource.group, "kind": resource.plural}
                    raise APIStatusError.from_status({**error.status, "message": message, "details": details})
                raise failures.method_not_allowed()
            return
        if target.name and not _ITEM_VERBS.intersection(resource.verbs):
            raise failures.no_such_resource()  # a review is created and has no path of its own
        if resource.is_custom:
            _check_custom_method(call, target)
        elif call.method not in _verbs_of(target):
            raise failures.method_not_allowed()
        needs_namespace = resource.namespaced and not target.namespace
        if needs_namespace and "list" not in resource.verbs:
            raise failures.no_such_resource()
        if call.verb not in resource.verbs or (needs_namespace and call.verb in {"create", "deletecollection"}):
            raise failures.method_not_allowed()

    async def _stream(
        self, request: web.BaseRequest, call: Call, resource: Resource, target: ResourcePath
    ) -> web.StreamResponse:
        if target.subresource != "log":
            await self._subresources.admit_connection(call, resource, target)
            opening = self._port_forward if target.subresource == "portforward" else self._streams
            return await opening.open(request, call, resource, target)
        if call.asks("follow"):
            return await self._streams.follow(request, call, resource, target)
        return await self._subresources.handle(call, resource, target)

    async def _dispatch(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        if target.subresource:
            return await self._subresources.handle(call, resource, target)
        match call.verb:
            case "get":
                return await self._objects.get(call, resource, target)
            case "list":
                return await self._list(call, resource)
            case "create" if resource.plural in REVIEWS and resource.group in _REVIEW_GROUPS:
                return await self._reviews.handle(call, resource, target)
            case "create" if resource.plural == "bindings" and not resource.group:
                return await self._subresources.bind(call, resource, target)
            case "create":
                return await self._objects.create(call, resource, target)
            case "update":
                return await self._objects.update(call, resource, target)
            case "patch":
                return await self._objects.patch(call, resource, target)
            case "delete":
                return await self._objects.delete(call, resource, target)
            case _:
                return await self._objects.delete_collection(call, resource, target)

    async def _list(self, call: Call, resource: Resource) -> web.Response:
        representation = negotiate(call.headers.get("Accept", ""), is_collection=True, is_custom=resource.is_custom)
        view = self._objects.view(call, resource, representation)
        body = await list_body(self._registry, call, list_options(call, self._registry.features), view)
        return answer(call, body, is_yaml=representation.is_yaml)

    async def _watch(self, request: web.BaseRequest, call: Call, resource: Resource) -> web.StreamResponse:
        representation = negotiate(call.headers.get("Accept", ""), is_collection=True, is_custom=resource.is_custom)
        options = list_options(call, self._registry.features)
        watch = Watch(
            self._registry,
            call,
            options,
            self._objects.view(call, resource, representation),
            clock=self._clock,
            rng=self._rng,
            bookmark_interval=self._bookmark_interval,
        )
        if representation.is_yaml:  # said when the watch begins to be sent
            raise NotAcceptable(f"only the following media types are accepted: {STREAMS}")
        if request.transport is not None:
            watch.cut = request.transport.abort
            _shrink_buffer(request.transport)
        response = web.StreamResponse(headers=headers_of(call.warnings))
        response.headers["Content-Type"] = "application/json"
        response.enable_chunked_encoding()
        # A client that goes away ends its watch; that is how most watches end, and nobody's error.
        with contextlib.suppress(ConnectionResetError):
            await response.prepare(request)
            if not representation.is_list_form:  # no event is a list: kube-apiserver ends the watch at the first
                async for chunk in watch.frames():
                    await response.write(chunk)
            await response.write_eof()
        return response


def _shrink_buffer(transport: asyncio.Transport) -> None:
    """Give back what a TLS connection of asyncio keeps to read into: 256 KiB, of which a watch needs none (asyncio/sslproto.py)."""
    protocol: Any = getattr(transport, "_ssl_protocol", None)
    if isinstance(protocol, SSLProtocol):
        buffer = bytearray(_WATCH_BUFFER)
        for name, value in (
            ("max_size", len(buffer)),
            ("_ssl_buffer", buffer),
            ("_ssl_buffer_view", memoryview(buffer)),
        ):
            setattr(protocol, name, value)


_WATCH_BUFFER = 4096


class _DeniedError(Exception):
    """Authorization refused the request; the answer has a header more than other failures."""

    def __init__(self, status: APIStatusError) -> None:
        super().__init__(str(status))
        self.status = status


def _verbs_of(target: ResourcePath) -> frozenset[str]:
    if target.is_watch:
        return frozenset({"GET"})
    return frozenset({"GET", "PUT", "PATCH", "DELETE"} if target.name else {"GET", "POST", "DELETE"})


def _lacks_namespace(call: Call, resource: Resource, target: ResourcePath) -> bool:
    """Tell whether a custom resource is asked over all namespaces for more than a list or a watch (customresource_handler.go)."""
    return resource.is_custom and resource.namespaced and not target.namespace and call.verb not in {"list", "watch"}


def _check_custom_method(call: Call, target: ResourcePath) -> None:
    """Custom resources have one handler for all methods: a name too much is no matter to POST, one too few is to PUT and PATCH."""
    if call.method not in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}:
        raise failures.method_not_allowed()
    if not target.name and call.method in {"PUT", "PATCH"}:
        raise failures.bad_request("name must be provided")


_DURATION = re.compile(r"[-+]?(?:0|(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+|")
_STREAMS = frozenset({"log", "exec", "attach", "portforward"})
_ITEM_VERBS = frozenset({"get", "update", "patch", "delete"})
_REVIEW_GROUPS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


async def _read_body(request: web.BaseRequest) -> bytes:
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        body = None
    if body is None or len(body) > BODY_LIMIT:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {BODY_LIMIT}")
    return body


async def _in_thread(work: Callable[[], None]) -> None:
    """Run a function in a thread of its own, which ends with it: definitions are rare, and a pool would stay."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(done.set)

    thread = threading.Thread(target=run, name="ctrlruntime-definition", daemon=True)
    thread.start()
    await done.wait()
    thread.join()  # it is about to end


def _prepare_definition(resource: Resource, body: bytes) -> None:
    """Do in a thread what takes longest of a large definition. What cannot be read is left to the write, which says why."""
    with contextlib.suppress(Exception):
        tree, _ = read_yaml(body)
        prepare(resource.fit(tree, [])["spec"]["versions"])


async def _committed(backing: Backing) -> None:
    """Wait until a write outlives the process: nothing is answered before. Raises: InternalError."""
    try:
        await backing.committed()
    except OSError as error:
        raise failures.internal(str(error)) from None


def _injected(status: int, retry_after: float | None) -> web.Response:
    headers = {"Retry-After": str(int(retry_after))} if retry_after is not None else None
    if status == 429:
        return text("Too many requests, please try again later.\n", 429, headers)
    details = {"retryAfterSeconds": int(retry_after)} if retry_after is not None else {}
    cls = APIStatusError.from_response(status, b"").__class__
    error = cls(f"injected failure {status}", code=status, details=details)
    return failure(APIStatusError.from_status(error.status, retry_after=retry_after))


def _internal(error: Exception) -> dict[str, object]:
    message = f"Internal error occurred: {type(error).__name__}: {error}"
    head: dict[str, object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {
        **head,
        "message": message,
        "reason": "InternalError",
        "details": {"causes": [{"message": str(error)}]},
        "code": 500,
    }


__all__ = ["BODY_LIMIT", "Application"]
