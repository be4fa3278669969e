"""Checks a schema as the API server will, before it gets one, and says where in the class the mistake is.

The walk over classes cannot make most of these mistakes; hooks, overrides and markers can. Everything that the API server rejects is an
error. What it ignores, and what may cost too much, is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ctrlruntime.errors import GenerateError, StatusCause
from ctrlruntime.generate.marks import RULES
from ctrlruntime.generate.options import Place, Warn
from ctrlruntime.schema.definition_rules import check_schema as causes_of
from ctrlruntime.schema.definition_rules import unrecognized_formats
from ctrlruntime.schema.rule_checks import check_rules
from ctrlruntime.schema.rules import RuleNode, children, compile_rules

__all__ = ["check_schema"]

_DROPPED: Final = ("$defs", "const", "prefixItems")
"""Words of JSON Schema that the API server drops without a message."""
_BOUNDS: Final = (("minimum", "maximum"), *((f"min{one}", f"max{one}") for one in ("Length", "Items", "Properties")))
_ADVICE: Final = (
    (r"items: Required value: must be specified", "The list has no type for its items. Use list[X]"),
    (r"type: Required value: must not be empty", "Add SchemaType('…') or PreserveUnknownFields"),
    (r"uniqueItems: ", "Use set[X], or ListSet"),
    (r"(items|map-type): .*x-kubernetes-list-type=set", "The items of a set must be scalars. Use ListMap('key')"),
    (r"oldSelf cannot be used", "The items of the list have no oldSelf. Add ListMap to the list"),
    (r"optionalOldSelf: .*may not be set", "Remove optional_old_self"),
)
"""What to do in Python about what the API server says; patterns of a field and a message."""
_COST: Final = re.compile(r"exceeds budget|exceeding cost limit")
_UNCOMPILED: Final = "rule compile error: "
_BOUND_ADVICE: Final = "Bound its lists, dicts and strings with Field(max_length=…), or simplify the rule"
_STEPS: Final = (
    (re.compile(r"properties\[([^]]*)\]"), r"\1"),
    (re.compile(r"\.items\b"), "[]"),
    (re.compile(r"\.additionalProperties\b"), "{}"),
)
_STRUCTURE: Final = re.compile(r"(?:\.?(?:properties\[[^]]*\]|items\b|additionalProperties\b))*")
_RULE: Final = re.compile(rf"{RULES}\[(\d+)\]\.(\w+)$")
_SHOWN: Final = re.compile(r'^Invalid value: (?:\{.*?\}|"(?:[^"\\]|\\.)*"|true|false): ', re.DOTALL)


def check_schema(schema: Mapping[str, Any], place: Place, warn: Warn) -> None:
    """Raise GenerateError for what the API server rejects; warn of what it ignores or what may cost too much."""
    _check_words(schema, place)
    for form in unrecognized_formats(schema):
        warn(f"{place}: the API server does not support the format {form!r}, so it does not check the value")
    is_checked = True
    causes = causes_of(schema, "")
    if any(
        _UNCOMPILED in cause.message for cause in causes
    ):  # said of a default; the check of the rule itself says more
        causes = check_rules(schema, "")
    for cause in causes:
        if cause.reason == "InternalError":
            is_checked = False
            warn(f"{place}: patterns and CEL rules were not checked: {cause.message.removeprefix('Internal error: ')}")
        elif _COST.search(cause.message):
            warn(f"{place}{_worded(cause, schema)}. {_BOUND_ADVICE}")
        else:
            raise GenerateError(f"{place}{_worded(cause, schema)}")
    rules = compile_rules(schema, is_resource=True) if is_checked else None
    if rules is not None:
        _warn_of_numbers(rules, str(place), warn)


def _worded(cause: StatusCause, schema: Mapping[str, Any]) -> str:
    """Return the place below the class, what is wrong there, and what to do."""
    field = cause.field.removeprefix(".")
    structure = _STRUCTURE.match(field)
    below = field[: structure.end()] if structure else ""
    word, message = field.removeprefix(below).removeprefix("."), cause.message.replace("  in body", "")
    found = _RULE.match(word)
    if found is not None:
        rule = f"the rule {_rule_at(schema, below, int(found[1])).get('rule', '')!r}"
        word = rule if found[2] == "rule" else f"{rule}: {found[2]}"
        message = _SHOWN.sub("", message)  # the server shows the whole rule again
    advice = next((f". {text}" for pattern, text in _ADVICE if re.search(pattern, f"{field}: {message}")), "")
    return f"{_steps(below)}: {f'{word}: ' if word else ''}{message}{advice}"


def _rule_at(schema: Mapping[str, Any], field: str, index: int) -> Mapping[str, Any]:
    for below, child in children(schema):
        if f".{field}".startswith(below):
            return _rule_at(child, f".{field}".removeprefix(below).removeprefix("."), index)
    rules: Sequence[Mapping[str, Any]] = schema.get(RULES) or ({},) * (index + 1)
    return rules[index]


def _check_words(schema: Mapping[str, Any], place: Place) -> None:
    """Refuse what the API server drops without a message, and bounds that no value is within."""
    for word in _DROPPED:
        if word in schema:
            raise place.error(f"the API server does not support {word}. Leave it out")
    for low, high in _BOUNDS:
        if low in schema and high in schema and schema[low] > schema[high]:
            raise place.error(f"{low} {schema[low]} is above {high} {schema[high]}, so no value is valid")
    for below, child in children(schema):
        _check_words(child, place.below(_steps(below)))


def _steps(field: str) -> str:
    """Return the path of a schema as one of Python fields: `properties[a].items` is `.a[]`."""
    shown = f".{field.removeprefix('.')}" if field else ""
    for pattern, step in _STEPS:
        shown = pattern.sub(step, shown)
    return shown


def _warn_of_numbers(node: RuleNode, where: str, warn: Warn) -> None:
    """Warn of `quantity(self)` for a field that takes numbers too: it has no overload for them, so the object is rejected."""
    for rule in node.rules:
        if rule.program is None or rule.program.calls("type"):  # the rule looks which of the two it is
            continue
        for function, argument in dict.fromkeys(rule.program.untyped_arguments("quantity", "isQuantity")):
            warn(
                f"{where}: the rule {rule.text!r} rejects a number such as 1: {function}() takes only strings, and the field can be a number. "
                f"Write {function}(string({argument}))"
            )
    below = {**{f".{name}": child for name, child in node.properties.items()}, "[]": node.items, "{}": node.extra}
    for step, child in below.items():
        if child is not None:
            _warn_of_numbers(child, where + step, warn)
