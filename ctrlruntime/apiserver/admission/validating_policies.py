"""ValidatingAdmissionPolicies: what they say of a request (apiserver's pkg/admission/plugin/policy/validating)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from ctrlruntime.apiserver.admission.changes import shown_as
from ctrlruntime.apiserver.admission.matching import Kinds
from ctrlruntime.apiserver.admission.policies import Evaluation, Policy, PolicyTable, Selected, denied
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Decide, Operation, allow_all
from ctrlruntime.apiserver.registry.admission_policy_validation import scope_of
from ctrlruntime.apiserver.registry.expressions import ExpressionError, evaluate
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
_LONGEST_MESSAGE = 5 * 1024


@dataclass(frozen=True, slots=True)
class _Validation:
    expression: str
    message: str
    message_expression: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Denial:
    message: str
    reason: str = "Invalid"


class ValidatingPolicies:
    """Admission by policies; implements `Admission`. `follow` before the first request."""

    def __init__(
        self,
        kinds: Kinds,
        *,
        decide: Decide = allow_all,
    ) -> None:
        """`decide` answers expressions that check permissions."""
        self._table = PolicyTable(kinds, "validatingadmissionpolicies", scope_of, _validations, decide)

    def follow(self) -> None:
        """Act on what is in the store, and on each change of it from now on."""
        self._table.follow()

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        return self._table.is_wanted(group, plural, subresource, operation)

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        del attributes
        return None

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raises: APIStatusError of the first denial, in the order of names."""
        refusal: APIStatusError | None = None
        for selected in self._table.selected(attributes):
            denials = [denial async for denial in self._denials(selected, attributes)]
            actions = selected.binding.actions if selected.binding is not None else frozenset({"Deny"})
            if selected.binding is not None and not selected.problem and "Warn" in actions:
                head = f"Validation failed for ValidatingAdmissionPolicy '{selected.policy.name}'"
                head = f"{head} with binding '{selected.binding.name}'"
                attributes.warnings.extend(f"{head}: {one.message}" for one in denials)
            if denials and refusal is None and ("Deny" in actions or selected.problem):
                refusal = _failure(selected, denials[0], attributes)
        if refusal is not None:
            raise refusal

    async def _denials(
        self, selected: Selected[_Validation], attributes: AdmissionAttributes
    ) -> AsyncIterator[_Denial]:
        """Yield what one binding says against the request."""
        policy = selected.policy
        if selected.problem and not policy.may_fail:
            yield _Denial(selected.problem)
        if not selected.parameters:
            return
        shown = await shown_as(attributes, attributes.object, selected.resource)
        evaluator = await self._table.evaluator(selected, attributes)
        for parameters in selected.parameters:
            for denial in _judge(policy, evaluator.evaluation(shown, parameters)):
                yield denial


def _judge(policy: Policy[_Validation], evaluation: Evaluation) -> Iterator[_Denial]:
    try:
        if not evaluation.holds(policy.conditions):
            return
    except ExpressionError as error:
        if not policy.may_fail:
            yield _Denial(str(error))
        return
    for validation in policy.parts:
        try:
            if evaluation.holds((validation.expression,)):
                continue
        except ExpressionError as error:
            if not policy.may_fail:
                yield _Denial(str(error))
            continue
        yield _Denial(_message(validation, evaluation), validation.reason)


def _message(validation: _Validation, evaluation: Evaluation) -> str:
    if validation.message_expression:
        try:
            found = evaluate(validation.message_expression, evaluation.bindings, evaluation.may, evaluation.scope)
        except ExpressionError:  # upstream logs it
            found = None
        if isinstance(found, str) and _is_message(found.strip()):
            return found.strip()
    return validation.message.strip() or f"failed expression: {validation.expression.strip()}"


def _is_message(text: str) -> bool:
    return bool(text) and len(text) <= _LONGEST_MESSAGE and "\n" not in text


def _failure(selected: Selected[_Validation], denial: _Denial, attributes: AdmissionAttributes) -> APIStatusError:
    bound = f" with binding '{selected.binding.name}'" if selected.binding else ""
    text = f"ValidatingAdmissionPolicy '{selected.policy.name}'{bound} denied request: {denial.message}"
    return denied(attributes, text, denial.reason, _CODES.get(denial.reason, 422))


def _validations(spec: Document) -> Iterator[_Validation]:
    for one in spec.get("validations") or ():
        yield _Validation(
            one["expression"], one.get("message", ""), one.get("messageExpression", ""), one.get("reason") or "Invalid"
        )


__all__ = ["ValidatingPolicies"]
