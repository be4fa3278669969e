"""Whether a definition's CEL rules compile and cost little enough; what is wrong comes with upstream's texts and paths.

A cost is what one rule can cost at most, times how often its place in the schema can occur in one object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, not_supported, required
from ctrlruntime.schema.rules import RULES, children, has_rules, normalized_path, variables_of

if TYPE_CHECKING:
    from ctrlruntime.cel import Program, Type

RULE_LIMIT, SCHEMA_LIMIT = 10_000_000, 100_000_000
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ADVICE = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
_ALL = 2**64 - 1
_WORST = 4  # how many of the dearest rules are named


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema stands: its path, how often it can occur (None: nobody says), and the list its items cannot be told apart in."""

    path: str
    count: int | None = 1
    uncorrelatable: str = ""
    is_resource: bool = False


@dataclass(slots=True)
class _Costs:
    total: int = 0
    rules: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def add(self, path: str, cost: int) -> None:
        self.total = min(_ALL, self.total + cost)
        if cost >= SCHEMA_LIMIT // 100:
            self.rules.append((cost, path))


def check_rules(schema: Mapping[str, Any], path: str, refused: Sequence[str] = ()) -> list[StatusCause]:
    """Return what is wrong with the rules of a schema, which must be structural.

    A rule of a part at or below which a field is `refused` is not looked at.
    """
    if not has_rules(schema):
        return []
    costs = _Costs()
    causes = list(_check(schema, _Place(path, is_resource=True), costs, refused))
    if costs.total > SCHEMA_LIMIT:
        text = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        worst = sorted(costs.rules, key=lambda rule: -rule[0])[:_WORST]
        causes += [forbidden_field(where, text) for _, where in worst]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        causes.append(forbidden_field(path, _too_dear(name, costs.total, SCHEMA_LIMIT)))
    return causes


def _check(schema: Mapping[str, Any], place: _Place, costs: _Costs, refused: Sequence[str]) -> Iterator[StatusCause]:
    for below, child in children(schema):
        if has_rules(child):
            yield from _check(child, _inside(schema, child, place, below), costs, refused)
    rules: list[Mapping[str, Any]] = schema.get(RULES) or []
    if rules and not any(field.startswith(place.path) for field in refused):
        yield from _compiled(schema, rules, place, costs)


def _inside(schema: Mapping[str, Any], child: Mapping[str, Any], place: _Place, below: str) -> _Place:
    inner = replace(place, path=place.path + below, is_resource=bool(child.get("x-kubernetes-embedded-resource")))
    if below in {".items", ".additionalProperties"}:
        limit = schema.get("maxItems" if below == ".items" else "maxProperties")
        count = None if limit is None or place.count is None else min(_ALL, place.count * max(0, limit))
        inner = replace(inner, count=count)
    if below == ".items" and schema.get("x-kubernetes-list-type") != "map" and not place.uncorrelatable:
        inner = replace(inner, uncorrelatable=place.path)
    return inner


def form_causes(schema: Mapping[str, Any], path: str, *, has_paths: bool) -> Iterator[StatusCause]:
    """Yield what is wrong with the rules of the schema at `path` before they are compiled; `has_paths`: its fields are known."""
    for index, rule in enumerate(schema.get(RULES) or ()):
        yield from _form(rule, schema if has_paths else None, f"{path}.{RULES}[{index}]")


def _form(rule: Mapping[str, Any], schema: Mapping[str, Any] | None, path: str) -> Iterator[StatusCause]:
    text, message = rule.get("rule", "").strip(), rule.get("message", "")
    if not text:
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid_value(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid_value(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in text and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", rule["reason"], _REASONS)
    where = rule.get("fieldPath", "")
    if where and not where.strip():
        yield invalid_value(f"{path}.fieldPath", where, "must be non-empty if specified")
    if "\n" in where:
        yield invalid_value(f"{path}.fieldPath", where, "must not contain line breaks")
    if where and schema is not None and normalized_path(where, schema) is None:
        yield invalid_value(f"{path}.fieldPath", where, "must be a valid path")


def _compiled(
    schema: Mapping[str, Any], rules: list[Mapping[str, Any]], place: _Place, costs: _Costs
) -> Iterator[StatusCause]:
    from ctrlruntime.cel import MissingLibraryError
    from ctrlruntime.cel.schema_types import declare, most_items

    declared = declare(schema, is_resource=place.is_resource, name=_type_name())
    if declared is None:
        text = (
            "Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: "
        )
        text += "unable to convert structural schema to CEL declarations"
        yield StatusCause("InternalError", text, f"{place.path}.{RULES}")
        return
    count = place.count if place.count is not None else most_items(schema)
    for index, rule in enumerate(rules):
        path = f"{place.path}.{RULES}[{index}]"
        try:
            yield from _Check(rule, declared, place, path, count, costs).causes()
        except MissingLibraryError as error:
            yield StatusCause("InternalError", f"Internal error: {error}", f"{path}.rule")


def _type_name() -> str:
    """Return a name for the type of `self`, a new one each time, as upstream has it."""
    return f"selfType{time.time_ns() % 1_000_000_000}"


@dataclass(slots=True)
class _Check:
    """One rule that is well formed."""

    rule: Mapping[str, Any]
    type: Type
    place: _Place
    path: str
    count: int
    costs: _Costs

    def causes(self) -> Iterator[StatusCause]:
        program, problem = self._compile(self.rule["rule"], "")
        if problem:
            yield self._refused("rule", problem)
        elif program is not None and program.result_type.kind != "bool":
            yield self._refused("rule", "cel expression must evaluate to a bool")
            program = None
        if program is not None:
            yield from self._cost(program, "rule", self.count)
            yield from self._message()
        yield from self._old_self(program)

    def _compile(self, text: str, prefix: str) -> tuple[Program | None, str]:
        from ctrlruntime import cel

        variables = variables_of(self.type, optional_old_self=bool(self.rule.get("optionalOldSelf")))
        try:
            return cel.compile(text, variables=variables), ""
        except cel.InstantiationError as error:
            return None, f"{prefix or 'program '}instantiation failed: {error}"
        except cel.CompileError as error:
            return None, f"{prefix}compilation failed: {error}"

    def _message(self) -> Iterator[StatusCause]:
        text: str = self.rule.get("messageExpression", "")
        if not text:
            return
        program, problem = self._compile(text, "messageExpression ")
        if problem:
            yield self._refused("messageExpression", problem)
        elif program is not None and program.result_type.kind != "string":
            yield self._refused("messageExpression", "messageExpression must evaluate to a string")
        elif program is not None:
            yield from self._cost(program, "messageExpression", 1)

    def _cost(self, program: Program, name: str, count: int) -> Iterator[StatusCause]:
        cost = min(_ALL, program.cost().most * count)
        if cost > RULE_LIMIT:
            yield forbidden_field(f"{self.path}.{name}", _too_dear(f"estimated {name} cost", cost, RULE_LIMIT))
        self.costs.add(f"{self.path}.{name}", cost)

    def _old_self(self, program: Program | None) -> Iterator[StatusCause]:
        if program is not None and "oldSelf" in program.used_variables:
            if self.place.uncorrelatable:
                text = "oldSelf cannot be used on the uncorrelatable portion of the schema within "
                text += self.place.uncorrelatable
                yield invalid_value(f"{self.path}.rule", self.rule["rule"], text)
        elif self.rule.get("optionalOldSelf") is not None:
            text = "may not be set if oldSelf is not used in rule"
            yield invalid_value(f"{self.path}.optionalOldSelf", self.rule["optionalOldSelf"], text)

    def _refused(self, name: str, text: str) -> StatusCause:
        return StatusCause("FieldValueInvalid", f"Invalid value: {_as_go(self.rule)}: {text}", f"{self.path}.{name}")


def _as_go(rule: Mapping[str, Any]) -> str:
    """Return a rule as upstream prints its own type."""
    shown = {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    text = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
    return escaped(text)


def escaped(text: str) -> str:
    """Return JSON with the escapes of Go's encoding/json, which keep it safe inside HTML."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _too_dear(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    digits = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    shown = "more than 100x" if factor > 100 else digits
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"
