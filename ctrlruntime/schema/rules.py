"""CEL rules of a schema (`x-kubernetes-validations`): compiled once a version, evaluated on every write, with upstream's messages.

A `RuleNode` mirrors the part of a schema that has rules at or below it; without rules it has no node, and `ctrlruntime.cel` is
not even imported. A rule that fails on a value that did not change is a warning, not a failure (ratcheting), unless it looks at the
old value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import prefix_of, shown
from ctrlruntime.selector import utf8_length

if TYPE_CHECKING:
    from ctrlruntime.cel import Program, Type

RULES = "x-kubernetes-validations"
_MISSING: Any = object()
_LONGEST_MESSAGE = 5120


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, ready to run."""

    text: str
    program: Program | None
    """None: it does not compile. Only a default is judged by such a rule, before the definition is refused."""
    problem: str = ""
    message: str = ""
    message_program: Program | None = None
    reason: str = "FieldValueInvalid"
    field_path: str = ""
    optional_old_self: bool = False

    @property
    def uses_old_self(self) -> bool:
        return self.program is not None and "oldSelf" in self.program.used_variables

    @property
    def shown(self) -> str:
        return self.message.strip() or self.text.strip()


@dataclass(slots=True)
class RuleNode:
    """A node of a schema with rules at or below it."""

    type: str
    rules: Sequence[Rule] = ()
    convert: Callable[[Any], Any] | None = None
    properties: Mapping[str, RuleNode] = field(default_factory=dict[str, "RuleNode"])
    items: RuleNode | None = None
    extra: RuleNode | None = None
    map_keys: Sequence[str] = ()
    """The keys of a list of type map; items of other lists have no old self."""

    def check(self, value: Any, old: Any = None, *, ratchets: bool = True) -> tuple[list[StatusCause], list[str]]:
        """Return what the rules refuse and what they only warn of; `old` is None for a new object."""
        findings = _Findings(ratchets)
        self.visit(value, old, "", findings)
        return findings.causes, findings.warnings

    def visit(self, value: Any, old: Any, path: str, findings: _Findings) -> None:
        """Add what the rules at and below the node find."""
        if value is None or findings.is_over:
            return
        if self.rules:
            self._apply(value, old, path, findings)
        if type(value) is dict:
            self._check_object(value, old if type(old) is dict else {}, path, findings)
        elif type(value) is list and self.items is not None:
            earlier = earlier_items(old, self.map_keys, None)
            for index, item in enumerate(value):
                self.items.visit(item, earlier(item), f"{path}[{index}]", findings)

    def _check_object(self, value: Mapping[str, Any], old: Mapping[str, Any], path: str, findings: _Findings) -> None:
        prefix = f"{path}." if path else ""
        for name, child in self.properties.items():
            if name in value:
                child.visit(value[name], old.get(name), prefix + name, findings)
        if self.extra is not None:
            for name in sorted(value):
                if name not in self.properties:
                    self.extra.visit(value[name], old.get(name), f"{path}[{name}]", findings)

    def _apply(self, value: Any, old: Any, path: str, findings: _Findings) -> None:
        self_value = value if self.convert is None else self.convert(value)
        old_value = old if self.convert is None or old is None else self.convert(old)
        is_unchanged = findings.ratchets and old is not None and type(old) is type(value) and old == value
        for rule in self.rules:
            if rule.uses_old_self and old is None and not rule.optional_old_self:
                continue
            bindings = {"self": self_value, "oldSelf": _old_self(rule, old_value)}
            cause = self._judge(rule, bindings, value, path, findings)
            if cause is None:
                continue
            failed = not _is_runtime_failure(cause)
            if failed and is_unchanged and not rule.uses_old_self:
                findings.warnings.append(f"{cause.field}: {cause.message}")
            else:
                findings.causes.append(cause)
            if findings.is_over:
                return

    def _judge(
        self, rule: Rule, bindings: Mapping[str, Any], value: Any, path: str, findings: _Findings
    ) -> StatusCause | None:
        from ctrlruntime.cel import CostError, EvaluationError

        if rule.program is None:
            text = f"Invalid value: {shown(self.type)}: rule compile error: {rule.problem}"
            return StatusCause("FieldValueInvalid", text, path or "<nil>")
        try:
            if rule.program.evaluate(**bindings) is True:
                return None
        except EvaluationError as error:
            if isinstance(error, CostError):
                findings.is_over = True
                text = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule.shown}"
            elif str(error).startswith("no such overload"):
                text = f"'{error}': call arguments did not match a supported operator, function or macro signature"
                text = f"{text} for rule: {rule.shown}"
            else:
                text = f"{error} evaluating rule: {rule.shown}"
            where = path or "<nil>"
            return StatusCause("FieldValueInvalid", f"Invalid value: {shown(self.type)}: {text}", where)
        return _failure(rule, bindings, value, path + rule.field_path)


def earlier_items(old: Any, keys: Sequence[str], absent: Any) -> Callable[[Any], Any]:
    """Return how an item of a list finds its old self: by the keys of a map list, and not at all in other lists."""
    if type(old) is not list or not keys:
        return lambda _item: absent
    by_key = {item_key(item, keys): item for item in old if type(item) is dict}
    return lambda item: by_key.get(item_key(item, keys), absent) if type(item) is dict else absent


def item_key(item: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(repr(item.get(key)) for key in keys)


@dataclass(slots=True)
class _Findings:
    ratchets: bool
    is_over: bool = False
    """No rule is looked at any more: one has cost too much."""
    causes: list[StatusCause] = field(default_factory=list[StatusCause])
    warnings: list[str] = field(default_factory=list[str])


def _is_runtime_failure(cause: StatusCause) -> bool:
    return " evaluating rule: " in cause.message or " for rule: " in cause.message


def _old_self(rule: Rule, old: Any) -> Any:
    if not rule.optional_old_self:
        return old
    from ctrlruntime.cel.values import NOTHING, Optional

    return NOTHING if old is None else Optional(old)


def _failure(rule: Rule, bindings: Mapping[str, Any], value: Any, path: str) -> StatusCause:
    text = _message(rule, bindings)
    where = path.removeprefix(".") or "<nil>"
    head = prefix_of(rule.reason)
    match rule.reason:
        case "FieldValueForbidden" | "FieldValueRequired":
            return StatusCause(rule.reason, f"{head}: {text}", where)
        case "FieldValueDuplicate":
            body = head if type(value) in {dict, list} else f"{head}: {shown(value)}"
            return StatusCause(rule.reason, body, where)
        case _:
            body = head if type(value) in {dict, list} else f"{head}: {shown(value)}"
            return StatusCause(rule.reason, f"{body}: {text}", where)


def _message(rule: Rule, bindings: Mapping[str, Any]) -> str:
    if rule.message_program is not None:
        from ctrlruntime.cel import EvaluationError

        try:
            text = rule.message_program.evaluate(**bindings)
        except EvaluationError:
            text = ""
        text = text.strip() if isinstance(text, str) else ""
        if text and "\n" not in text and utf8_length(text) <= _LONGEST_MESSAGE:
            return text
    return rule.message.strip() or f"failed rule: {rule.text.strip()}"


# Compiling


def compile_rules(schema: Mapping[str, Any], *, is_resource: bool = False) -> RuleNode | None:
    """Return the rules of a schema; None when it has none."""
    if not has_rules(schema):
        return None
    return _node(schema, is_resource)


def has_rules(schema: Mapping[str, Any]) -> bool:
    """Tell whether there is a rule at or below a schema."""
    return bool(schema.get(RULES)) or any(has_rules(child) for _, child in children(schema))


def children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the structural children of a schema with their place below it."""
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, Mapping):
            yield f".properties[{name}]", child
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield f".{name}", schema[name]


def _node(schema: Mapping[str, Any], is_resource: bool) -> RuleNode:
    node = RuleNode(schema.get("type", ""))
    rules: Sequence[Mapping[str, Any]] = schema.get(RULES) or ()
    if rules:
        from ctrlruntime.cel.schema_types import converter

        node.rules = list(_rules(rules, schema, is_resource))
        node.convert = converter(schema, is_resource=is_resource)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    node.properties = {name: _child(child) for name, child in properties.items() if has_rules(child)}
    items, extra = schema.get("items"), schema.get("additionalProperties")
    node.items = _child(items) if isinstance(items, Mapping) and has_rules(items) else None
    node.extra = _child(extra) if isinstance(extra, Mapping) and has_rules(extra) else None
    if schema.get("x-kubernetes-list-type") == "map":
        node.map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return node


def _child(schema: Mapping[str, Any]) -> RuleNode:
    return _node(schema, bool(schema.get("x-kubernetes-embedded-resource")))


def _rules(rules: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], is_resource: bool) -> Iterator[Rule]:
    from ctrlruntime.cel.schema_types import declare

    declared = declare(schema, is_resource=is_resource)
    if declared is None:
        return
    for rule in rules:
        variables = variables_of(declared, optional_old_self=bool(rule.get("optionalOldSelf")))
        program, problem = _compiled(rule["rule"], variables, "bool")
        yield Rule(
            text=rule["rule"],
            program=program,
            problem=problem,
            message=rule.get("message", ""),
            message_program=_compiled(rule.get("messageExpression", ""), variables, "string")[0],
            reason=rule.get("reason") or "FieldValueInvalid",
            field_path=normalized_path(rule.get("fieldPath", ""), schema) or "",
            optional_old_self=bool(rule.get("optionalOldSelf")),
        )


def _compiled(text: str, variables: Mapping[str, Type], kind: str) -> tuple[Program | None, str]:
    """Return the program, or why there is none."""
    from ctrlruntime import cel

    if not text.strip():
        return None, "rule is not specified"
    try:
        program = cel.compile(text, variables=variables)
    except cel.CompileError as error:
        return None, f"compilation failed: {error}"
    if program.result_type.kind != kind:
        return None, f"cel expression must evaluate to a {kind}"
    return program, ""


def variables_of(type: Type, *, optional_old_self: bool = False) -> dict[str, Type]:
    """Return what a rule can name."""
    from ctrlruntime.cel.types import optional_of

    return {"self": type, "oldSelf": optional_of(type) if optional_old_self else type}


_PATH = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")


def normalized_path(path: str, schema: Mapping[str, Any]) -> str | None:
    """Return a rule's fieldPath as appended to the object's (`.a.b[key]`); None if the schema does not have this field."""
    at, result = 0, ""
    while at < len(path):
        found = _PATH.match(path, at)
        if found is None:
            return None
        name = found[1] if found[1] is not None else re.sub(r"\\(.)", r"\1", found[2])
        properties: Mapping[str, Any] = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        if name in properties:
            schema, result = properties[name], f"{result}.{name}"
        elif isinstance(extra, Mapping):
            schema, result = extra, f"{result}[{name}]"
        else:
            return None
        at = found.end()
    return result
