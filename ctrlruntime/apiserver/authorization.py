"""Who may do what: RBAC over the stored roles and bindings, with the API server's words.

Takes roles and bindings from the `API`; hands the HTTP layer a decision, its reason, and the Forbidden to raise. The
rules of each subject are collected once and kept until a role or binding changes.
"""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from ctrlruntime.apiserver.interfaces import API, Change, Document
from ctrlruntime.data import open_data
from ctrlruntime.errors import Forbidden

GROUP: Final = "rbac.authorization.k8s.io"
MASTERS: Final = "system:masters"
RESOURCES: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_KINDS: Final = {
    "clusterroles": "ClusterRole",
    "clusterrolebindings": "ClusterRoleBinding",
    "roles": "Role",
    "rolebindings": "RoleBinding",
}
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_NO_EXTRA: Final[Mapping[str, tuple[str, ...]]] = {}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks, as the authentication found."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NO_EXTRA)


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked: a verb on a resource, or (when `path` is set) on a path that is no resource.

    As on the real server, a request for one Namespace object has that name as `namespace` too.
    """

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class _Grant:
    """The rules one binding gives one subject; `missing` names a role that does not exist."""

    source: str
    rules: Sequence[Mapping[str, Any]]
    missing: str = ""


class RBAC:
    """Decides by the roles and bindings in the store; members of system:masters may do everything."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._grants: dict[tuple[str, str, str], list[_Grant]] | None = None
        self._watched = False

    async def run(self) -> None:
        """Run until cancelled: what was collected is kept until a role or binding changes. Without it each decision reads."""
        async with anyio.create_task_group() as tasks:
            for resource in RESOURCES:
                tasks.start_soon(self._follow, self._api.watch(GROUP, resource))
            self._watched = True

    def invalidate(self) -> None:
        """Forget what was collected; the next decision reads roles and bindings anew."""
        self._grants = None

    def allowed(self, user: User, attributes: Attributes) -> tuple[bool, str]:
        """Return the decision and its reason; the reason for a refusal is empty unless a role is missing."""
        if MASTERS in user.groups:
            return True, ""
        missing: list[str] = []
        for grant in self._of(user, attributes.namespace):
            if any(_rule_allows(rule, attributes) for rule in grant.rules):
                return True, f"RBAC: allowed by {grant.source}"
            if grant.missing and grant.missing not in missing:
                missing.append(grant.missing)
        return False, f"RBAC: {_joined(missing)}" if missing else ""

    def forbidden(self, user: User, attributes: Attributes) -> Forbidden:
        """Return the error that refuses the request, with the real server's message."""
        return refusal(user, attributes, self.allowed(user, attributes)[1])

    def rules(self, user: User, namespace: str) -> list[Mapping[str, Any]]:
        """Return the rules that hold for a user in a namespace, for SelfSubjectRulesReview."""
        return [rule for grant in self._of(user, namespace) for rule in grant.rules]

    async def _follow(self, changes: AsyncIterator[Change]) -> None:
        async for _ in changes:
            self.invalidate()

    def _of(self, user: User, namespace: str) -> Iterator[_Grant]:
        grants = self._grants if self._grants is not None else self._collect()
        if self._watched:
            self._grants = grants
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for scope in ("", namespace) if namespace else ("",):
            for kind, name in subjects:
                yield from grants.get((scope, kind, name), ())

    def _collect(self) -> dict[tuple[str, str, str], list[_Grant]]:
        grants: dict[tuple[str, str, str], list[_Grant]] = {}
        for resource in ("clusterrolebindings", "rolebindings"):
            for binding in self._api.list(GROUP, resource):
                scope = str(binding["metadata"].get("namespace", ""))
                rules, missing = self._role(binding.get("roleRef") or {}, scope)
                for subject in binding.get("subjects") or ():
                    kind, name = _subject_key(subject, scope)
                    grants.setdefault((scope, kind, name), []).append(
                        _Grant(_source(binding, subject, scope), rules, missing)
                    )
        return grants

    def _role(self, ref: Document, namespace: str) -> tuple[Sequence[Mapping[str, Any]], str]:
        kind, name = str(ref.get("kind", "")), str(ref.get("name", ""))
        resource, scope = ("clusterroles", "") if kind == "ClusterRole" else ("roles", namespace)
        role = self._api.get(GROUP, resource, scope, name)
        if role is None:
            return (), f'{kind.lower()}.{GROUP} "{name}" not found'
        return role.get("rules") or (), ""


def refusal(user: User, attributes: Attributes, reason: str = "") -> Forbidden:
    """Return the 403 for a request that was refused for `reason`."""
    message = _refused(user, attributes).translate(_ESCAPES) + (f": {reason}" if reason else "")
    details: dict[str, Any] = {}
    if attributes.resource:
        qualified = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
        name = f' "{attributes.name}"' if attributes.name else ""
        message = f"{qualified}{name} is forbidden: {message}"
        details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    else:
        message = f"forbidden: {message}"
    return Forbidden(message, details={key: value for key, value in details.items() if value})


def bootstrap() -> list[tuple[str, Document]]:
    """Return the roles and bindings every cluster has, as (plural, object), roles before the bindings that name them.

    Some live in the namespaces kube-system and kube-public.
    """
    data = json.loads(gzip.decompress(open_data("kubernetes-1.36/rbac-bootstrap.json.gz")))
    return [
        (resource, {"apiVersion": f"{GROUP}/v1", "kind": _KINDS[resource], **copy.deepcopy(document)})
        for resource in ("clusterroles", "roles", "clusterrolebindings", "rolebindings")
        for document in data[resource]
    ]


def _refused(user: User, attributes: Attributes) -> str:
    if not attributes.resource:
        return f'User "{user.name}" cannot {attributes.verb} path "{attributes.path}"'
    resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return (
        f'User "{user.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {where}'
    )


def _subject_key(subject: Document, scope: str) -> tuple[str, str]:
    kind, name = str(subject.get("kind", "")), str(subject.get("name", ""))
    if kind == "ServiceAccount":
        return "User", f"system:serviceaccount:{subject.get('namespace') or scope}:{name}"
    return kind, name


def _source(binding: Document, subject: Document, scope: str) -> str:
    metadata, ref = binding["metadata"], binding.get("roleRef") or {}
    name = f"{metadata['name']}/{scope}" if scope else metadata["name"]
    who = str(subject.get("name", ""))
    if subject.get("kind") == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or scope}"
    binding_kind = "RoleBinding" if scope else "ClusterRoleBinding"
    return f'{binding_kind} "{name}" of {ref.get("kind")} "{ref.get("name")}" to {subject.get("kind")} "{who}"'


def _joined(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def _rule_allows(rule: Mapping[str, Any], asked: Attributes) -> bool:
    if not _has(rule.get("verbs"), asked.verb):
        return False
    if not asked.resource:
        return any(_path_matches(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("apiGroups"), asked.group)
        and _has_resource(rule.get("resources") or (), asked.resource, asked.subresource)
        and (not names or asked.name in names)
    )


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return values is not None and any(value in {"*", wanted} for value in values)


def _has_resource(values: Iterable[str], resource: str, subresource: str) -> bool:
    if not subresource:
        return any(value in {"*", resource} for value in values)
    return any(value in {"*", f"{resource}/{subresource}", f"*/{subresource}"} for value in values)


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in {"*", path} or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))
