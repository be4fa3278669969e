"""The request pipeline: identity, permission, path, verb; one function from request to answer.

The order of the checks is kube-apiserver's, so the same error wins: 401, 403, 404 or 405, 406, 415, 400 or 422, then what the
registry says.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from random import Random

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authentication import Authenticator, impersonated
from ctrlruntime.apiserver.authorization import RBAC, Attributes, User
from ctrlruntime.apiserver.discovery import Discovery, OpenAPI
from ctrlruntime.apiserver.discovery.documents import AGGREGATED, wants_aggregated
from ctrlruntime.apiserver.faults import Faults
from ctrlruntime.apiserver.http.answers import answer, document_answer, failure, headers_of, text
from ctrlruntime.apiserver.http.bodies import read_tree
from ctrlruntime.apiserver.http.calls import Call, ResourcePath, resource_path, split_query
from ctrlruntime.apiserver.http.lists import list_body
from ctrlruntime.apiserver.http.negotiation import negotiate
from ctrlruntime.apiserver.http.objects import Objects
from ctrlruntime.apiserver.http.options import list_options
from ctrlruntime.apiserver.http.reviews import REVIEWS, Reviews
from ctrlruntime.apiserver.http.subresources import Subresources
from ctrlruntime.apiserver.http.watches import Watch
from ctrlruntime.apiserver.registry import Registry, Resource
from ctrlruntime.errors import APIStatusError, NotAcceptable, RequestEntityTooLarge
from ctrlruntime.log import get_logger

BODY_LIMIT = 3_145_728
_log = get_logger("apiserver")
_PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version"})
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.1",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "ctrlruntime",
    "platform": "python",
}


class Application:
    """Handles every request of the server."""

    def __init__(
        self,
        registry: Registry,
        authenticator: Authenticator,
        rbac: RBAC,
        discovery: Discovery,
        faults: Faults,
        *,
        allows_all: bool,
        secret: bytes,
        bookmark_interval: float,
        clock: Callable[[], float] = time.monotonic,
        rng: Random | None = None,
    ) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._rbac = rbac
        self._discovery = discovery
        self._openapi = OpenAPI(registry)
        self._faults = faults
        self._allows_all = allows_all
        self._bookmark_interval = bookmark_interval
        self._clock = clock
        self._rng = rng or Random()  # noqa: S311 - jitter
        self._objects = Objects(registry)
        self._subresources = Subresources(registry, self._objects, secret)
        self._reviews = Reviews(rbac, authenticator, allows_all=allows_all)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; failures become Status bodies."""
        try:
            return await self._handle(request)
        except APIStatusError as error:
            return failure(error)
        except (ConnectionResetError, web.HTTPException):
            raise
        except Exception as error:  # noqa: BLE001 - a bug of ours must not look like a dead server
            _log.exception("a request failed", method=request.method, path=request.path)
            return failure(APIStatusError.from_status(_internal(error)))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        raw_path, _, raw_query = request.path_qs.partition("?") if "?" in request.path_qs else (request.path_qs, "", "")
        path = raw_path.rstrip("/") or "/"
        method = request.method
        injected = self._faults.next_failure(method, raw_path)
        if injected is not None:
            return _injected(*injected)
        query, queries = split_query(raw_query) if raw_query else ({}, {})
        user = self._user(request)
        call = Call(method, path, query, queries, request.headers, user)
        target = resource_path(path) if path.startswith("/api") else None
        call.target = target
        self._authorize(call)
        if target is None:
            return self._other(call)
        resource = self._resource(target)
        if resource is None:
            return self._unknown(target)
        call.resource = resource
        self._check_verb(call, resource, target)
        if call.verb == "watch":
            return await self._watch(request, call, resource)
        if method in {"POST", "PUT", "PATCH", "DELETE"}:
            call.body = await _read_body(request)
        try:
            return await self._dispatch(call, resource, target)
        except APIStatusError as error:
            return failure(error, call.warnings)

    # Identity and permission

    def _user(self, request: web.BaseRequest) -> User:
        transport = request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        user = self._authenticator.authenticate(request.headers.get("Authorization"), certificate)
        if "Impersonate-User" not in request.headers and "Impersonate-Group" not in request.headers:
            return user
        groups = list(request.headers.getall("Impersonate-Group", []))
        other = impersonated(request.headers, groups)
        if other is None:
            raise failures.bad_request("requested impersonation of groups, uid or extra without impersonating a user")
        if not self._allows_all:
            asked = [Attributes(verb="impersonate", resource="users", version="v1", name=other.name)]
            asked += [Attributes(verb="impersonate", resource="groups", version="v1", name=group) for group in groups]
            for attributes in asked:
                if not self._rbac.allowed(user, attributes)[0]:
                    raise self._rbac.forbidden(user, attributes)
        return other

    def _authorize(self, call: Call) -> None:
        if self._allows_all or (call.target is None and call.path in _PUBLIC):
            return
        attributes = call.attributes()
        allowed, _ = self._rbac.allowed(call.user, attributes)
        if not allowed:
            raise self._rbac.forbidden(call.user, attributes)

    # Paths that are no resources

    def _other(self, call: Call) -> web.Response:
        path = call.path
        if call.method not in {"GET", "HEAD"}:
            raise failures.method_not_allowed()
        first = path.split("/")[1]
        if first in {"healthz", "livez", "readyz"}:
            return self._health(call, first)
        if path == "/version":
            return document_answer(call, VERSION)
        if first in {"api", "apis"}:
            return self._discover(call)
        if path == "/openapi/v3" or path.startswith("/openapi/v3/"):
            return self._open_api(call)
        if path == "/":
            return document_answer(
                call, {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
            )
        if path == "/metrics":
            return text(
                f"# TYPE apiserver_storage_revision gauge\napiserver_storage_revision {self._registry.store.revision}\n"
            )
        return text("404 page not found\n", 404)

    @staticmethod
    def _health(call: Call, name: str) -> web.Response:
        checks = ("ping", "log", "etcd")
        _, _, check = call.path.strip("/").partition("/")
        if check and check not in checks:
            return text("404 page not found\n", 404)
        if "verbose" in call.query:
            listed = "".join(f"[+]{one} ok\n" for one in checks)
            return text(f"{listed}{name} check passed\n")
        return text("ok")

    def _discover(self, call: Call) -> web.Response:
        is_root = call.path in {"/api", "/apis"}
        if wants_aggregated(call.headers.get("Accept", ""), has_aggregated=is_root):
            body, tag = self._discovery.aggregated(call.path)
            headers = headers_of()
            headers.update({"ETag": tag, "Vary": "Accept"})
            if call.headers.get("If-None-Match") == tag:
                return web.Response(status=304, headers=headers)
            headers["Content-Type"] = AGGREGATED
            return web.Response(body=body + b"\n", headers=headers)
        document = self._discovery.legacy(call.path)
        if document is None:
            return self._unknown_path(call.path)
        return answer(call, document)

    def _open_api(self, call: Call) -> web.Response:
        key = call.path.removeprefix("/openapi/v3").strip("/")
        if not key:
            return web.Response(body=self._openapi.index() + b"\n", content_type="text/plain")
        found = self._openapi.document(key)
        if found is None:
            return web.Response(status=404)
        body, digest = found
        asked = call.query.get("hash")
        if asked is not None and asked != digest:
            return web.Response(status=301, headers={"Location": f"/openapi/v3/{key}?hash={digest}"})
        headers = {"ETag": f'"{digest}"', "Vary": "Accept"}
        if asked is not None:
            headers["Cache-Control"] = "public, immutable"
        if call.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type="application/json", headers=headers)

    def _unknown_path(self, path: str) -> web.Response:
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            raise failures.no_such_resource()
        return text("404 page not found\n", 404)

    def _unknown(self, target: ResourcePath) -> web.Response:
        if not target.group:
            raise failures.no_such_resource()
        built_in = any(
            not r.is_custom and (r.group, r.version) == (target.group, target.version)
            for r in self._registry.all_resources()
        )
        if built_in:
            raise failures.no_such_resource()
        return text("404 page not found\n", 404)

    # Resources

    def _resource(self, target: ResourcePath) -> Resource | None:
        resource = self._registry.find(target.group, target.version, target.resource)
        if resource is None:
            return None
        if target.namespace and not resource.namespaced:
            return None
        if target.name and resource.namespaced and not target.namespace and not target.is_watch:
            return None
        if target.subresource and target.subresource not in resource.subresources:
            if resource.is_custom and target.subresource in {"status", "scale"}:
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
                    raise APIStatusError.from_status({**error.status, "message": message, "details": {"kind": kind}})
                raise failures.method_not_allowed()
            return
        collection_verbs = {"GET", "POST", "DELETE"}
        item_verbs = {"GET", "PUT", "PATCH", "DELETE"}
        if call.method not in (item_verbs if target.name else collection_verbs):
            raise failures.method_not_allowed()
        needs_namespace = resource.namespaced and not target.namespace
        if call.verb not in resource.verbs or (needs_namespace and call.verb in {"create", "deletecollection"}):
            raise failures.method_not_allowed()

    async def _dispatch(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        if target.subresource:
            return await self._subresources.handle(call, resource, target)
        match call.verb:
            case "get":
                return await self._objects.get(call, resource, target)
            case "list":
                return await self._list(call, resource)
            case "create" if resource.plural in REVIEWS and resource.group in _REVIEW_GROUPS:
                return self._reviews.handle(call, resource)
            case "create" if resource.plural == "bindings" and not resource.group:
                binding = read_tree(call, "Binding")
                name = str((binding.get("metadata") or {}).get("name", ""))
                return self._subresources.bind(call, resource, target.namespace, name, binding)
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
        representation = negotiate(call.headers.get("Accept", ""))
        if representation.form == "metadata" and not representation.is_list_form:
            raise NotAcceptable(
                "only the following media types are accepted: application/json, application/yaml, "
                "application/vnd.kubernetes.protobuf"
            )
        view = self._objects.view(call, resource, representation)
        body = await list_body(self._registry, call, list_options(call), view)
        return answer(call, body, is_yaml=representation.is_yaml)

    async def _watch(self, request: web.BaseRequest, call: Call, resource: Resource) -> web.StreamResponse:
        representation = negotiate(call.headers.get("Accept", ""))
        options = list_options(call)
        watch = Watch(
            self._registry,
            call,
            options,
            self._objects.view(call, resource, representation),
            clock=self._clock,
            rng=self._rng,
            bookmark_interval=self._bookmark_interval,
        )
        response = web.StreamResponse(headers=headers_of())
        response.headers["Content-Type"] = "application/json"
        response.enable_chunked_encoding()
        # A client that goes away ends its watch; that is how most watches end, and nobody's error.
        with contextlib.suppress(ConnectionResetError):
            await response.prepare(request)
            async for chunk in watch.frames():
                await response.write(chunk)
            await response.write_eof()
        return response


_REVIEW_GROUPS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})


async def _read_body(request: web.BaseRequest) -> bytes:
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        body = None
    if body is None or len(body) > BODY_LIMIT:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {BODY_LIMIT}")
    return body


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


__all__ = ["BODY_LIMIT", "VERSION", "Application"]
