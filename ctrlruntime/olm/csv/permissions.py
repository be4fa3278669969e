"""The permissions of the operator's ServiceAccounts, by account, from the roles that are bound to them.

The Operator Lifecycle Manager creates the accounts, roles and bindings itself, in the namespace of the operator. Roles for users, which are
bound to no account here, stay files. So do bindings to roles that are not among the objects, and bindings of other namespaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.olm.csv.deployments import account_of
from ctrlruntime.olm.csv.objects import Key, Objects, gvk_of, name_of, namespace_of, told
from ctrlruntime.olm.trees import mapping, maps

__all__ = ["Granted", "granted"]

_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(slots=True)
class Granted:
    """The rules of each account: `{account: rules}`."""

    in_namespace: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    in_cluster: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])

    @property
    def accounts(self) -> set[str]:
        return {*self.in_namespace, *self.in_cluster}

    @property
    def permissions(self) -> list[Document]:
        return _entries(self.in_namespace)

    @property
    def cluster_permissions(self) -> list[Document]:
        return _entries(self.in_cluster)


def granted(objects: Objects, extra_accounts: Sequence[str], warn: Warn) -> Granted:
    """Return the permissions of the accounts of Deployments and the extra ones. Their roles, bindings and accounts are removed."""
    search = _Search(objects, extra_accounts, warn)
    for binding in objects.of(_RBAC, "RoleBinding", "ClusterRoleBinding"):
        search.take_in(binding)
    found = search.result()
    for account in sorted(set(extra_accounts) - found.accounts):
        warn(f"the ServiceAccount {account} gets no permissions, because no role among the objects is bound to it")
    return found


class _Search:
    def __init__(self, objects: Objects, extra_accounts: Sequence[str], warn: Warn) -> None:
        self._objects = objects
        self._warn = warn
        self._namespace = next((namespace_of(each) for each in objects.deployments), "")
        self._running = {account_of(each) for each in objects.deployments}
        self._accounts = self._running | set(extra_accounts)
        self._roles = {(each["kind"], _role_key(each)): each for each in objects.of(_RBAC, "Role", "ClusterRole")}
        self._used: list[Document] = []
        self._kept: list[Document] = []
        self._gone: list[Document] = []
        self._granted = Granted()

    def take_in(self, binding: Document) -> None:
        """Add the permissions that a binding grants to our accounts. A binding with other subjects, too, stays for them."""
        subjects = maps(binding.get("subjects"))
        ours = [each for each in subjects if self._is_ours(each, binding)]
        role = self._role(binding)
        if role is None or not ours or not self._can_be_said(binding, role):
            self._kept.extend([role] if role is not None else [])
            if ours and self._is_at_home(binding):
                self._warn_of_file(binding)
            return
        others = [each for each in subjects if each not in ours]
        if others:
            binding["subjects"] = others
            self._kept.append(role)
        else:
            self._gone.append(binding)
        self._used.append(role)
        into = self._granted.in_namespace if binding["kind"] == "RoleBinding" else self._granted.in_cluster
        for account in dict.fromkeys(str(each.get("name")) for each in ours):
            into.setdefault(account, []).extend(role.get("rules") or [])

    def result(self) -> Granted:
        """Remove the objects that are covered, and add an entry for each account of a Deployment: OLM creates only accounts of entries."""
        kept = {id(each) for each in self._kept}
        self._objects.take([*self._gone, *(each for each in self._used if id(each) not in kept)])
        said = self._granted.accounts
        for account in sorted(self._running - said - {"default"}):
            self._granted.in_namespace[account] = []
        made = {*said, *self._running}
        self._objects.take(
            each
            for each in self._objects.of("", "ServiceAccount")
            if name_of(each) in made and namespace_of(each) in {"", self._namespace}
        )
        return self._granted

    def _is_ours(self, subject: Document, binding: Document) -> bool:
        namespace = str(subject.get("namespace") or namespace_of(binding))
        return (
            subject.get("kind") == "ServiceAccount"
            and subject.get("name") in self._accounts
            and (not self._namespace or namespace in {"", self._namespace})
        )

    def _role(self, binding: Document) -> Document | None:
        reference = mapping(binding.get("roleRef"))
        kind, name = str(reference.get("kind")), str(reference.get("name"))
        namespace = namespace_of(binding) if kind == "Role" else ""
        return self._roles.get((kind, (namespace, name)))

    def _can_be_said(self, binding: Document, role: Document) -> bool:
        # The cluster puts the rules of an aggregated role together; they are unknown here.
        return not role.get("aggregationRule") and self._is_at_home(binding)

    def _is_at_home(self, binding: Document) -> bool:
        return binding["kind"] == "ClusterRoleBinding" or namespace_of(binding) in {"", self._namespace}

    def _warn_of_file(self, binding: Document) -> None:
        reference = mapping(binding.get("roleRef"))
        self._warn(
            f"{told(binding)} stays a file, because the rules of {reference.get('kind')}/{reference.get('name')} are unknown here. It "
            f"binds the ServiceAccount only in the namespace {self._namespace or 'that it sets'}. Write the rules into your own role"
        )


def _role_key(role: Document) -> Key:
    return (namespace_of(role) if gvk_of(role).kind == "Role" else "", name_of(role))


def _entries(rules: dict[str, list[Any]]) -> list[Document]:
    return [{"serviceAccountName": account, "rules": rules[account]} for account in sorted(rules)]
