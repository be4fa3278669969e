"""Who may do what: RBAC over the stored roles and bindings, with the API server's words.

Takes roles and bindings from the `API`; hands the HTTP layer a decision, its reason, and the Forbidden to raise. The
rules of each subject are collected once and kept until a role or binding changes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio

from ctrlruntime.apiserver.authorization.attributes import MASTERS, AuthorizationAttributes, User
from ctrlruntime.apiserver.authorization.policy import GROUP
from ctrlruntime.apiserver.authorization.rules import Rule, rule_allows
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import Forbidden
from ctrlruntime.field_errors import shown
from ctrlruntime.schema.trees import Document

RESOURCES: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class _Grant:
    """The rules one binding gives one subject; `missing` is the resource and name of a role that does not exist."""

    binding: tuple[str, str]
    source: str
    rules: Sequence[Rule]
    missing: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Holdings:
    """All permissions of a user; `missing` names roles in bindings that do not exist."""

    rules: Sequence[Rule]
    missing: Sequence[tuple[str, str]]

    @property
    def problem(self) -> str:
        """What could not be found, as a refusal says it; empty when nothing is missing."""
        return _joined([_not_found(*missing) for missing in self.missing])


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
        """Drop the cached data; the next decision reads roles and bindings again."""
        self._grants = None

    def allowed(self, user: User, attributes: AuthorizationAttributes) -> tuple[bool, str]:
        """Return the decision and its reason; the reason for a refusal is empty unless a role is missing."""
        if MASTERS in user.groups:
            return True, ""
        missing: list[str] = []
        for grant in self._of(user, attributes.namespace):
            if any(rule_allows(rule, attributes) for rule in grant.rules):
                return True, f"RBAC: allowed by {grant.source}"
            if grant.missing and (text := _not_found(*grant.missing)) not in missing:
                missing.append(text)
        return False, f"RBAC: {_joined(missing)}" if missing else ""

    def forbidden(self, user: User, attributes: AuthorizationAttributes) -> Forbidden:
        """Return the error that refuses the request, with the real server's message."""
        return refusal(user, attributes, self.allowed(user, attributes)[1])

    def holdings(self, user: User, namespace: str) -> Holdings:
        """Return the rules that hold for a user in a namespace (empty: cluster-wide), each binding's once."""
        seen: set[tuple[str, str]] = set()
        rules: list[Rule] = []
        missing: list[tuple[str, str]] = []
        for grant in self._of(user, namespace):
            if grant.binding in seen:
                continue
            seen.add(grant.binding)
            rules.extend(grant.rules)
            if grant.missing:
                missing.append(grant.missing)
        return Holdings(rules, missing)

    def role_rules(self, ref: Document, namespace: str) -> Sequence[Rule] | None:
        """Return the rules of the role in a roleRef; None if it does not exist."""
        resource, scope, name = _named_role(ref, namespace)
        role = self._api.get(GROUP, resource, scope, name)
        return None if role is None else role.get("rules") or ()

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
                ref: Document = binding.get("roleRef") or {}
                rules = self.role_rules(ref, scope)
                named, _, name = _named_role(ref, scope)
                missing = (named, name) if rules is None else None
                for subject in binding.get("subjects") or ():
                    kind, who = _subject_key(subject, scope)
                    grant = _Grant(
                        (scope, binding["metadata"]["name"]), _source(binding, subject, scope), rules or (), missing
                    )
                    grants.setdefault((scope, kind, who), []).append(grant)
        return grants


def refusal(user: User, attributes: AuthorizationAttributes, reason: str = "") -> Forbidden:
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


def _refused(user: User, attributes: AuthorizationAttributes) -> str:
    who = shown(user.name)
    if not attributes.resource:
        return f'User {who} cannot {attributes.verb} path "{attributes.path}"'
    resource = "/".join(filter(None, (attributes.resource, attributes.subresource)))
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'User {who} cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {where}'


def _named_role(ref: Document, namespace: str) -> tuple[str, str, str]:
    """Return (plural, namespace, name) of the role that a roleRef names."""
    name = str(ref.get("name", ""))
    return ("clusterroles", "", name) if ref.get("kind") == "ClusterRole" else ("roles", namespace, name)


def _not_found(resource: str, name: str) -> str:
    return f'{resource.removesuffix("s")}.{GROUP} "{name}" not found'


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
    if len(errors) < 2:
        return errors[0] if errors else ""
    return f"[{', '.join(errors)}]"
