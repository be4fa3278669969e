"""Admission policies and their bindings: which are there, which are for a request, and with which parameters.

As apiserver's pkg/admission/plugin/policy/generic: each binding of a policy is looked at for itself. A policy acts on the next request after
it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.changes import shown_as
from ctrlruntime.apiserver.admission.following import GROUP, POLICIES, follow
from ctrlruntime.apiserver.admission.matching import Kinds, Matcher, names_of
from ctrlruntime.apiserver.admission.reviews import make_request
from ctrlruntime.apiserver.admission.webhooks import Match, read_match
from ctrlruntime.apiserver.interfaces import NAMESPACES, AdmissionAttributes, Decide, Operation
from ctrlruntime.apiserver.registry.expressions import May, Scope, Variables, all_hold
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Key, Store
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import from_label_selector

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Policy(Generic[_Part]):
    name: str
    match: Match
    may_fail: bool
    """failurePolicy Ignore: a request that cannot be judged is allowed."""
    is_called_again: bool
    """reinvocationPolicy IfNeeded: a mutating policy looks again at what changed after it."""
    scope: Scope
    conditions: tuple[str, ...]
    parts: tuple[_Part, ...]
    """The validations or mutations."""
    params: tuple[str, str, str] | None
    """Group, version and kind of the parameters."""


@dataclass(frozen=True, slots=True)
class Binding:
    name: str
    policy: str
    match: Match | None
    reference: Document | None
    actions: frozenset[str]


@dataclass(frozen=True, slots=True)
class Selected(Generic[_Part]):
    """A policy that is for a request, with one of its bindings."""

    policy: Policy[_Part]
    binding: Binding | None
    """None: the policy itself has a problem."""
    resource: Resource
    """The version under which the request matched."""
    parameters: tuple[Document | None, ...] = ()
    """The policy is evaluated once for each; None where it has none."""
    problem: str = ""
    """Why it cannot be evaluated."""


class ConfigurationError(Exception):
    """A binding that cannot be evaluated for a request."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the expressions of a policy see of a request."""

    scope: Scope
    bindings: Document
    may: May

    def holds(self, conditions: Sequence[str]) -> bool:
        """Tell whether all are true. Raises: ExpressionError."""
        return all_hold(conditions, self.bindings, self.may, self.scope)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Makes the evaluations of a policy for a request: `fixed` is the same in all of them."""

    scope: Scope
    fixed: Document
    may: May

    def evaluation(self, shown: Document | None, parameters: Document | None) -> Evaluation:
        """Return what the policy sees; `shown` is the object in its version."""
        bindings: Document = {**self.fixed, "object": shown}
        if self.scope.has_params:
            bindings["params"] = parameters
        bindings["variables"] = Variables(self.scope, bindings, self.may)
        return Evaluation(self.scope, bindings, self.may)


class PolicyTable(Generic[_Part]):
    """The policies of one plugin."""

    def __init__(
        self,
        kinds: Kinds,
        plural: str,
        read_scope: Callable[[Document], Scope],
        read_parts: Callable[[Document], Iterator[_Part]],
        decide: Decide,
    ) -> None:
        """`read_scope` and `read_parts` take a spec: what its expressions can name, its validations or mutations."""
        self._kinds = kinds
        self._plural = plural
        self._read_scope = read_scope
        self._read_parts = read_parts
        self._decide = decide
        self._matcher = Matcher(kinds)
        self._policies: dict[Key, Policy[_Part]] = {}
        self._bindings: dict[Key, Binding] = {}
        self._bound: dict[str, list[Binding]] = {}
        """The bindings of each policy; both in the order of their names."""
        self._wanted: dict[tuple[str, str, str, Operation], bool] = {}

    def follow(self) -> None:
        """Act on what is in the store, and on each change of it from now on."""
        store, bindings = self._kinds.store, f"{self._plural.removesuffix('ies')}ybindings"
        follow(store.table(GROUP, self._plural), self._policies, self._read, self._wanted.clear)
        follow(store.table(GROUP, bindings), self._bindings, _read_binding, self._bind)

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        if not self._policies or not self._bindings:
            return False
        key = (group, plural, subresource, operation)
        if key not in self._wanted:
            names = {(group, plural), *self._kinds.served_together(group, plural)}
            self._wanted[key] = not (group == GROUP and plural in POLICIES) and any(
                rule.concerns(*name, subresource, operation)
                for policy in self._policies.values()
                for rule in policy.match.rules
                for name in names
            )
        return self._wanted[key]

    def selected(self, attributes: AdmissionAttributes) -> Iterator[Selected[_Part]]:
        """Yield what is for a request, in the order of names. Raises: NotFound without the namespace."""
        for name, bindings in self._bound.items():
            policy = self._policies.get(("", name))
            resource = self._matcher.match(policy.match, attributes) if policy is not None else None
            if policy is None or resource is None:
                continue
            if policy.params is not None and self._kinds.find_kind(*policy.params) is None:
                yield Selected(policy, None, resource, problem=_unknown_kind(*policy.params))
                continue
            for binding in bindings:
                if binding.match is not None and not self._selects(binding.match, attributes):
                    continue
                try:
                    yield Selected(policy, binding, resource, tuple(self._parameters(policy, binding, attributes)))
                except ConfigurationError as error:
                    problem = f"failed to configure binding: {error}"
                    yield Selected(policy, binding, resource, problem=problem)

    async def evaluator(self, selected: Selected[_Part], attributes: AdmissionAttributes) -> Evaluator:
        """Return what makes the evaluations of a policy for a request. Raises: NotFound without the namespace."""
        fixed: Document = {
            "oldObject": await shown_as(attributes, attributes.old, selected.resource),
            "request": make_request(attributes, names_of(selected.resource, attributes), "", None, None),
            "namespaceObject": _namespace(self._kinds.store, attributes),
        }
        return Evaluator(selected.policy.scope, fixed, partial(self._decide, attributes.user))

    def _bind(self) -> None:
        self._wanted.clear()
        self._bound = {}
        for binding in sorted(self._bindings.values(), key=lambda one: (one.policy, one.name)):
            self._bound.setdefault(binding.policy, []).append(binding)

    def _selects(self, match: Match, attributes: AdmissionAttributes) -> bool:
        if match.rules:
            return self._matcher.match(match, attributes) is not None
        return self._matcher.selects(match, attributes)

    # Parameters

    def _parameters(
        self, policy: Policy[_Part], binding: Binding, attributes: AdmissionAttributes
    ) -> list[Document | None]:
        """Return the parameters of a binding; None where its policy has none. Raises: ConfigurationError."""
        resource = None if policy.params is None else self._kinds.find_kind(*policy.params)
        reference = binding.reference
        if resource is None or reference is None:
            return [None]
        namespace = _namespace_of(reference, resource, attributes)
        found: list[Document | None] = [*self._referenced(reference, resource, namespace)]
        if found or reference.get("parameterNotFoundAction") == "Allow":
            return found
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")

    def _referenced(self, reference: Document, resource: Resource, namespace: str) -> Iterator[Document]:
        table = self._kinds.store.table(*resource.stored_as)
        if reference.get("name"):
            record = table.records.get((namespace, reference["name"]))
            records = [] if record is None else [record]
        else:
            selector = from_label_selector(reference.get("selector") or {})
            records = [table.records[key] for key in table.keys(namespace)]
            records = [record for record in records if selector.matches(record.labels)]
        return (resource.tree(record) for record in records)

    def _read(self, document: Document) -> Policy[_Part]:
        spec: Document = document.get("spec") or {}
        kind: Document | None = spec.get("paramKind")
        group, _, version = str((kind or {}).get("apiVersion", "")).rpartition("/")
        return Policy(
            name=document["metadata"]["name"],
            match=read_match(spec.get("matchConstraints") or {}, "resourceRules"),
            may_fail=spec.get("failurePolicy") == "Ignore",
            is_called_again=spec.get("reinvocationPolicy") == "IfNeeded",
            scope=self._read_scope(spec),
            conditions=tuple(one["expression"] for one in spec.get("matchConditions") or ()),
            parts=tuple(self._read_parts(spec)),
            params=None if kind is None else (group, version, kind.get("kind", "")),
        )


def denied(attributes: AdmissionAttributes, text: str, reason: str, code: int = 403) -> APIStatusError:
    """Return the failure of a request that a policy denied."""
    resource: Resource = attributes.resource
    status = dict(failures.forbidden(resource.plural, resource.group, attributes.name or "Unknown", text).status)
    status.update(reason=reason, code=code, details={**status["details"], "causes": [{"message": text}]})
    return APIStatusError.from_status(status)


def _unknown_kind(group: str, version: str, kind: str) -> str:
    shown = f"{group}/{version}, Kind={kind}" if group else f"{version}, Kind={kind}"
    return f"failed to configure policy: failed to find resource referenced by paramKind: '{shown}'"


def _namespace_of(reference: Document, resource: Resource, attributes: AdmissionAttributes) -> str:
    given: str = reference.get("namespace") or ""
    if not resource.namespaced:
        if given:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not given and not attributes.namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return given or attributes.namespace


def _namespace(store: Store, attributes: AdmissionAttributes) -> Document | None:
    """The namespace of the request; null for objects without one, and for namespaces."""
    resource: Resource = attributes.resource
    if not attributes.namespace or resource.stored_as == NAMESPACES:
        return None
    record = store.table(*NAMESPACES).records.get(("", attributes.namespace))
    if record is None:
        raise failures.not_found("namespaces", "", attributes.namespace)
    namespace: Document = record.writer.tree(record)
    return namespace


def _read_binding(document: Document) -> Binding:
    spec: Document = document.get("spec") or {}
    match: Document | None = spec.get("matchResources")
    return Binding(
        name=document["metadata"]["name"],
        policy=spec.get("policyName", ""),
        match=None if match is None else read_match(match, "resourceRules"),
        reference=spec.get("paramRef"),
        actions=frozenset(spec.get("validationActions") or ()),
    )


__all__ = ["Binding", "Evaluation", "Evaluator", "Policy", "PolicyTable", "Selected", "denied"]
