"""ValidatingAdmissionPolicies and their bindings: which are there, and what they say of a request.

As apiserver's pkg/admission/plugin/policy: each binding of a policy is looked at for itself, once for each of its parameters. A policy acts
on the next request after it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.following import GROUP, follow
from ctrlruntime.apiserver.admission.matching import Matcher, has_own_kind, names_of
from ctrlruntime.apiserver.admission.reviews import make_request
from ctrlruntime.apiserver.admission.webhooks import Match, read_match
from ctrlruntime.apiserver.interfaces import NAMESPACES, AdmissionAttributes, Document, Operation
from ctrlruntime.apiserver.registry.admission_policy_validation import scope_of
from ctrlruntime.apiserver.registry.expressions import ExpressionError, Scope, Variables, all_hold, evaluate
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.errors import APIStatusError
from ctrlruntime.selector import from_label_selector

POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
_EXEMPT = frozenset({POLICIES, BINDINGS, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"})
"""What policies never see: one could keep itself from being removed."""
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE = 5 * 1024


class Kinds(Protocol):
    """Which versions a kind is served in, and the objects: the registry."""

    @property
    def store(self) -> Store: ...

    def equivalents(self, resource: Resource) -> Sequence[Resource]: ...

    def served_together(self, group: str, plural: str) -> Sequence[tuple[str, str]]: ...

    def find_kind(self, group: str, version: str, kind: str) -> Resource | None: ...


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: str
    message: str
    message_expression: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Policy:
    name: str
    match: Match
    may_fail: bool
    """failurePolicy Ignore: a request that cannot be judged is allowed."""
    scope: Scope
    conditions: tuple[str, ...]
    validations: tuple[_Validation, ...]
    params: tuple[str, str, str] | None
    """Group, version and kind of the parameters."""


@dataclass(frozen=True, slots=True)
class _Binding:
    name: str
    policy: str
    match: Match | None
    reference: Document | None
    actions: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Denial:
    message: str
    reason: str = "Invalid"


class _ConfigurationError(Exception):
    """A policy or binding that cannot be evaluated for a request."""


class PolicyAdmission:
    """Admission by policies; implements `Admission`. `follow` before the first request."""

    def __init__(self, kinds: Kinds, *, decide: Callable[..., tuple[bool, str]] | None = None) -> None:
        """`decide` answers expressions that check permissions; without it everything is allowed."""
        self._kinds = kinds
        self._decide = decide or (lambda _user, _asked: (True, ""))
        self._matcher = Matcher(kinds.store, kinds.equivalents)
        self._policies: dict[str, _Policy] = {}
        self._bindings: dict[str, _Binding] = {}
        self._wanted: dict[tuple[str, str, str, Operation], bool] = {}

    def follow(self) -> None:
        """Act on what is in the store, and on each change of it from now on."""
        store, changed = self._kinds.store, self._wanted.clear
        follow(store, POLICIES, self._policies, _read_policy, changed)
        follow(store, BINDINGS, self._bindings, _read_binding, changed)

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        if not self._policies or not self._bindings:
            return False
        key = (group, plural, subresource, operation)
        if key not in self._wanted:
            names = {(group, plural), *self._kinds.served_together(group, plural)}
            self._wanted[key] = not (group == GROUP and plural in _EXEMPT) and any(
                rule.concerns(*name, subresource, operation)
                for policy in self._policies.values()
                for rule in policy.match.rules
                for name in names
            )
        return self._wanted[key]

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        del attributes
        return None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raises: APIStatusError of the first denial, in the order of names."""
        denial: APIStatusError | None = None
        for name in sorted(self._policies):
            policy = self._policies[name]
            bindings = self._bindings_of(name)
            resource = self._matcher.match(policy.match, attributes) if bindings else None
            if resource is None:
                continue
            unknown = self._unknown_kind(policy)
            if unknown and not policy.may_fail:
                denial = denial or _failure(policy, None, _Denial(unknown), attributes)
            for binding in () if unknown else bindings:
                found = await self._denied(policy, binding, resource, attributes)
                denial = denial or found
        if denial is not None:
            raise denial

    def _bindings_of(self, policy: str) -> list[_Binding]:
        return sorted((one for one in self._bindings.values() if one.policy == policy), key=lambda one: one.name)

    async def _denied(
        self, policy: _Policy, binding: _Binding, resource: Resource, attributes: AdmissionAttributes
    ) -> APIStatusError | None:
        """Return the failure by one binding, after its warnings."""
        if binding.match is not None and not self._selects(binding.match, attributes):
            return None
        try:
            request = await _Request.of(
                policy, resource, attributes, partial(self._decide, attributes.user), self._kinds
            )
            denials = [
                denial
                for parameters in self._parameters(policy, binding, attributes)
                for denial in request.denials(parameters)
            ]
        except _ConfigurationError as error:
            if policy.may_fail:
                return None
            return _failure(policy, binding, _Denial(f"failed to configure binding: {error}"), attributes)
        if "Warn" in binding.actions:
            attributes.warnings.extend(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': {one.message}"
                for one in denials
            )
        return _failure(policy, binding, denials[0], attributes) if denials and "Deny" in binding.actions else None

    def _unknown_kind(self, policy: _Policy) -> str:
        """Return what is wrong with the kind of a policy's parameters; empty when nothing is."""
        if policy.params is None or self._kinds.find_kind(*policy.params) is not None:
            return ""
        group, version, kind = policy.params
        shown = f"{group}/{version}, Kind={kind}" if group else f"{version}, Kind={kind}"
        return f"failed to configure policy: failed to find resource referenced by paramKind: '{shown}'"

    def _selects(self, match: Match, attributes: AdmissionAttributes) -> bool:
        if match.rules:
            return self._matcher.match(match, attributes) is not None
        return self._matcher.selects(match, attributes)

    # Parameters

    def _parameters(
        self, policy: _Policy, binding: _Binding, attributes: AdmissionAttributes
    ) -> Iterable[Document | None]:
        """Return the parameters of a binding; None where its policy has none. Raises: _ConfigurationError."""
        if policy.params is None:
            return [None]
        resource, reference = self._kinds.find_kind(*policy.params), binding.reference
        if resource is None or reference is None:
            return [None]
        namespace = self._namespace_of(reference, resource, attributes)
        found = list(self._referenced(reference, resource, namespace))
        if found or reference.get("parameterNotFoundAction") == "Allow":
            return found
        raise _ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")

    @staticmethod
    def _namespace_of(reference: Document, resource: Resource, attributes: AdmissionAttributes) -> str:
        given: str = reference.get("namespace") or ""
        if not resource.namespaced:
            if given:
                raise _ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
            return ""
        if not given and not attributes.namespace:
            raise _ConfigurationError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
        return given or attributes.namespace

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


@dataclass(frozen=True, slots=True)
class _Request:
    """A request as the expressions of one policy see it."""

    policy: _Policy
    bindings: Document
    may: Callable[[Mapping[str, str]], tuple[bool, str]]

    @classmethod
    async def of(
        cls,
        policy: _Policy,
        resource: Resource,
        attributes: AdmissionAttributes,
        may: Callable[[Mapping[str, str]], tuple[bool, str]],
        kinds: Kinds,
    ) -> _Request:
        asked: Resource = attributes.resource
        shown = [attributes.object, attributes.old]
        if resource is not asked and not has_own_kind(attributes):
            shown = [await asked.convert(one, resource) if one is not None else None for one in shown]
        bindings: Document = {
            "object": shown[0],
            "oldObject": shown[1],
            "request": make_request(attributes, names_of(resource, attributes), "", None, None),
            "namespaceObject": _namespace(kinds.store, attributes),
        }
        return cls(policy, bindings, may)

    def denials(self, parameters: Document | None) -> Iterator[_Denial]:
        """Yield what the policy says against the request with these parameters."""
        policy, scope = self.policy, self.policy.scope
        bindings: Document = {**self.bindings, **({"params": parameters} if scope.has_params else {})}
        bindings["variables"] = Variables(scope, bindings, self.may)
        try:
            if not all_hold(policy.conditions, bindings, self.may, scope):
                return
        except ExpressionError as error:
            if not policy.may_fail:
                yield _Denial(str(error))
            return
        for validation in policy.validations:
            try:
                if all_hold((validation.expression,), bindings, self.may, scope):
                    continue
            except ExpressionError as error:
                if not policy.may_fail:
                    yield _Denial(str(error))
                continue
            yield _Denial(self._message(validation, bindings), validation.reason)

    def _message(self, validation: _Validation, bindings: Document) -> str:
        if validation.message_expression:
            try:
                found = evaluate(validation.message_expression, bindings, self.may, self.policy.scope)
            except ExpressionError:  # upstream logs it
                found = None
            if isinstance(found, str) and _is_message(found.strip()):
                return found.strip()
        return validation.message.strip() or f"failed expression: {validation.expression.strip()}"


def _is_message(text: str) -> bool:
    return bool(text) and len(text) <= _LONGEST_MESSAGE and "\n" not in text


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


def _failure(
    policy: _Policy, binding: _Binding | None, denial: _Denial, attributes: AdmissionAttributes
) -> APIStatusError:
    resource: Resource = attributes.resource
    bound = f" with binding '{binding.name}'" if binding else ""
    text = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {denial.message}"
    status = dict(failures.forbidden(resource.plural, resource.group, attributes.name or "Unknown", text).status)
    status["reason"] = denial.reason
    status["code"] = _CODES.get(denial.reason, 422)
    status["details"] = {**status["details"], "causes": [{"message": text}]}
    return APIStatusError.from_status(status)


def _read_policy(document: Document) -> _Policy:
    spec: Document = document.get("spec") or {}
    kind: Document | None = spec.get("paramKind")
    group, _, version = str((kind or {}).get("apiVersion", "")).rpartition("/")
    return _Policy(
        name=document["metadata"]["name"],
        match=read_match(spec.get("matchConstraints") or {}, "resourceRules"),
        may_fail=spec.get("failurePolicy") == "Ignore",
        scope=scope_of(spec),
        conditions=tuple(one["expression"] for one in spec.get("matchConditions") or ()),
        validations=tuple(
            _Validation(
                one["expression"],
                one.get("message", ""),
                one.get("messageExpression", ""),
                one.get("reason") or "Invalid",
            )
            for one in spec.get("validations") or ()
        ),
        params=None if kind is None else (group, version, kind.get("kind", "")),
    )


def _read_binding(document: Document) -> _Binding:
    spec: Document = document.get("spec") or {}
    match: Document | None = spec.get("matchResources")
    return _Binding(
        name=document["metadata"]["name"],
        policy=spec.get("policyName", ""),
        match=None if match is None else read_match(match, "resourceRules"),
        reference=spec.get("paramRef"),
        actions=frozenset(spec.get("validationActions") or ()),
    )


__all__ = ["BINDINGS", "POLICIES", "PolicyAdmission"]
