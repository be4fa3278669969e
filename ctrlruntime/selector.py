"""Label and field selectors: parsed once, matched often.

A selector is an immutable value: parse it from text or create it from a LabelSelector, call `matches`, print it with `str()`. The client,
the cache and the embedded API server use the same classes, so that they agree. Parse errors are ValueError with the message of the API
server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ctrlruntime.field_errors import quoted, shown
from ctrlruntime.name_rules import (
    LABEL_VALUE_RULE,
    QUALIFIED_NAME_RULE,
    SUBDOMAIN_RULE,
    is_qualified_name,
    is_subdomain,
)

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldSelector",
    "FieldTerm",
    "LabelSelector",
    "Operator",
    "Requirement",
    "equals",
    "exists",
    "from_fields",
    "from_label_selector",
    "from_labels",
    "in_",
    "not_exists",
    "not_in",
    "parse_fields",
    "parse_labels",
]

Operator: TypeAlias = Literal["=", "==", "!=", "in", "notin", "exists", "!", "gt", "lt"]

_BINARY_OPERATORS = "in, notin, =, ==, !=, gt, lt"


def utf8_length(text: str) -> int:
    """Return the number of bytes in UTF-8.

    Kubernetes limits count bytes, except `maxLength` and `minLength` of a schema.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def label_key_problems(key: str) -> list[str]:
    """Return the problems of a label key or another qualified name (`prefix/name`); empty if it is valid."""
    prefix, slash, name = key.rpartition("/")
    problems: list[str] = []
    if slash:
        if "/" in prefix:
            return [
                f"a valid label key {QUALIFIED_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            if utf8_length(prefix) > 253:
                problems.append("prefix part must be no more than 253 bytes")
            if not is_subdomain(prefix):
                problems.append(f"prefix part {SUBDOMAIN_RULE}")
    if not name:
        problems.append("name part must be non-empty")
    elif utf8_length(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not is_qualified_name(name):
        problems.append(f"name part {QUALIFIED_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return the problems of a label value; empty if it is valid."""
    problems: list[str] = []
    if utf8_length(value) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not is_qualified_name(value):
        problems.append(LABEL_VALUE_RULE)
    return problems


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label key."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = list(dict.fromkeys(_problems(self.key, self.operator, self.values)))
        if problems:
            raise ValueError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
        if self.operator in {"in", "notin"}:
            object.__setattr__(self, "values", tuple(sorted(set(self.values))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        operator = self.operator
        value = labels.get(self.key)
        if operator in {"=", "==", "in"}:
            return value is not None and value in self.values
        if operator in {"!=", "notin"}:
            return value is None or value not in self.values
        if operator == "exists":
            return value is not None
        if operator == "!":
            return value is None
        number, bound = _int64(value or ""), _int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if operator == "gt" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case "gt":
                return f"{self.key}>{self.values[0]}"
            case "lt":
                return f"{self.key}<{self.values[0]}"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


def _int64(text: str) -> int | None:
    """Return the integer of 64 bits that a text is, None when it is none: Go's strconv.ParseInt."""
    if not re.fullmatch("[+-]?[0-9]+", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _problems(key: str, operator: Operator, values: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a requirement (NewRequirement in apimachinery's pkg/labels/selector.go)."""
    if problems := label_key_problems(key):
        yield f"key: Invalid value: {quoted(key)}: {'; '.join(problems)}"
    if problem := _problem_of_count(operator, len(values)):
        yield f"values: Invalid value: {shown(list(values))}: {problem}"
    if operator in {"gt", "lt"}:
        for index, value in enumerate(values):
            if _int64(value) is None:
                problem = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield f"values[{index}]: Invalid value: {quoted(value)}: {problem}"
    for index, value in enumerate(values):
        if problems := label_value_problems(value):
            yield f"values[{index}][{key}]: Invalid value: {quoted(value)}: {'; '.join(problems)}"


def _problem_of_count(operator: Operator, count: int) -> str:
    match operator:
        case "in" | "notin":
            return "" if count else "for 'in', 'notin' operators, values set can't be empty"
        case "=" | "==" | "!=":
            return "" if count == 1 else "exact-match compatibility requires one single value"
        case "exists" | "!":
            return "values set must be empty for exists and does not exist" if count else ""
        case _:
            return "" if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that must all be true.

    Without conditions it matches everything, unless `is_nothing`.
    """

    requirements: tuple[Requirement, ...] = ()
    is_nothing: bool = False

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.requirements, key=lambda r: (r.key, r.operator, r.values)))
        object.__setattr__(self, "requirements", ordered)

    @property
    def is_everything(self) -> bool:
        return not self.requirements and not self.is_nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        if self.is_nothing:
            return False
        if not self.requirements:
            return True
        present = labels or {}
        return all(requirement.matches(present) for requirement in self.requirements)

    def __and__(self, other: LabelSelector) -> LabelSelector:
        return LabelSelector(self.requirements + other.requirements, self.is_nothing or other.is_nothing)

    def __bool__(self) -> bool:
        return bool(self.requirements) or self.is_nothing

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(is_nothing=True)


def equals(key: str, value: str) -> LabelSelector:
    """Match objects whose label has this value."""
    return LabelSelector((Requirement(key, "=", (value,)),))


def in_(key: str, values: Iterable[str]) -> LabelSelector:
    """Match objects whose label has one of the values."""
    return LabelSelector((Requirement(key, "in", tuple(values)),))


def not_in(key: str, values: Iterable[str]) -> LabelSelector:
    """Match objects whose label has none of the values, or is missing."""
    return LabelSelector((Requirement(key, "notin", tuple(values)),))


def exists(key: str) -> LabelSelector:
    """Match objects that have the label."""
    return LabelSelector((Requirement(key, "exists"),))


def not_exists(key: str) -> LabelSelector:
    """Match objects that do not have the label."""
    return LabelSelector((Requirement(key, "!"),))


def from_labels(labels: Mapping[str, str]) -> LabelSelector:
    """Return the selector for all these labels.

    Raises: TypeError for a value that is not text.
    """
    _refuse_other_than_text("label", labels)
    return LabelSelector(tuple(Requirement(key, "=", (value,)) for key, value in labels.items()))


def _refuse_other_than_text(what: str, values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if not isinstance(value, str):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            raise TypeError(f"the value of the {what} {name} is a text, not {value!r}: write {{{name!r}: {text!r}}}")


_TREE_OPERATORS: Mapping[str, Operator] = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_label_selector(tree: Mapping[str, Any] | None) -> LabelSelector:
    """Return the selector for a LabelSelector document.

    It has `matchLabels` and `matchExpressions`.

    As in Kubernetes, None matches nothing and an empty document everything.

    Raises:
        ValueError: an operator, key or value is not valid.

    """
    if tree is None:
        return NOTHING
    requirements = [Requirement(key, "=", (value,)) for key, value in (tree.get("matchLabels") or {}).items()]
    for expression in tree.get("matchExpressions") or ():
        operator = _TREE_OPERATORS.get(expression.get("operator", ""))
        if operator is None:
            raise ValueError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
        requirements.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(tuple(requirements))


def parse_labels(text: str) -> LabelSelector:
    """Return the selector of a `labelSelector` query parameter.

    Raises:
        ValueError: the text is not a selector; the message is that of the API server.

    """
    return LabelSelector(tuple(_Parser(text).requirements())) if text else EVERYTHING


_SYMBOLS = frozenset({"!=", "==", "=", "!", "(", ")", ",", ">", "<"})
_OPERATORS: Mapping[str, Operator] = {
    "in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt",
}  # fmt: skip
_TOKEN = re.compile(r"[ \t\r\n]*(?:(!=|==|[=!(),><])|([^ \t\r\n=!(),><\0]+))\0?")
_END = ""
"""The token after the last one. As upstream's Lexer, a NUL ends the text, but not where it follows a token."""


class _Parser:
    """A recursive descent parser for label selectors: that of apimachinery's pkg/labels/selector.go, with its messages."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while found := _TOKEN.match(text, at):
            self.tokens.append(found[1] or found[2])
            at = found.end()
        self.tokens.reverse()

    def peek(self) -> str:
        return self.tokens[-1] if self.tokens else _END

    def take(self) -> str:
        return self.tokens.pop() if self.tokens else _END

    def requirements(self) -> Iterator[Requirement]:
        while token := self.peek():
            if not _may_begin(token):
                raise ValueError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                yield self.requirement()
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            separator = self.take()
            if separator == _END:
                return
            if separator != ",":
                raise ValueError(f"found '{separator}', expected: ',' or 'end of string'")
            if not _may_begin(self.peek()):
                raise ValueError(f"found '{self.peek()}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        key = self.take()
        is_negated = key == "!"
        if is_negated:
            key = self.take()
        if not _is_identifier(key):
            raise ValueError(f"found '{key}', expected: identifier")
        if problems := label_key_problems(key):
            raise ValueError(f"<nil>: Invalid value: {quoted(key)}: {'; '.join(problems)}")
        if is_negated:
            return Requirement(key, "!")
        if self.peek() in {_END, ","}:
            return Requirement(key, "exists")
        token = self.take()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise ValueError(f"found '{token}', expected: {_BINARY_OPERATORS}")
        values = self.value_set() if operator in {"in", "notin"} else {self.exact_value()}
        return Requirement(key, operator, tuple(sorted(values)))

    def exact_value(self) -> str:
        if self.peek() in {_END, ","}:
            return ""
        value = self.take()
        if not _is_identifier(value):
            raise ValueError(f"found '{value}', expected: identifier")
        return value

    def value_set(self) -> set[str]:
        opening = self.take()
        if opening != "(":
            raise ValueError(f"found '{opening}' expected: '('")
        if self.peek() == ")":
            self.take()
            return {""}
        if self.peek() != "," and not _is_identifier(self.peek()):
            raise ValueError(f"found '{self.peek()}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while self.peek() != ")":
            token = self.take()
            if _is_identifier(token):
                values.add(token)
                if self.peek() not in {",", ")"}:
                    raise ValueError(f"found '{self.peek()}', expected: ',' or ')'")
            elif token != ",":  # noqa: S105 - a comma
                raise ValueError(f"found '{token}', expected: ',', or identifier")
            elif not values or self.peek() in {",", ")"}:
                values.add("")
        self.take()
        return values


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _may_begin(token: str) -> bool:
    """Tell whether a requirement can begin with the token."""
    return token == "!" or _is_identifier(token)  # noqa: S105 - an exclamation mark


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One condition on one field path."""

    path: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        escaped = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.path}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions on fields that must all be true.

    Without conditions it matches everything.
    """

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Return whether the fields match; a missing field is empty.

        `fields` has the form `{"metadata.name": …}`.
        """
        return all((fields.get(term.path, "") == term.value) is not term.negated for term in self.terms)

    def exact(self, path: str) -> str | None:
        """Return the value that the selector requires for `path`, or None.

        None means that it requires no single value.
        """
        for term in self.terms:
            if term.path == path and not term.negated:
                return term.value
        return None

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(term.path for term in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(str(term) for term in self.terms)


def from_fields(fields: Mapping[str, str]) -> FieldSelector:
    """Return the selector for all these values.

    Raises: TypeError for a value that is not text.
    """
    _refuse_other_than_text("field", fields)
    return FieldSelector(tuple(FieldTerm(path, value) for path, value in fields.items()))


def parse_fields(text: str) -> FieldSelector:
    r"""Return the selector of a `fieldSelector` query parameter.

    A backslash escapes `\`, `,` and `=` in a value.

    Raises:
        ValueError: the text is not a selector; the message is that of the API server.

    """
    terms: list[FieldTerm] = []
    for part in sorted(re.findall(r"(?:\\.|[^,\\]|\\\Z)+", text, re.DOTALL)):
        found = re.match(r"(.*?)(!=|==|=)(.*)\Z", part, re.DOTALL)
        if found is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        path, operator, value = found.groups()
        if path or value:
            terms.append(FieldTerm(path, _unescaped(value), negated=operator == "!="))
    return FieldSelector(tuple(terms))


def _unescaped(value: str) -> str:
    for token in re.findall(r"\\.?|[,=]", value, re.DOTALL):
        if token in {",", "="}:  # upstream prints the number of the character
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(token)}")
        if token[1:] not in {"\\", ",", "="}:
            raise ValueError(f"invalid field selector: invalid escape sequence: {token}")
    return re.sub(r"\\(.)", r"\1", value)
