"""Escalation rules: checks before a role or a binding is written, so that users grant only permissions they have.

Takes the decisions of `RBAC`; hands the writer one `check` for all four kinds. The verbs `escalate` (on roles) and `bind`
(on the role that a binding names) lift it, as does the group system:masters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authorization.attributes import MASTERS, AuthorizationAttributes, User
from ctrlruntime.apiserver.authorization.policy import GROUP
from ctrlruntime.apiserver.authorization.rbac import RBAC
from ctrlruntime.apiserver.authorization.rules import Rule, missing_rules
from ctrlruntime.apiserver.interfaces import UserIdentity
from ctrlruntime.errors import APIStatusError, BadRequest, Forbidden
from ctrlruntime.field_errors import shown
from ctrlruntime.schema.trees import Document

_EVERYTHING: Final[Sequence[Rule]] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_ROLES: Final = frozenset({"roles", "clusterroles"})
_COLLECTORS_FIELDS: Final = ("ownerReferences", "finalizers")
"""What the garbage collector must be able to change on any object."""


class Escalation:
    """Refuses roles and bindings that would give away more than their author holds."""

    def __init__(self, rbac: RBAC) -> None:
        self._rbac = rbac

    def check(self, plural: str, document: Document, old: Document | None, author: UserIdentity) -> None:
        """Raises: Forbidden, NotFound (a role that a binding names), BadRequest."""
        if MASTERS in author.groups:
            return
        if old is not None and _settled(document) == _settled(old):
            return
        user = author if isinstance(author, User) else _as_user(author)
        if plural in _ROLES:
            self._check_role(plural, document, old, user)
        else:
            self._check_binding(plural, document, old, user)

    def _check_role(self, plural: str, document: Document, old: Document | None, user: User) -> None:
        metadata: Document = document["metadata"]
        # A create has no name in its path, so `escalate` limited to resourceNames does not allow it.
        name = str(metadata.get("name", "")) if old is not None else ""
        if self._may(user, "escalate", plural, metadata.get("namespace", ""), name):
            return
        self._confirm(plural, document, old, document.get("rules") or (), user)
        collects = any((one or {}).get("aggregationRule") is not None for one in (document, old))
        if collects and not self._holds_everything(user):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise _forbidden(plural, document, old, why)

    def _check_binding(self, plural: str, document: Document, old: Document | None, user: User) -> None:
        namespace = str(document["metadata"].get("namespace", ""))
        ref: Document = document.get("roleRef") or {}
        kind, name = str(ref.get("kind", "")), str(ref.get("name", ""))
        named = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if named is not None and self._may(user, "bind", named, namespace, name):
            return
        if named is None:
            raise failures.plain_internal(f"unsupported role reference kind: {shown(kind)}")
        if named == "roles" and not namespace:
            raise BadRequest("Namespace parameter required.")
        rules = self._rbac.role_rules(ref, namespace)
        if rules is None:
            raise failures.not_found(plural, GROUP, name)
        self._confirm(plural, document, old, rules, user)

    def _confirm(
        self, plural: str, document: Document, old: Document | None, granted: Sequence[Rule], user: User
    ) -> None:
        held = self._rbac.holdings(user, document["metadata"].get("namespace", ""))
        missing = missing_rules(held.rules, granted)
        if not missing:
            return
        groups = " ".join(shown(group) for group in user.groups)
        why = (
            f"user {shown(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n"
        )
        why += "\n".join(missing)
        if held.missing:
            # Upstream words these with the plural of the kind that is being written.
            unresolved = [f'{plural}.{GROUP} "{name}" not found' for _, name in held.missing]
            listed = unresolved[0] if len(unresolved) == 1 else f"[{', '.join(unresolved)}]"
            why += f"; resolution errors: [{listed}]"
        raise _forbidden(plural, document, old, why)

    def _holds_everything(self, user: User) -> bool:
        return not missing_rules(self._rbac.holdings(user, "").rules, _EVERYTHING)

    def _may(self, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
        asked = AuthorizationAttributes(
            verb, group=GROUP, version="v1", resource=resource, namespace=namespace, name=name
        )
        return self._rbac.allowed(user, asked)[0]


def _as_user(author: UserIdentity) -> User:
    extra = {key: tuple(values) for key, values in author.extra.items()}
    return User(author.name, tuple(author.groups), author.uid, extra)


def _settled(document: Document) -> dict[str, Any]:
    """Return the object without what the garbage collector changes, and what every write changes."""
    left = {*_COLLECTORS_FIELDS, "managedFields", "resourceVersion", "generation"}
    return {**document, "metadata": {key: value for key, value in document["metadata"].items() if key not in left}}


def _forbidden(plural: str, document: Document, old: Document | None, why: str) -> APIStatusError:
    metadata: Document = document["metadata"]
    name = str(metadata.get("name", ""))
    if name and not (old is None and metadata.get("generateName")):
        return failures.forbidden(plural, GROUP, name, why)
    # The real server refuses before it makes the name.
    return Forbidden(f"{plural}.{GROUP} is forbidden: {why}", details={"group": GROUP, "kind": plural})
