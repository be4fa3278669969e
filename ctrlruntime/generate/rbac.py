"""Roles from permissions: what controller-gen makes of its rbac markers, and what follows from watching a kind.

It takes `RBACRule`s: those `@rbac` collected, and those made here for kinds that are watched, owned or reconciled. It hands up
documents: one ClusterRole for rules of the whole cluster, one Role for each namespace that rules name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document, Warn
from ctrlruntime.generate.rbac_names import unknown_names
from ctrlruntime.markers import RBACRule

__all__ = [
    "READ",
    "ROLE_NAME",
    "certificate_rules",
    "check_names",
    "derived_beside",
    "election_role",
    "event_rules",
    "finalizer_rules",
    "owned_rules",
    "policy_rules",
    "reconciled_rules",
    "roles",
    "watched_rules",
]

ROLE_NAME: Final = "manager-role"
READ: Final = ("get", "list", "watch")

_API_VERSION: Final = "rbac.authorization.k8s.io/v1"
_ELECTION_VERBS: Final = ("create", "get", "update")
_SHARDING_VERBS: Final = ("create", "delete", "get", "list", "update")


# Rules that follow from what a controller does


def watched_rules(group: str, plural: str) -> list[RBACRule]:
    """Return what a watched kind needs: list and watch fill the cache, get is the live read when a write's answer was lost."""
    return [RBACRule(groups=(group,), resources=(plural,), verbs=READ)]


def owned_rules(group: str, plural: str) -> list[RBACRule]:
    """Return what children of a controller need: to be watched and written."""
    return [RBACRule(groups=(group,), resources=(plural,), verbs=(*READ, "create", "update", "patch", "delete"))]


def reconciled_rules(group: str, plural: str, *, has_status: bool) -> list[RBACRule]:
    """Return what the kind of a controller needs: to be watched and changed, and its status to be written."""
    rules = [RBACRule(groups=(group,), resources=(plural,), verbs=(*READ, "update", "patch"))]
    if has_status:
        rules.append(RBACRule(groups=(group,), resources=(f"{plural}/status",), verbs=("get", "update", "patch")))
    return rules


def finalizer_rules(group: str, plural: str) -> list[RBACRule]:
    """Return what an owner reference with blockOwnerDeletion needs of the owner where that is enforced (OpenShift does)."""
    return [RBACRule(groups=(group,), resources=(f"{plural}/finalizers",), verbs=("update",))]


def event_rules(namespace: str = "") -> list[RBACRule]:
    """Return what an event recorder needs; patch is for what happens again."""
    return [RBACRule(groups=("events.k8s.io",), resources=("events",), verbs=("create", "patch"), namespace=namespace)]


def certificate_rules(
    secret: str,
    namespace: str,
    *,
    mutating: Sequence[str] = (),
    validating: Sequence[str] = (),
    definitions: Sequence[str] = (),
) -> list[RBACRule]:
    """Return what keeping the webhook certificate in a Secret needs, and making the named objects trust its CA."""
    injected = {
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): mutating,
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): validating,
        ("apiextensions.k8s.io", "customresourcedefinitions"): definitions,
    }
    change = ("get", "update")
    return [
        # A create cannot be limited to a name: the server does not know it yet.
        RBACRule(groups=("",), resources=("secrets",), verbs=("create",), namespace=namespace),
        RBACRule(groups=("",), resources=("secrets",), verbs=change, resource_names=(secret,), namespace=namespace),
        *(
            RBACRule(groups=(group,), resources=(plural,), verbs=change, resource_names=tuple(names))
            for (group, plural), names in injected.items()
            if names
        ),
    ]


def derived_beside(said: Iterable[RBACRule], derived: Iterable[RBACRule]) -> list[RBACRule]:
    """Return the rules that were said, and of the derived ones what they leave open.

    A rule that names a resource (`deployments`, or `deployments/status`) sets its write permissions; what is derived then
    only adds the reading of a watched kind. A rule for objects by name says nothing of the others, and one for a namespace nothing
    of other namespaces.
    """
    result = list(said)
    named = {part for rule in result if not rule.resource_names for part in _parts(rule, rule.namespace)}
    for rule in derived:
        is_named = any(_parts(rule, namespace) <= named for namespace in {"", rule.namespace})
        verbs = tuple(verb for verb in rule.verbs if verb in READ) if is_named else rule.verbs
        is_subresource = any("/" in resource for resource in rule.resources)
        if verbs and not (is_subresource and verbs != rule.verbs):
            result.append(replace(rule, verbs=verbs))
    return result


def _parts(rule: RBACRule, namespace: str) -> set[tuple[str, str, str]]:
    return {(namespace, _group(group), resource) for group in rule.groups for resource in rule.resources}


def check_names(rules: Iterable[RBACRule], warn: Warn) -> None:
    """Check the verbs and resources of rules for built-in API groups, and warn of a resource that only other servers can have.

    Raises: GenerateError for a name that is probably a typing error.
    """
    for rule in rules:
        for found in unknown_names(rule):
            text = f"{_said(rule)}: {found.text}"
            if found.is_typo:
                raise GenerateError(text)
            warn(text)


# Documents


def roles(rules: Iterable[RBACRule], *, role_name: str = ROLE_NAME) -> list[Document]:
    """Return the ClusterRole and Roles that grant the rules, sorted by namespace and name; nothing for no rules.

    `role_name` is the name of the roles whose rules name none. Raises: GenerateError for a rule that grants nothing or that no
    server takes.
    """
    buckets: dict[tuple[str, str], list[RBACRule]] = {}
    for rule in rules:
        _check(rule)
        buckets.setdefault((rule.namespace, rule.role_name or role_name), []).append(rule)
    return [_role(name, namespace, policy_rules(buckets[namespace, name])) for namespace, name in sorted(buckets)]


def election_role(
    role_name: str, namespace: str = "", *, with_events: bool = True, is_sharded: bool = False
) -> Document:
    """Return the Role of a leader election, or of sharding: the Leases, and the Events about them.

    It has no namespace unless one is given: it belongs where the operator runs, which is said when it is deployed.
    """
    verbs = _SHARDING_VERBS if is_sharded else _ELECTION_VERBS
    rules = [RBACRule(groups=("coordination.k8s.io",), resources=("leases",), verbs=verbs)]
    if with_events:
        rules += event_rules()
    return _role(role_name, namespace, policy_rules(rules), is_namespaced=True)


def policy_rules(rules: Iterable[RBACRule]) -> list[Document]:
    """Return rules as the API has them: without doubles, merged where they differ in one thing, and sorted."""
    merged = _joined([_Rule.of(part) for rule in rules for part in _one_for_each_resource(rule)], _key, "verbs")
    merged = _joined(merged, lambda rule: (rule.groups, rule.names, rule.urls, rule.verbs), "resources")
    merged = _joined(merged, lambda rule: (rule.resources, rule.names, rule.urls, rule.verbs), "groups")
    merged = _joined(merged, lambda rule: (rule.groups, rule.resources, rule.names, rule.verbs), "urls")
    return [rule.document() for rule in sorted(merged, key=_text)]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule whose lists are sorted and without doubles, so that equal ones compare equal."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...]
    urls: tuple[str, ...]
    verbs: tuple[str, ...]

    @classmethod
    def of(cls, rule: RBACRule) -> _Rule:
        return cls(
            groups=_sorted(map(_group, rule.groups)),
            resources=_sorted(rule.resources),
            names=_sorted(rule.resource_names),
            urls=_sorted(rule.urls),
            verbs=_verbs(rule.verbs),
        )

    def document(self) -> Document:
        parts = {
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
            "verbs": self.verbs,
        }
        return {name: list(values) for name, values in parts.items() if values}


def _joined(rules: Sequence[_Rule], key: Callable[[_Rule], Hashable], field: str) -> list[_Rule]:
    """Merge the rules that are equal in `key` by uniting their `field`."""
    groups: dict[Hashable, list[_Rule]] = {}
    for rule in rules:
        groups.setdefault(key(rule), []).append(rule)
    unite = _verbs if field == "verbs" else _sorted
    joined: list[_Rule] = []
    for same in groups.values():
        values: tuple[str, ...] = unite(value for rule in same for value in getattr(rule, field))
        joined.append(replace(same[0], **{field: values}))
    return joined


def _key(rule: _Rule) -> Hashable:
    return (rule.groups, rule.resources, rule.names, rule.urls)


def _text(rule: _Rule) -> str:
    return " + ".join("&".join(values) for values in (rule.groups, rule.resources, rule.names, rule.urls))


def _one_for_each_resource(rule: RBACRule) -> list[RBACRule]:
    return [replace(rule, resources=(resource,)) for resource in rule.resources] or [rule]


def _role(name: str, namespace: str, rules: list[Document], *, is_namespaced: bool = False) -> Document:
    metadata: Document = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    kind = "Role" if namespace or is_namespaced else "ClusterRole"
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "rules": rules}


def _check(rule: RBACRule) -> None:
    if not rule.verbs or not (rule.resources or rule.urls):
        raise GenerateError(f'{_said(rule)} grants nothing. Add verbs="get;list" and resources="…" (or urls="…")')
    if rule.urls and rule.namespace:
        raise GenerateError(f"{_said(rule)} has URLs and a namespace, but URLs are cluster-scoped. Remove namespace=")
    if rule.urls and (rule.groups or rule.resources or rule.resource_names):
        raise GenerateError(
            f"{_said(rule)} has both resources and URLs, which the API server rejects. Split it into two rules"
        )
    if rule.resources and not rule.groups:
        raise GenerateError(f'{_said(rule)} has no API group. Add groups="…", where "" is the core group')


def _said(rule: RBACRule) -> str:
    """The rule as it is written."""
    parts: dict[str, Sequence[str]] = {
        "groups": rule.groups,
        "resources": rule.resources,
        "resource_names": rule.resource_names,
        "urls": rule.urls,
        "verbs": rule.verbs,
        "namespace": (rule.namespace,) if rule.namespace else (),
        "role_name": (rule.role_name,) if rule.role_name else (),
    }
    words = [f'{name}="' + ";".join(values) + '"' for name, values in parts.items() if values]
    return f"@rbac({', '.join(words)})"


def _group(name: str) -> str:
    return "" if name == "core" else name


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values)))


def _verbs(values: Iterable[str]) -> tuple[str, ...]:
    verbs = _sorted(values)
    return ("*",) if "*" in verbs else verbs
