"""The webhooks that are registered: one `Webhook` for each entry of the two kinds of configuration, kept in the order of calling.

A configuration is read when it is written, inside the write, so it acts on the next request. What no rule could match is known by one
look into a dictionary (`Webhooks.wants`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ctrlruntime.apiserver.admission.following import GROUP, POLICIES, follow
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Operation, Served
from ctrlruntime.apiserver.storage import Key, Store
from ctrlruntime.apiserver.webhook_client import Endpoint, endpoint_of
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import LabelSelector, from_label_selector

MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_EXEMPT = frozenset({MUTATING, VALIDATING, *POLICIES})
"""What webhooks never see: one could keep itself from being removed."""
_NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class Rule:
    """Which requests a webhook is for."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """(plural, subresource) pairs; each part may be `*`."""
    scope: str
    names: frozenset[str] = frozenset()
    """The names of objects; empty: any. Only rules of policies have them."""

    def concerns(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        """Tell whether the rule names this, whatever the version and scope."""
        return _has(self.operations, operation) and _has(self.groups, group) and self._names(plural, subresource)

    def matches(self, resource: Served, attributes: AdmissionAttributes) -> bool:
        return (
            self.concerns(resource.group, resource.plural, attributes.subresource, attributes.operation)
            and _has(self.versions, resource.version)
            and self._reaches(resource, attributes.namespace)
            and (not self.names or attributes.name in self.names)
        )

    def _names(self, plural: str, subresource: str) -> bool:
        # "pods/*" includes the pods themselves, "*" no subresource.
        return any(
            name in {"*", plural} and (part == "*" or part == subresource)  # noqa: PLR1714 - reads better in one look
            for name, part in self.resources
        )

    def _reaches(self, resource: Served, namespace: str) -> bool:
        if self.scope == "*":
            return True
        is_inside = bool(namespace) and not (resource.plural == _NAMESPACES and not resource.group)
        return is_inside == (self.scope == "Namespaced")


def _has(names: frozenset[str], name: str) -> bool:
    return "*" in names or name in names


@dataclass(frozen=True, slots=True)
class Match:
    """Which requests a webhook, a policy or a binding is for."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    is_exact: bool
    """matchPolicy Exact: requests of an equivalent version do not match."""
    namespaces: LabelSelector
    objects: LabelSelector


@dataclass(frozen=True, slots=True)
class Webhook:
    """One entry of a configuration."""

    configuration: str
    name: str
    endpoint: Endpoint
    timeout: int
    """Seconds."""
    may_fail: bool
    """failurePolicy Ignore: without a response the request continues."""
    match: Match
    conditions: tuple[tuple[str, str], ...]
    """(name, CEL expression)."""
    is_called_again: bool
    """reinvocationPolicy IfNeeded."""
    review_version: str
    """v1 or v1beta1: the first of the versions it accepts that the server speaks."""


def read_configuration(document: Document) -> tuple[Webhook, ...]:
    """Return the webhooks of a configuration, which has been defaulted and validated."""
    name: str = document["metadata"]["name"]
    return tuple(_webhook(name, entry) for entry in document.get("webhooks") or ())


def _webhook(configuration: str, entry: Document) -> Webhook:
    versions: Sequence[str] = entry.get("admissionReviewVersions") or ()
    return Webhook(
        configuration=configuration,
        name=entry["name"],
        endpoint=endpoint_of(entry.get("clientConfig") or {}),
        timeout=entry.get("timeoutSeconds", 10),
        may_fail=entry.get("failurePolicy") == "Ignore",
        match=read_match(entry, "rules"),
        conditions=tuple((c["name"], c["expression"]) for c in entry.get("matchConditions") or ()),
        is_called_again=entry.get("reinvocationPolicy") == "IfNeeded",
        review_version=next((version for version in versions if version in {"v1", "v1beta1"}), "v1"),
    )


def read_match(entry: Document, rules: str, excluded: str = "excludeResourceRules") -> Match:
    """Return the match of a webhook, or of the match resources of a policy or binding; `rules` and `excluded` are names of fields."""
    return Match(
        rules=tuple(_rule(rule) for rule in entry.get(rules) or ()),
        excluded=tuple(_rule(rule) for rule in entry.get(excluded) or ()),
        is_exact=entry.get("matchPolicy") == "Exact",
        namespaces=from_label_selector(entry.get("namespaceSelector") or {}),
        objects=from_label_selector(entry.get("objectSelector") or {}),
    )


def _rule(rule: Document) -> Rule:
    pairs = [str(resource).partition("/") for resource in rule.get("resources") or ()]
    return Rule(
        operations=frozenset(rule.get("operations") or ()),
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        resources=tuple((name, part) for name, _, part in pairs),
        scope=rule.get("scope") or "*",
        names=frozenset(rule.get("resourceNames") or ()),
    )


class Webhooks:
    """All webhooks of one server, following the configurations in its store."""

    def __init__(
        self,
        equivalents: Callable[[str, str], Iterable[tuple[str, str]]],
        *,
        mutates: bool = True,
        validates: bool = True,
    ) -> None:
        self._plurals = [plural for plural, is_on in ((MUTATING, mutates), (VALIDATING, validates)) if is_on]
        self._equivalents = equivalents
        """The (group, plural) pairs under which the same objects are served, e.g. of events."""
        self._by_name: dict[str, dict[Key, tuple[Webhook, ...]]] = {MUTATING: {}, VALIDATING: {}}
        self.mutating: tuple[Webhook, ...] = ()
        self.validating: tuple[Webhook, ...] = ()
        self._wanted: dict[tuple[str, str, str, Operation], bool] = {}

    def follow(self, store: Store) -> None:
        """Read the configurations that are there, and each one that is written from now on."""
        for plural in self._plurals:
            follow(store.table(GROUP, plural), self._by_name[plural], read_configuration, self._order)

    def wants(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        """Tell whether a webhook might be called; False is certain."""
        if not self.mutating and not self.validating:
            return False
        key = (group, plural, subresource, operation)
        wanted = self._wanted.get(key)
        if wanted is None:
            wanted = self._wanted[key] = self._look_up(*key)
        return wanted

    def _look_up(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        if group == GROUP and plural in _EXEMPT:
            return False
        names = {(group, plural), *self._equivalents(group, plural)}
        return any(
            rule.concerns(*name, subresource, operation)
            for webhook in (*self.mutating, *self.validating)
            for rule in webhook.match.rules
            for name in names
        )

    def _order(self) -> None:
        """Sort by the configurations' names; within one, its own order stays."""
        self.mutating = self._sorted(MUTATING)
        self.validating = self._sorted(VALIDATING)
        self._wanted.clear()

    def _sorted(self, plural: str) -> tuple[Webhook, ...]:
        by_name = self._by_name[plural]
        return tuple(webhook for name in sorted(by_name) for webhook in by_name[name])


__all__ = [
    "MUTATING",
    "VALIDATING",
    "Match",
    "Rule",
    "Webhook",
    "Webhooks",
    "read_configuration",
    "read_match",
]
