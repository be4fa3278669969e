"""One request, taken apart: path, query, identity and the resource it is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from ctrlruntime.apiserver.authorization import AuthorizationAttributes, User
from ctrlruntime.apiserver.registry import Resource
from ctrlruntime.selector import parse_fields

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
_BAD_PAIR = re.compile(";|%(?![0-9a-fA-F]{2})")
"""A semicolon, or a percent sign that escapes nothing."""
_NAMESPACE_PARTS = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """What a path below /api or /apis names; `resource` is the plural."""

    group: str
    version: str
    namespace: str
    resource: str
    name: str
    subresource: str
    rest: str
    is_watch: bool


@dataclass(slots=True)
class Call:
    """A request on its way through the server."""

    method: str
    path: str
    query: Mapping[str, str]
    queries: Mapping[str, list[str]]
    headers: Mapping[str, str]
    user: User
    body: bytes = b""
    target: ResourcePath | None = None
    resource: Resource | None = None
    warnings: list[str] = field(default_factory=list[str])
    check_create: Callable[[], None] | None = None
    """Raises Forbidden when an update or apply may not create what is not there; None allows it."""

    @property
    def is_watch(self) -> bool:
        target = self.target
        if target is None or self.method != "GET" or (target.name and not target.is_watch):
            return False
        return target.is_watch or self.asks("watch")

    def asks(self, parameter: str) -> bool:
        """Return whether a parameter of the query is true: every value but `0` and `false` is, also an empty one.

        As Convert_Slice_string_To_bool of apimachinery's pkg/runtime/conversion.go.
        """
        return self.query.get(parameter, "false").lower() not in {"false", "0"}

    @property
    def verb(self) -> str:
        target = self.target
        if target is None:
            return self.method.lower()
        if self.method in {"GET", "HEAD"} and (not target.name or target.is_watch):
            return "watch" if self.is_watch else "list"
        if self.method == "DELETE" and not target.name:
            return "deletecollection"
        return _VERBS.get(self.method, "")

    def attributes(self) -> AuthorizationAttributes:
        """Return what authorization is asked."""
        target = self.target
        if target is None:
            return AuthorizationAttributes(verb=self.method.lower(), path=self.path)
        namespace, verb, name = target.namespace, self.verb, target.name
        if not name and verb in {"list", "watch"} and "fieldSelector" in self.query:
            name = _selected_name(self.query["fieldSelector"])
        if target.resource == "namespaces" and not target.group and target.name:
            namespace = target.name
        return AuthorizationAttributes(
            verb=verb,
            group=target.group,
            version=target.version,
            resource=target.resource,
            subresource=target.subresource,
            namespace=namespace,
            name=name,
        )


def _selected_name(selector: str) -> str:
    """Return the one name that a field selector leaves: a list of one object may be allowed by a rule's resourceNames."""
    try:
        return parse_fields(selector).exact("metadata.name") or ""
    except ValueError:
        return ""


def split_query(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return (first value by name, all values by name). A pair that Go's url.ParseQuery does not read is left out, as it is there."""
    if _BAD_PAIR.search(text):
        text = "&".join(pair for pair in text.split("&") if not _BAD_PAIR.search(pair))
    first: dict[str, str] = {}
    every: dict[str, list[str]] = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        first.setdefault(key, value)
        every.setdefault(key, []).append(value)
    return first, every


def resource_path(path: str) -> ResourcePath | None:
    """Return what the path names, or None when it lies outside of the resource paths."""
    # An escaped slash divides, too: no name has one.
    parts = (unquote(path) if "%" in path else path).strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_PARTS):
        namespace, rest = rest[1], rest[2:]
    padded = [*rest, "", "", ""]
    return ResourcePath(group, version, namespace, padded[0], padded[1], padded[2], "/".join(rest[3:]), is_watch)
