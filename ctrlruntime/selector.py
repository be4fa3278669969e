"""Label and field selectors: parsed once, matched often.

A selector is an immutable value: parse it from text or create it from a LabelSelector, call `matches`, print it with `str()`. The client,
the cache and the embedded API server use the same classes, so that they agree. Parse errors are ValueError with the message of the API
server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

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

_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_BINARY_OPERATORS = "in, notin, =, ==, !=, gt, lt"

_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


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
                f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ]
        if not prefix:
            problems.append("prefix part must be non-empty")
        elif not _SUBDOMAIN.match(prefix):
            problems.append(f"prefix part {_SUBDOMAIN_RULE}")
        elif utf8_length(prefix) > 253:
            problems.append("prefix part must be no more than 253 bytes")
    if not name:
        problems.append("name part must be non-empty")
    elif utf8_length(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED_NAME.match(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return the problems of a label value; empty if it is valid."""
    problems: list[str] = []
    if utf8_length(value) > 63:
        problems.append("must be no more than 63 bytes")
    if value and not _QUALIFIED_NAME.match(value):
        problems.append(_VALUE_RULE)
    return problems


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label key."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = label_key_problems(self.key)
        if problems:
            raise ValueError(f'key: Invalid value: "{self.key}": {"; ".join(problems)}')
        _check_values(self.key, self.operator, self.values)
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


def _check_values(key: str, operator: Operator, values: tuple[str, ...]) -> None:
    match operator:
        case "in" | "notin":
            if not values:
                raise ValueError("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
        case "=" | "==" | "!=":
            if len(values) != 1:
                raise ValueError("values: Invalid value: []: exact-match compatibility requires one single value")
        case "exists" | "!":
            if values:
                raise ValueError("values: Invalid value: []: values set must be empty for exists and does not exist")
        case _:
            if len(values) != 1:
                raise ValueError("values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value is required")
            if _int64(values[0]) is None:
                raise ValueError(
                    f"values[0]: Invalid value: \"{values[0]}\": for 'Gt', 'Lt' operators, the value must be an integer"
                )
    for index, value in enumerate(values):
        problems = label_value_problems(value)
        if problems:
            raise ValueError(f'values[{index}][{key}]: Invalid value: "{value}": {"; ".join(problems)}')


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


_SYMBOLS = ("!=", "==", "=", "!", "(", ")", ",", ">", "<")
_TOKEN = re.compile(r"[ \t\r\n]*(?:(!=|==|=|!|\(|\)|,|>|<)|([^ \t\r\n=!(),><]+)|\Z)")


@dataclass(slots=True)
class _Parser:
    """A recursive descent parser for label selectors, with the error messages of upstream."""

    text: str
    tokens: list[str] = field(default_factory=list[str])
    position: int = 0

    def __post_init__(self) -> None:
        at = 0
        while at < len(self.text):
            found = _TOKEN.match(self.text, at)
            if found is None:
                break
            token = found.group(1) or found.group(2)
            if token:
                self.tokens.append(token)
            at = found.end()

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token

    def requirements(self) -> Iterator[Requirement]:
        if not self.tokens:
            return
        if self.peek() in _SYMBOLS and self.peek() != "!":
            raise ValueError(f"found '{self.peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                yield self.requirement()
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            separator = self.take()
            if not separator:
                return
            if separator != ",":
                raise ValueError(f"found '{separator}', expected: ',' or 'end of string'")
            following = self.peek()
            if not following or (following in _SYMBOLS and following != "!"):
                raise ValueError(f"found '{following}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        key = self.take()
        negated = key == "!"
        if negated:
            key = self.take()
        if not key or key in _SYMBOLS:
            raise ValueError(f"found '{key}', expected: identifier")
        if negated:
            return Requirement(key, "!")
        if self.peek() in {"", ","}:
            return Requirement(key, "exists")
        operator = self.take()
        match operator:
            case "in" | "notin":
                return Requirement(key, operator, tuple(self.value_set()))
            case "=" | "==" | "!=":
                return Requirement(key, operator, (self.exact_value(),))
            case ">":
                return Requirement(key, "gt", (self.exact_value(),))
            case "<":
                return Requirement(key, "lt", (self.exact_value(),))
            case _:
                raise ValueError(f"found '{operator}', expected: {_BINARY_OPERATORS}")

    def exact_value(self) -> str:
        if self.peek() in {"", ","}:
            return ""
        value = self.take()
        if value in _SYMBOLS:
            raise ValueError(f"found '{value}', expected: identifier")
        return value

    def value_set(self) -> Iterator[str]:
        opening = self.take()
        if opening != "(":
            raise ValueError(f"found '{opening}' expected: '('")
        expects_value = True
        while True:
            token = self.take()
            if token == ")":  # noqa: S105 - a parenthesis
                if expects_value:
                    yield ""
                return
            if token == ",":  # noqa: S105
                if expects_value:
                    yield ""
                expects_value = True
            elif token and token not in _SYMBOLS:
                if not expects_value:
                    raise ValueError(f"found '{token}', expected: ',' or ')'")
                yield token
                expects_value = False
            elif not expects_value:
                raise ValueError(f"found '{token}', expected: ',' or ')'")
            else:
                raise ValueError(f"found '{token}', expected: ',', ')' or identifier")


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
        terms.append(FieldTerm(path, _unescaped(value), negated=operator == "!="))
    return FieldSelector(tuple(terms))


def _unescaped(value: str) -> str:
    for token in re.findall(r"\\.?|[,=]", value, re.DOTALL):
        if token in {",", "="}:  # upstream prints the number of the character
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(token)}")
        if token[1:] not in {"\\", ",", "="}:
            raise ValueError(f"invalid field selector: invalid escape sequence: {token}")
    return re.sub(r"\\(.)", r"\1", value)
