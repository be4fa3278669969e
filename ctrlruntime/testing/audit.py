"""Compares the permissions that an operator uses in tests with those that its roles grant.

An active `Recorder` records these requests of managers in this process:

- reads and writes with a manager's client by controllers, runnables and webhooks (not by the test itself);
- the list and watch of every cached kind;
- the manager's own requests: Leases, Events, reviews of callers.

`compare` compares them with roles. Some granted permissions are never reported as unused: `get` if `list` or `watch` is used, because a
live read after a lost response needs it; verbs that no request has (`bind`, `escalate`, `impersonate`), which the API server checks with
another request; and the manager's own permissions (Leases, Events, reviews, the Secret of a webhook certificate and the configurations with
its CA, by name), even if a test had no leader election or webhooks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, cast

from ctrlruntime.api.kind import GroupVersionKind, guess_plural
from ctrlruntime.api.object import Object
from ctrlruntime.api.yaml_nodes import FILE
from ctrlruntime.api.yaml_text import read_documents
from ctrlruntime.client.observers import Call, witnesses
from ctrlruntime.errors import ConfigError

__all__ = ["Comparison", "Grant", "Permission", "Recorder", "compare", "read_roles"]

_LIBRARY: Final = {
    ("coordination.k8s.io", "leases"): {"get", "create", "update"},
    ("events.k8s.io", "events"): {"create", "patch"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
}
"""The manager's own permissions."""

_CERTIFICATES: Final = {
    ("", "secrets"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
}
"""The objects that a manager with the webhook certificate in a Secret changes, by name."""

_VERBS: Final = frozenset({"*", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"})
"""The verbs of requests: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb"""

_PLACEHOLDER: Final = "system"
"""The namespace of the operator's own objects in `config/`."""

_ELSEWHERE: Final = "ctrlruntime.dev/namespace"
"""The annotation with the namespace of a Role in `config/`, if it is not the operator's."""


class Permission(NamedTuple):
    """One permission. `resource` is a plural, with `/status` and others for a subresource."""

    group: str
    resource: str
    verb: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {_resource(self.group, self.resource)}" + (
            f" in {self.namespace}" if self.namespace else ""
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on one resource in a role.

    "*" is all. `namespace` None: all namespaces, "": the namespace of the role.
    """

    group: str
    resource: str
    verb: str
    role: str
    names: tuple[str, ...] = ()
    namespace: str | None = None

    def covers(self, permission: Permission) -> bool:
        """Return whether the grant includes this permission."""
        return (
            self.verb in {permission.verb, "*"}
            and self.group in {permission.group, "*"}
            and _matches(self.resource, permission.resource)
            and (not self.names or permission.name in self.names)
            and (self.namespace is None or bool(permission.namespace))
            and self.namespace in {None, "", permission.namespace}
        )

    def __str__(self) -> str:
        names = f" named {', '.join(self.names)}" if self.names else ""
        return f"{self.verb} {_resource(self.group, self.resource)}{names} ({self.role})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Missing and unused permissions, sorted."""

    missing: tuple[Permission, ...]
    unused: tuple[Grant, ...]
    used: int
    """The number of used permissions, without namespaces and names."""

    @property
    def is_even(self) -> bool:
        return not self.missing and not self.unused

    def lines(self, *, by: Mapping[Permission, str] | None = None) -> list[str]:
        """Return the comparison as text. `by`: the first user of a permission."""
        seen: dict[tuple[str, str, str], Permission] = {}
        for permission in self.missing:
            seen.setdefault(permission[:3], permission)
        lines = [f"missing: {permission}{_by(permission, by or {})}{_why(permission)}" for permission in seen.values()]
        lines += [f"unused:  {grant}" for grant in self.unused]
        return lines or [f"nothing missing, nothing unused; {self.used} permissions used"]


@dataclass(slots=True, eq=False)
class Recorder:
    """Records permissions while it is active (`with Recorder() as recorder:`).

    `used` maps each to its first user.
    """

    used: dict[Permission, str] = field(default_factory=dict[Permission, str])

    def __enter__(self) -> Self:
        witnesses.append(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        witnesses.remove(self.note)

    def note(self, call: Call) -> None:
        """Record a call, if an operator made it in its own cluster."""
        if call.cluster or not _is_operators(call):
            return
        who = call.actor.controller if call.actor is not None else ""
        resource = f"{call.resource}/{call.subresource}" if call.subresource else call.resource
        self.used.setdefault(Permission(call.group, resource, call.verb, call.namespace, call.name), who)
        if call.verb in {"create", "update", "patch"} and b"blockOwnerDeletion" in call.body:
            for group, plural, name in _blocked_owners(call.body):
                self.used.setdefault(Permission(group, f"{plural}/finalizers", "update", call.namespace, name), who)


def compare(used: Iterable[Permission], roles: Iterable[Mapping[str, Any]]) -> Comparison:
    """Return missing and unused permissions of the roles.

    Documents of other kinds are skipped.
    """
    permissions = sorted(set(used))
    grants = list(_grants(roles))
    missing = [permission for permission in permissions if not any(grant.covers(permission) for grant in grants)]
    unused = [grant for grant in grants if not _is_used(grant, permissions) and not _is_certificates(grant, grants)]
    return Comparison(tuple(missing), tuple(unused), len({permission[:3] for permission in permissions}))


def read_roles(paths: Iterable[str | Path]) -> list[Mapping[str, Any]]:
    """Return the Roles and ClusterRoles in YAML files.

    Raises: ConfigError for a file that does not exist, is not YAML or has no roles.
    """
    import yaml

    roles: list[Mapping[str, Any]] = []
    for path in map(Path, paths):
        try:
            documents: list[Any] = list(read_documents(path.read_text(encoding="utf-8"), bounds=FILE))
        except FileNotFoundError as error:
            raise ConfigError(
                f"cannot read roles from {path}: no such file; create it with: ctrl manifests --module …"
            ) from error
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise ConfigError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        found = [document for document in documents if _is_role(document)]
        if not found:
            raise ConfigError(f"no Role or ClusterRole in {path}")
        roles += found
    return roles


# Whose call it is


def _is_operators(call: Call) -> bool:
    if call.origin == "unfenced":
        # Tests use such clients, too; of a manager they do this much and nothing else.
        return call.verb in _LIBRARY.get((call.group, call.resource), ())
    return call.actor is not None


def _blocked_owners(body: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield group, plural and name of the owners that a written object keeps from being deleted."""
    try:
        tree: Any = json.loads(body)
    except ValueError:
        return
    metadata: Any = cast("dict[str, Any]", tree).get("metadata") if isinstance(tree, dict) else None
    references: Any = cast("dict[str, Any]", metadata).get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in cast("list[Any]", references or ()):
        if reference.get("blockOwnerDeletion"):
            gvk = GroupVersionKind.parse(reference.get("apiVersion", ""), reference.get("kind", ""))
            yield gvk.group, _plural(gvk), reference.get("name", "")


def _plural(gvk: GroupVersionKind) -> str:
    for cls in _classes(Object):
        info = cls.__kind_info__
        if info is not None and (info.group, info.kind) == (gvk.group, gvk.kind):
            return info.plural
    return guess_plural(gvk.kind)


def _classes(cls: type[Object]) -> Iterator[type[Object]]:
    for each in cls.__subclasses__():
        yield each
        yield from _classes(each)


# What roles grant


def _is_role(document: Any) -> bool:
    return isinstance(document, Mapping) and cast("Mapping[str, Any]", document).get("kind") in {"Role", "ClusterRole"}


def _grants(roles: Iterable[Mapping[str, Any]]) -> Iterator[Grant]:
    for role in roles:
        if not _is_role(role):
            continue
        metadata: Mapping[str, Any] = role.get("metadata") or {}
        namespace = None if role["kind"] == "ClusterRole" else _namespace(metadata)
        name = f"{role['kind']} {metadata.get('name', '')}"
        for rule in cast("Sequence[Mapping[str, Any]]", role.get("rules") or ()):
            names = tuple(rule.get("resourceNames") or ())
            for group in rule.get("apiGroups") or ():
                for resource in rule.get("resources") or ():
                    for verb in rule.get("verbs") or ():
                        yield Grant(group, resource, verb, name, names, namespace)


def _namespace(metadata: Mapping[str, Any]) -> str:
    """Where a Role of the tree `config/` will be: what stands in it is a placeholder until kustomize puts it there."""
    elsewhere = (metadata.get("annotations") or {}).get(_ELSEWHERE)
    namespace = str(elsewhere or metadata.get("namespace", ""))
    return "" if namespace == _PLACEHOLDER else namespace


def _matches(granted: str, asked: str) -> bool:
    if granted in {"*", asked}:
        return True
    return granted.startswith("*/") and asked.endswith(granted[1:])


def _is_used(grant: Grant, permissions: Sequence[Permission]) -> bool:
    if grant.verb not in _VERBS or grant.verb in _LIBRARY.get((grant.group, grant.resource), ()):
        return True
    if any(grant.covers(permission) for permission in permissions):
        return True
    if grant.verb != "get":
        return False
    return any(replace(grant, verb=verb).covers(each) for verb in ("list", "watch") for each in permissions)


def _is_certificates(grant: Grant, grants: Sequence[Grant]) -> bool:
    """Whether it is for the webhook certificate, which tests have from elsewhere."""
    if (grant.group, grant.resource) not in _CERTIFICATES:
        return False
    if grant.names:
        return grant.verb in {"get", "update"}
    # The Secret that is then read and updated by its name.
    by_name = {(each.role, each.namespace, each.resource) for each in grants if each.names and each.verb == "update"}
    return (
        grant.verb == "create" and grant.resource == "secrets" and (grant.role, grant.namespace, "secrets") in by_name
    )


def _resource(group: str, resource: str) -> str:
    base, slash, subresource = resource.partition("/")
    return f"{base}.{group}{slash}{subresource}" if group else resource


def _why(permission: Permission) -> str:
    if not permission.resource.endswith("/finalizers"):
        return ""
    return ": set_controller_reference sets blockOwnerDeletion, for which some clusters require it"


def _by(permission: Permission, by: Mapping[Permission, str]) -> str:
    who = by.get(permission, "")
    return f" (used by {who})" if who else ""
