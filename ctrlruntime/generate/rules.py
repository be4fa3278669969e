"""The CEL rules of a schema before a server sees them: whether they are well formed, compile, and cost little enough.

A rule that does not compile is an error. One that may cost too much is a warning with the advice the server gives: bounds for the lists,
maps and texts it goes through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from ctrlruntime import cel
from ctrlruntime.cel.schema_types import declare, most_items, most_properties
from ctrlruntime.cel.types import Type, optional_of
from ctrlruntime.generate.marks import RULES
from ctrlruntime.generate.options import Place, Warn

__all__ = ["RULE_LIMIT", "RuleChecks", "has_rules"]

RULE_LIMIT, _SCHEMA_LIMIT = 10_000_000, 100_000_000
_ADVICE: Final = "Bound its lists, dicts and strings with Field(max_length=…), or simplify the rule"


@dataclass(frozen=True, slots=True)
class _At:
    """A place in the schema: its path, how often it can occur in one object, and the list whose items have no old self."""

    path: str = ""
    count: int = 1
    untracked: str = ""
    is_resource: bool = False


class RuleChecks:
    """Checks the rules of one version."""

    def __init__(self, place: Place, warn: Warn) -> None:
        self._place = place
        self._warn = warn
        self._total = 0

    def check(self, schema: Mapping[str, Any]) -> None:
        """Raise GenerateError for a rule that the API server rejects; warn of rules that may cost too much."""
        if not has_rules(schema):
            return
        try:
            self._visit(schema, _At(is_resource=True))
        except cel.MissingLibraryError as error:
            self._warn(f"{self._place}: the CEL rules were not checked: {error}")
        if self._total > _SCHEMA_LIMIT:
            self._warn(
                f"{self._place}: all rules together may cost {self._total:,}, but the API server allows {_SCHEMA_LIMIT:,}. {_ADVICE}"
            )

    def _visit(self, schema: Mapping[str, Any], at: _At) -> None:
        for rule in schema.get(RULES) or ():
            self._rule(rule, schema, at)
        for name, child in (schema.get("properties") or {}).items():
            self._below(child, replace(at, path=f"{at.path}.{name}"))
        items, values = schema.get("items"), schema.get("additionalProperties")
        if isinstance(items, Mapping):
            known = cast("Mapping[str, Any]", items)
            count = at.count * schema.get("maxItems", most_items(known))
            is_tracked = bool(at.untracked) or schema.get("x-kubernetes-list-type") == "map"
            untracked = at.untracked if is_tracked else at.path
            self._below(known, replace(at, path=f"{at.path}[]", count=count, untracked=untracked))
        if isinstance(values, Mapping):
            known = cast("Mapping[str, Any]", values)
            count = at.count * schema.get("maxProperties", most_properties(known))
            self._below(known, replace(at, path=f"{at.path}{{}}", count=count))

    def _below(self, schema: Mapping[str, Any], at: _At) -> None:
        if has_rules(schema):
            self._visit(schema, replace(at, is_resource=bool(schema.get("x-kubernetes-embedded-resource"))))

    def _rule(self, rule: Mapping[str, Any], schema: Mapping[str, Any], at: _At) -> None:
        text: str = rule["rule"]
        where = self._place.below(at.path)
        what = f"the rule {text!r}"
        message: str = rule.get("message", "")
        if "\n" in message.strip():
            raise where.error(f"{what}: the message has line breaks, which the API server rejects. Remove them")
        if "\n" in text.strip() and not message.strip():
            raise where.error(f"{what} has line breaks, so it requires a message")
        declared = declare(schema, is_resource=at.is_resource)
        if declared is None:
            raise where.error(f"{what} requires a type, but the schema has none here")
        self._compiled(rule, declared, at, where)

    def _compiled(self, rule: Mapping[str, Any], declared: Type, at: _At, where: Place) -> None:
        uses_old = False
        for name, wanted in (("rule", "bool"), ("messageExpression", "string")):
            text: str = rule.get(name, "")
            if not text:
                continue
            old = optional_of(declared) if rule.get("optionalOldSelf") else declared
            try:
                program = cel.compile(text, variables={"self": declared, "oldSelf": old})
            except cel.CompileError as error:
                raise where.error(f"the {name} {text!r} does not compile:\n{error}") from error
            if program.result_type.kind != wanted:
                raise where.error(f"the {name} {text!r} must return a {wanted}, not {program.result_type}")
            self._warn_of_numbers(program, f"{where}: the {name} {text!r}")
            cost = program.cost().most * (at.count if name == "rule" else 1)
            self._total += cost
            if cost > RULE_LIMIT:
                shown = f"{cost:,}" if cost < 2**53 else "any amount"
                self._warn(
                    f"{where}: the {name} {text!r} may cost {shown}, but the API server allows {RULE_LIMIT:,}. {_ADVICE}"
                )
            uses_old = uses_old or (name == "rule" and "oldSelf" in program.used_variables)
        if uses_old and at.untracked:
            raise where.error(
                f"the rule {rule['rule']!r} uses oldSelf below the list {at.untracked.removeprefix('.')}, whose items have no oldSelf. "
                f"Add ListMap to the list"
            )
        if "optionalOldSelf" in rule and not uses_old:
            raise where.error(f"the rule {rule['rule']!r} has optional_old_self, but does not use oldSelf")

    def _warn_of_numbers(self, program: cel.Program, what: str) -> None:
        """Warn of `quantity(self)` for a field that takes numbers too: it has no overload for them, so the object is rejected."""
        if program.calls("type"):  # the rule looks which of the two it is
            return
        for function, argument in dict.fromkeys(program.untyped_arguments("quantity", "isQuantity")):
            self._warn(
                f"{what} rejects a number such as 1: {function}() takes only strings, and the field can be a number. "
                f"Write {function}(string({argument}))"
            )


def has_rules(schema: Mapping[str, Any]) -> bool:
    """Tell whether there is a rule at or below a schema."""
    if schema.get(RULES):
        return True
    children = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(isinstance(child, Mapping) and has_rules(cast("Mapping[str, Any]", child)) for child in children)
