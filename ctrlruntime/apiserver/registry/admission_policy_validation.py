"""Validation of admission policies and their bindings, with kube-apiserver's words.

The rules are those of pkg/apis/admissionregistration/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ctrlruntime.apiserver.registry.condition_validation import common_conditions_causes
from ctrlruntime.apiserver.registry.expressions import Scope, is_identifier, problem
from ctrlruntime.apiserver.registry.trees import items
from ctrlruntime.apiserver.registry.webhook_validation import conditions_causes, rule_causes
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import duplicate, forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.trees import Document
from ctrlruntime.schema.values import (
    choice_causes,
    kind_causes,
    label_1035_problems,
    qualified_name_causes,
    selector_causes,
    spec_of,
    subdomain_causes,
    subdomain_problems,
)

_ACTIONS: Final = ("Audit", "Deny", "Warn")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MUTATED: Final = ("*", "CONNECT", "CREATE", "UPDATE")
_PATCHES: Final = {
    "ApplyConfiguration": ("applyConfiguration", "Object"),
    "JSONPatch": ("jsonPatch", "list(JSONPatch)"),
}
"""Types of mutations: the field that has the expression of each, and the type of its value."""
_EMPTY: Final = "validations or auditAnnotations must contain at least one item"


def validating_policy_status_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    status: Document = document.get("status") or {}
    for index, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
        path = f"status.typeChecking.expressionWarnings[{index}]"
        yield from (required(f"{path}.{name}") for name in ("warning", "fieldRef") if not warning.get(name, "").strip())
    yield from common_conditions_causes(status.get("conditions") or (), "status.conditions")


def validating_policy_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from _policy_causes(spec)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", _EMPTY)
        yield required("spec.auditAnnotations", _EMPTY)
    scope = scope_of(spec)
    for index, validation in enumerate(items(spec, "validations")):
        yield from _validation_causes(validation, f"spec.validations[{index}]", scope)
    keys: set[str] = set()
    for index, annotation in enumerate(items(spec, "auditAnnotations")):
        where, key = f"spec.auditAnnotations[{index}]", annotation.get("key", "")
        yield from qualified_name_causes(f"{document['metadata'].get('name', '')}/{key}", f"{where}.key")
        if not annotation.get("valueExpression", "").strip():
            yield required(f"{where}.valueExpression", "valueExpression is not specified")
        else:
            yield from _expression_causes(annotation, "valueExpression", where, scope, ("string", "null_type"))
        if key in keys:
            yield duplicate(f"{where}.key", key)
        keys.add(key)


def mutating_policy_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from _policy_causes(spec)
    yield from _mutated_causes(spec.get("matchConstraints"), "spec.matchConstraints")
    if not spec.get("mutations"):
        yield required("spec.mutations", "mutations must contain at least one item")
    scope = mutation_scope_of(spec)
    for index, mutation in enumerate(items(spec, "mutations")):
        yield from _mutation_causes(mutation, f"spec.mutations[{index}]", scope)
    policy = spec.get("reinvocationPolicy")
    if not policy:
        yield required("spec.reinvocationPolicy")
    else:
        yield from choice_causes(policy, "spec.reinvocationPolicy", ("IfNeeded", "Never"))


def validating_binding_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    spec = spec_of(document)
    yield from _binding_causes(spec)
    actions = spec.get("validationActions") or []
    for index, action in enumerate(actions):
        where = f"spec.validationActions[{index}]"
        yield from choice_causes(action, where, _ACTIONS)
        if action in actions[:index]:
            yield duplicate(where, action)
    if {"Deny", "Warn"} <= {*actions}:
        why = "repeating the same validation failure information in the API response and headers serves no purpose"
        yield invalid_value("spec.validationActions", actions, f"must not contain both Deny and Warn ({why})")
    if not actions:
        yield required("spec.validationActions", "at least one validation action is required")


def mutating_binding_causes(document: Document, _: Document | None) -> Iterator[StatusCause]:
    yield from _binding_causes(spec_of(document))
    yield from _mutated_causes(spec_of(document).get("matchResources"), "spec.matchResources")


def _policy_causes(spec: Document) -> Iterator[StatusCause]:
    yield from choice_causes(spec.get("failurePolicy"), "spec.failurePolicy", ("Fail", "Ignore"))
    kind = spec.get("paramKind")
    if kind is not None:
        yield from _parameter_kind_causes(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        yield required("spec.matchConstraints")
    else:
        yield from _match_causes(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")
    scope = scope_of(spec)
    without = replace(scope, composed=None)
    yield from conditions_causes(spec.get("matchConditions") or [], "spec.matchConditions", without)
    for index, variable in enumerate(items(spec, "variables")):
        where, name = f"spec.variables[{index}]", variable.get("name", "")
        if not name.strip():
            yield required(f"{where}.name", "name is not specified")
        elif not is_identifier(name):
            yield invalid_value(f"{where}.name", name, "must be a valid CEL identifier")
        if not variable.get("expression", "").strip():
            yield required(f"{where}.expression", "expression is not specified")
        else:
            yield from _expression_causes(variable, "expression", where, scope.before(name), ())


def _parameter_kind_causes(kind: Document, path: str) -> Iterator[StatusCause]:
    api_version = kind.get("apiVersion", "")
    group, _, version = api_version.rpartition("/")
    if not api_version:
        yield required(f"{path}.apiVersion")
    elif "/" in group:
        yield invalid_value(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    else:
        problems = subdomain_problems(group) if group else []
        if problems:
            yield invalid_value(f"{path}.apiVersion", group, ",".join(problems))
        problems = label_1035_problems(version)
        if not version:
            yield invalid_value(f"{path}.apiVersion", api_version, "version must be specified")
        elif problems:
            yield invalid_value(f"{path}.apiVersion", version, ",".join(problems))
    if not kind.get("kind"):
        yield required(f"{path}.kind")
    else:
        yield from kind_causes(kind["kind"], f"{path}.kind")


def _binding_causes(spec: Document) -> Iterator[StatusCause]:
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from subdomain_causes(spec["policyName"], "spec.policyName")
    if spec.get("paramRef") is not None:
        yield from _reference_causes(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        yield from _match_causes(spec["matchResources"], "spec.matchResources")


def _reference_causes(reference: Document, path: str) -> Iterator[StatusCause]:
    name, selector, action = (reference.get(key) for key in ("name", "selector", "parameterNotFoundAction"))
    has_both = name and selector is not None
    if has_both:
        yield forbidden_field(f"{path}.name", "name and selector are mutually exclusive")
    yield from selector_causes(selector, f"{path}.selector")
    if has_both:
        yield forbidden_field(f"{path}.selector", "name and selector are mutually exclusive")
    elif not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    else:
        yield from choice_causes(action, f"{path}.parameterNotFoundAction", ("Deny", "Allow"))


def _match_causes(match: Document, path: str) -> Iterator[StatusCause]:
    yield from choice_causes(match.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_causes(match.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(items(match, name)):
            where, names = f"{path}.{name}[{index}]", rule.get("resourceNames") or []
            for number, each in enumerate(names):
                if each in names[:number]:
                    yield duplicate(f"{where}.resourceNames[{number}]", each)
            yield from rule_causes(rule, where)


def _mutated_causes(match: Document | None, path: str) -> Iterator[StatusCause]:
    """What is deleted can not be mutated."""
    for rule in items(match or {}, "resourceRules"):
        for operation in rule.get("operations") or ():
            if operation not in _MUTATED:
                yield not_supported(f"{path}.resourceRules.operations", operation, _MUTATED)


def scope_of(spec: Document) -> Scope:
    """Return what the expressions of a policy can name."""
    composed = tuple((one.get("name", ""), one.get("expression", "")) for one in items(spec, "variables"))
    return Scope(spec.get("paramKind") is not None, composed or None)


def mutation_scope_of(spec: Document) -> Scope:
    """Return what the mutations of a policy can name: `variables` always, and the literals of changes."""
    scope = scope_of(spec)
    return replace(scope, mutates=True, composed=scope.composed or ())


def _expression_causes(
    holder: Document, field: str, path: str, scope: Scope, results: Sequence[str]
) -> Iterator[StatusCause]:
    expression = holder.get(field, "")
    found = problem(expression, scope, results)
    if found:
        yield invalid_value(f"{path}.{field}", expression, found)


def _validation_causes(validation: Document, path: str, scope: Scope) -> Iterator[StatusCause]:
    message, expression = validation.get("message", ""), validation.get("messageExpression", "")
    if not validation.get("expression", "").strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _expression_causes(validation, "expression", path, scope, ("bool",))
    if expression and not expression.strip():
        yield invalid_value(f"{path}.messageExpression", expression, "must be non-empty if specified")
    elif expression:
        scope = replace(scope, has_authorizer=False)
        yield from _expression_causes(validation, "messageExpression", path, scope, ("string",))
    if message and not message.strip():
        yield invalid_value(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield invalid_value(f"{path}.message", message, "must not contain line breaks")
    if validation.get("reason") is not None and validation["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", validation["reason"], _REASONS)


def _mutation_causes(mutation: Document, path: str, scope: Scope) -> Iterator[StatusCause]:
    kind = mutation.get("patchType")
    if not kind:
        yield required(f"{path}.patchType")
    elif kind not in _PATCHES:
        yield not_supported(f"{path}.patchType", kind, tuple(_PATCHES))
    else:
        for other, (field, result) in _PATCHES.items():
            given: Document | None = mutation.get(field)
            if other == kind and given is None:
                yield required(f"{path}.{field}", f"must be specified when patchType is {kind}")
            elif other == kind and given is not None and not given.get("expression", "").strip():
                yield required(f"{path}.{field}.expression")
            elif other == kind and given is not None:
                yield from _expression_causes(given, "expression", f"{path}.{field}", scope, (result,))
            elif given is not None:
                yield invalid_value(
                    f"{path}.{field}", f"{{{field}}}", f"must not be specified when patchType is {kind}"
                )
