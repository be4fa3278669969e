"""Which requests a fault is about (`Match`), and what the proxy notes of each request (`SeenRequest`).

A request is described as RBAC describes it: verb, API group, resource (`pods`, `pods/status`), namespace and name.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

__all__ = ["Match", "SeenRequest", "describe"]

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}


@dataclass(slots=True)
class SeenRequest:
    """One request that reached the proxy. Times are those of `time.monotonic`."""

    time: float
    """When its head and body had been read."""

    method: str
    path: str
    verb: str
    """As in RBAC (get list watch create update patch delete deletecollection); for other paths the method, lower case."""

    group: str = ""
    version: str = ""
    resource: str = ""
    """With its subresource, as in RBAC: `pods`, `pods/status`; empty for paths without a resource."""

    namespace: str = ""
    name: str = ""
    query: dict[str, str] = field(default_factory=dict[str, str])
    agent: str = ""
    """The User-Agent header; it tells clients apart."""

    body: bytes = field(default=b"", repr=False)
    status: int = 0
    """The HTTP status the client was sent; 0 while (or because) no answer came."""

    reached_server: bool = False
    """Whether the request was handed to the API server."""

    ended: float | None = None
    """When the answer was complete or the connection gone."""

    frames: int = 0
    """Complete frames of a watch that were passed on."""

    @property
    def label(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part)
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join(part for part in (self.verb, what or self.path, where) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Requests by verb, resource, group, namespace and name. What is None matches all; a collection matches each.

    `resource` is written as in RBAC: `pods` is not `pods/status`; `pods/*` are its subresources.
    """

    verb: str | Collection[str] | None = None
    resource: str | Collection[str] | None = None
    group: str | Collection[str] | None = None
    namespace: str | Collection[str] | None = None
    name: str | Collection[str] | None = None
    path: str | None = None
    """The start of the path, for requests without a resource (`/apis`, `/openapi`)."""

    agent: str | None = None
    """A part of the User-Agent header."""

    def covers(self, request: SeenRequest) -> bool:
        """Whether the request is one of those meant."""
        return (
            _holds(self.verb, request.verb)
            and _holds_resource(self.resource, request.resource)
            and _holds(self.group, request.group)
            and _holds(self.namespace, request.namespace)
            and _holds(self.name, request.name)
            and (self.path is None or request.path.startswith(self.path))
            and (self.agent is None or self.agent in request.agent)
        )


def _holds(wanted: str | Collection[str] | None, found: str) -> bool:
    if wanted is None:
        return True
    return found == wanted if isinstance(wanted, str) else found in wanted


def _holds_resource(wanted: str | Collection[str] | None, found: str) -> bool:
    if _holds(wanted, found):
        return True
    main, _, sub = found.partition("/")
    return bool(sub) and _holds(wanted, f"{main}/*")


def describe(time: float, method: str, target: str, *, agent: str = "", body: bytes = b"") -> SeenRequest:
    """Return what a request line means, as kube-apiserver reads it (k8s.io/apiserver/pkg/endpoints/request)."""
    path, _, query_text = target.partition("?")
    query = dict(parse_qsl(query_text, keep_blank_values=True))
    request = SeenRequest(time, method, path, method.lower(), query=query, agent=agent, body=body)
    parts = [unquote(part) for part in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest] if rest:
            request.version = version
        case ["apis", group, version, *rest] if rest:
            request.group, request.version = group, version
        case _:
            return request
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in {"status", "finalize"}):
        request.namespace, rest = rest[1], rest[2:]
    request.resource = rest[0]
    request.name = rest[1] if len(rest) > 1 else ""
    if len(rest) > 2:
        request.resource = f"{rest[0]}/{rest[2]}"
    request.verb = _verb(request)
    return request


def _verb(request: SeenRequest) -> str:
    match request.method:
        case "GET" | "HEAD" if request.query.get("watch") in {"true", "1"}:
            return "watch"
        case "GET" | "HEAD":
            return "get" if request.name else "list"
        case "DELETE":
            return "delete" if request.name else "deletecollection"
        case method:
            return _VERBS.get(method, method.lower())
