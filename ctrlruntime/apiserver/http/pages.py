"""Paths that are not resources: health, version, discovery, OpenAPI, the keys of tokens, metrics."""

from __future__ import annotations

import platform
import sys
import time
from email.utils import formatdate

from aiohttp import web

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.discovery import Discovery, OpenAPI, OpenAPIv2
from ctrlruntime.apiserver.discovery.documents import AGGREGATED, wanted
from ctrlruntime.apiserver.discovery.openapi_v2 import PROTOBUF
from ctrlruntime.apiserver.encoding import decode, encode_yaml
from ctrlruntime.apiserver.http.answers import answer, document_answer, headers_of, text
from ctrlruntime.apiserver.http.calls import Call
from ctrlruntime.apiserver.http.health import STORAGE, health
from ctrlruntime.apiserver.http.negotiation import media_ranges
from ctrlruntime.apiserver.http.tokens import CONFIGURATION_PATH, KEYS_PATH, Tokens
from ctrlruntime.apiserver.registry import Registry
from ctrlruntime.data import KUBERNETES_VERSION

_YEAR = 365 * 86400.0
_ROOTS = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3",
          "/openid/v1/jwks", "/readyz", "/version"]  # fmt: skip
_OPENAPI_V2 = {
    "application/json": "application/json",
    "application/*": "application/json",
    "*/*": "application/json",
    PROTOBUF: PROTOBUF,
    PROTOBUF.replace("v2.v1", "v2@v1"): PROTOBUF,
}
"""What a client may ask for, and the type of what it gets. kubectl writes an `@` where other clients have a dot."""
_OPENAPI_V3 = frozenset({"application/json", "application/*", "*/*"})
_GO_MACHINES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64"}
VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": KUBERNETES_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "ctrlruntime",
    "platform": f"{sys.platform}/{_GO_MACHINES.get(platform.machine(), platform.machine())}",
}


class Pages:
    """Handlers of what every server says of itself."""

    def __init__(self, registry: Registry, discovery: Discovery, tokens: Tokens) -> None:
        self._registry = registry
        self._discovery = discovery
        self._openapi = OpenAPI(registry)
        self._openapi_v2 = OpenAPIv2(registry, self._openapi)
        self._tokens = tokens
        self._started = formatdate(usegmt=True)

    def answer(self, call: Call) -> web.Response:
        """Answer a request for a path that is not a resource's. Raises: MethodNotAllowed, NotFound."""
        path = call.path
        first = path.split("/")[1]
        if first in {"healthz", "livez", "readyz"}:
            backing = self._registry.store.backing
            return health(call, STORAGE if backing is not None and backing.failure is not None else ())
        if call.method not in {"GET", "HEAD"} and not self._takes_any_method(call):
            raise failures.method_not_allowed()
        if path == "/version":
            return document_answer(call, VERSION)
        if path in {KEYS_PATH, CONFIGURATION_PATH}:
            return self._tokens.document(call, f"https://{call.headers.get('Host', '')}")
        if first in {"api", "apis"}:
            return self._discover(call)
        if path == "/openapi/v3" or path.startswith("/openapi/v3/"):
            return self._open_api(call)
        if path == "/openapi/v2":
            return self._open_api_v2(call)
        if path == "/":
            return document_answer(call, {"paths": _ROOTS})
        if path == "/metrics":
            return text(
                f"# TYPE apiserver_storage_revision gauge\napiserver_storage_revision {self._registry.store.revision}\n"
            )
        return text("404 page not found\n", 404)

    def _takes_any_method(self, call: Call) -> bool:
        """Tell whether a handler answers that does not look at the method: those of groups take OPTIONS, of custom groups all."""
        root, _, rest = call.path.strip("/").partition("/")
        group = rest.partition("/")[0]
        return root == "apis" and bool(rest) and (call.method == "OPTIONS" or not self._registry.has_built_in(group))

    def _discover(self, call: Call) -> web.Response:
        is_root = call.path in {"/api", "/apis"}
        form = wanted(call.headers.get("Accept", ""), has_aggregated=is_root)
        if form.is_aggregated:
            body, tag = self._discovery.aggregated(call.path)
            headers = headers_of()
            headers.update({"ETag": tag, "Vary": "Accept", "Cache-Control": "public"})
            if call.headers.get("If-None-Match") == tag:
                return web.Response(status=304, headers=headers)
            headers["Content-Type"] = AGGREGATED.replace("json", "yaml") if form.is_yaml else AGGREGATED
            return web.Response(body=encode_yaml(decode(body)) if form.is_yaml else body + b"\n", headers=headers)
        document = self._discovery.legacy(call.path)
        if document is None:
            return self._unknown_path(call.path)
        return answer(call, document, is_yaml=form.is_yaml)

    def _open_api(self, call: Call) -> web.Response:
        key = call.path.removeprefix("/openapi/v3").strip("/")
        headers = headers_of()
        if not key:
            headers["Last-Modified"] = self._started
            return web.Response(
                body=self._openapi.index() + b"\n", content_type="text/plain", charset="utf-8", headers=headers
            )
        found = self._openapi.document(key)
        if found is None:
            return web.Response(status=404, headers=headers)
        headers["Vary"] = "Accept"
        if not any(entry.type in _OPENAPI_V3 for entry in media_ranges(call.headers.get("Accept") or "*/*")):
            return web.Response(status=406, headers=headers)
        body, digest = found
        asked = call.query.get("hash")
        headers["ETag"] = f'"{digest}"'
        if asked is not None and asked != digest:
            headers["Location"] = f"/openapi/v3/{key}?hash={digest}"
            return web.Response(status=301, content_type="application/json", headers=headers)
        if asked is not None:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = formatdate(time.time() + _YEAR, usegmt=True)
        if call.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        headers["Last-Modified"] = self._started
        return web.Response(body=body, content_type="application/json", headers=headers)

    def _open_api_v2(self, call: Call) -> web.Response:
        headers = headers_of()
        headers["Vary"] = "Accept"
        kinds = (_OPENAPI_V2.get(entry.type) for entry in media_ranges(call.headers.get("Accept") or "*/*"))
        content_type = next(filter(None, kinds), None)
        if content_type is None:
            return web.Response(status=406, headers=headers)
        body, digest = self._openapi_v2.document(is_protobuf=content_type == PROTOBUF)
        headers.update({"ETag": f'"{digest}"', "Last-Modified": self._started})
        if call.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=body, content_type=content_type, headers=headers)

    def _unknown_path(self, path: str) -> web.Response:
        parts = path.strip("/").split("/")
        if parts[0] == "api" or (len(parts) > 1 and self._registry.has_built_in(parts[1])):
            raise failures.no_such_resource()
        return text("404 page not found\n", 404)


__all__ = ["VERSION", "Pages"]
