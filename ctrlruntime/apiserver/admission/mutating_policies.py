"""MutatingAdmissionPolicies: how they change the object of a request (apiserver's pkg/admission/plugin/policy/mutating)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ctrlruntime.apiserver.admission.changes import Shown
from ctrlruntime.apiserver.admission.matching import Kinds
from ctrlruntime.apiserver.admission.policies import Evaluation, PolicyTable, Selected, denied
from ctrlruntime.apiserver.apply.merge import merge
from ctrlruntime.apiserver.apply.types import Type
from ctrlruntime.apiserver.apply.validation import problems
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Decide, Operation, Turns, allow_all
from ctrlruntime.apiserver.registry.admission_policy_validation import mutation_scope_of
from ctrlruntime.apiserver.registry.expressions import ExpressionError, evaluate
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.errors import APIStatusError, PatchError
from ctrlruntime.patch import FailedTestError
from ctrlruntime.schema.trees import Document


@dataclass(frozen=True, slots=True)
class _Mutation:
    expression: str
    is_json_patch: bool


class _MutationError(Exception):
    """A change that cannot be made; the text is upstream's."""


class MutatingPolicies:
    """Admission by policies; implements `Admission`. `follow` before the first request."""

    def __init__(
        self,
        kinds: Kinds,
        type_of: Callable[[Resource], Type],
        *,
        decide: Decide = allow_all,
    ) -> None:
        """`type_of` says how the fields of a kind merge; `decide` answers expressions that check permissions."""
        self._type_of = type_of
        self._table = PolicyTable(kinds, "mutatingadmissionpolicies", mutation_scope_of, _mutations, decide)

    def follow(self) -> None:
        """Act on what is in the store, and on each change of it from now on."""
        self._table.follow()

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        return self._table.is_wanted(group, plural, subresource, operation)

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        """Return the changed object, or None when it stays as it is. Raises: APIStatusError."""
        if attributes.object is None:
            return None
        rounds = attributes.reinvocation
        shown, turns = Shown(attributes), rounds.begin(self, attributes.object)
        has_run = False
        for selected in self._table.selected(attributes):
            has_run |= await self._run(selected, attributes, shown, turns)
        if has_run:  # not only the ones before a change, as for webhooks
            turns.changed()
            rounds.is_needed = True
        found = await shown.finished()
        turns.end(attributes.object if found is None else found)
        return found

    async def validate(self, attributes: AdmissionAttributes) -> None:
        del attributes

    async def _run(
        self, selected: Selected[_Mutation], attributes: AdmissionAttributes, shown: Shown, turns: Turns
    ) -> bool:
        """Evaluate a policy with each of its parameters; tell whether a mutation was made. Raises: APIStatusError."""
        policy = selected.policy
        if selected.problem and not policy.may_fail:
            raise _refusal(selected, selected.problem, "Forbidden", attributes)
        if selected.problem or not selected.parameters:
            return False
        await shown.show_as(selected.resource)
        evaluator = await self._table.evaluator(selected, attributes)
        has_run = False
        for parameters in selected.parameters:
            try:
                if not evaluator.evaluation(shown.object, parameters).holds(policy.conditions):
                    continue
            except ExpressionError as error:
                if not policy.may_fail:
                    raise _refusal(selected, str(error), "Invalid", attributes) from None
                continue
            turn = (policy.name, selected.binding and selected.binding.name, _named(parameters))
            if attributes.reinvocation.is_second and turn not in turns.due:
                continue
            for mutation in policy.parts:
                try:
                    self._change(mutation, evaluator.evaluation(shown.object, parameters), shown)
                    has_run = True
                except _MutationError as error:
                    if not policy.may_fail:
                        raise _refusal(selected, str(error), "Invalid", attributes) from None
            if policy.is_called_again:
                turns.called.add(turn)
        return has_run

    def _change(self, mutation: _Mutation, seen: Evaluation, shown: Shown) -> None:
        """Raises: _MutationError, and APIStatusError when the result cannot be read."""
        from ctrlruntime.apiserver.admission.mutation_values import ConversionError, configuration, operation

        try:
            value = evaluate(mutation.expression, seen.bindings, seen.may, seen.scope)
        except ExpressionError as error:
            raise _MutationError(f"expression '{mutation.expression}' resulted in error: {error}") from None
        try:
            if mutation.is_json_patch:
                self._patch([operation(one) for one in value], shown)
                return
            patch = configuration(value)
        except ConversionError as error:
            raise _MutationError(str(error)) from None
        assert shown.object is not None
        if shown.is_fixed:
            group, version, kind = shown.kind
            text = f"no corresponding type for {group}/{version}, Kind={kind}"
            raise _MutationError(f"error applying patch: failed to convert patch object to typed object: {text}")
        shown.become(_merged(self._type_of(shown.resource), shown.object, patch))

    @staticmethod
    def _patch(operations: list[Document], shown: Shown) -> None:
        try:
            shown.patch(operations, is_strict=True)
        except FailedTestError:
            pass
        except PatchError as error:
            raise _MutationError(f"JSON Patch: {error}") from None


def _named(parameters: Document | None) -> tuple[str, str]:
    metadata = (parameters or {}).get("metadata") or {}
    return metadata.get("namespace", ""), metadata.get("name", "")


def _merged(root: Type, live: Document, patch: Document) -> Document:
    """Return the object with a configuration applied; lists and maps that are one value stay. Raises: _MutationError."""
    head = {key: live[key] for key in ("apiVersion", "kind") if key in live}
    wrong = problems(root, {**patch, **head})
    if wrong:
        listed = wrong[0] if len(wrong) == 1 else "errors:\n" + "\n".join(f"  {line}" for line in wrong)
        raise _MutationError(f"error applying patch: failed to convert patch object to typed object: {listed}")
    atomic = list(_atomic(root, patch, ""))
    if atomic:
        text = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise _MutationError(f"error applying patch: invalid ApplyConfiguration: {text}")
    merged: Document = merge(root, live, {**patch, **head})
    return merged


def _atomic(kind: Type, value: Any, path: str) -> Iterator[str]:
    """Yield the paths of what a configuration would replace as a whole."""
    if type(value) is dict and kind.is_map:
        if not kind.has_fields:
            yield path
            return
        for name in (name for name in value if name in kind.fields):
            yield from _atomic(kind.fields[name], value[name], f"{path}.{name}")
    elif type(value) is list and kind.list_mode:
        if not kind.has_items or kind.item is None:
            yield path
            return
        for index, inner in enumerate(value):
            yield from _atomic(kind.item, inner, f"{path}[{index}]")


def _refusal(selected: Selected[_Mutation], why: str, reason: str, attributes: AdmissionAttributes) -> APIStatusError:
    name = selected.policy.name
    head = f"policy '{name}' with binding '{selected.binding.name}'" if selected.binding else f'policy "{name}"'
    text = f"{head} denied request: {why}"
    failure = denied(attributes, text, reason)
    return APIStatusError.from_status({**failure.status, "message": text})


def _mutations(spec: Document) -> Iterator[_Mutation]:
    for one in spec.get("mutations") or ():
        is_json_patch = one.get("patchType") == "JSONPatch"
        holder: Document = one.get("jsonPatch" if is_json_patch else "applyConfiguration") or {}
        yield _Mutation(holder.get("expression", ""), is_json_patch)


__all__ = ["MutatingPolicies"]
