"""Checks of literals before a program runs: they must match their function, their list, or their format string.

The API server rejects them at compile time in two steps, with two prefixes: findings of the compiler (`CompileError`), and errors when
the program is created (`InstantiationError`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ctrlruntime.cel.checker import Checked
from ctrlruntime.cel.failures import EvaluationError, InstantiationError, Issue
from ctrlruntime.cel.library import standard
from ctrlruntime.cel.library.text import NO_STRING
from ctrlruntime.cel.patterns import compile_pattern
from ctrlruntime.cel.syntax import Call, Comprehension, ListLiteral, Literal, MapLiteral, Node, Select
from ctrlruntime.cel.types import Type
from ctrlruntime.cel.values import parse_duration, parse_timestamp

_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"})


def find_issues(checked: Checked) -> list[Issue]:
    """Return the literals that are invalid in their place."""
    issues: list[Issue] = []
    for node, exempt in _walk(checked.node, exempt=False):
        match node:
            case Call():
                issues.extend(_argument_issues(checked, node))
            case ListLiteral() if not exempt:
                issues.extend(_mixed_list(checked, node))
            case MapLiteral(message="") if not exempt:
                issues.extend(_mixed_map(checked, node))
            case _:
                pass
    return issues


def check_constants(checked: Checked) -> None:
    """Work out conversions of literals and patterns that are literals. Raises: InstantiationError."""
    for call, (function, overloads) in checked.calls.items():
        argument = call.arguments[-1] if call.arguments else None
        if function.name in {"find", "matches"} or function.name == "findAll":
            pattern = call.arguments[0 if call.target is not None else -1]
            if isinstance(pattern, Literal) and isinstance(pattern.value, str):
                _try_pattern(pattern.value)
        elif function.name in _CONVERSIONS and isinstance(argument, Literal) and len(overloads) == 1:
            try:
                overloads[0].call(argument.value)
            except EvaluationError as error:
                raise InstantiationError(str(error)) from None


def _try_pattern(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise InstantiationError(str(error)) from None


def _walk(node: Node, *, exempt: bool) -> Iterator[tuple[Node, bool]]:
    """Yield every node, and whether it goes into `format`, which takes lists of mixed types."""
    yield node, exempt
    match node:
        case Select():
            children: Sequence[Node] = [node.operand]
        case Call():
            exempt = exempt or node.function == "format"
            children = [*([node.target] if node.target is not None else []), *node.arguments]
        case ListLiteral():
            children = node.elements
        case MapLiteral():
            children = [part for entry in node.entries for part in (entry.key, entry.value)]
        case Comprehension():
            children = [node.range, node.start, node.condition, node.step, node.result]
        case _:
            children = []
    for child in children:
        yield from _walk(child, exempt=exempt)


# Arguments


def _argument_issues(checked: Checked, call: Call) -> Iterator[Issue]:
    if call.function == "format" and isinstance(call.target, Literal) and isinstance(call.target.value, str):
        yield from _Format(checked, call, call.target.value).issues()
        return
    test = _TESTS.get(call.function)
    argument = call.arguments[0] if call.arguments else None
    if test is None or not isinstance(argument, Literal) or (call.function == "matches") != (call.target is not None):
        return
    if not test(argument.value):
        yield checked.source.issue(argument.id, f"invalid {call.function} argument")


def _is_pattern(value: object) -> bool:
    try:
        compile_pattern(str(value))
    except ValueError:
        return False
    return True


def _is_duration(value: object) -> bool:
    return isinstance(value, str) and parse_duration(value) is not None  # cel-go converts no number


def _is_timestamp(value: object) -> bool:
    if isinstance(value, str):
        return parse_timestamp(value) is not None
    try:
        return isinstance(value, int) and bool(standard.moment(value * 10**9))
    except EvaluationError:
        return False


_TESTS: Mapping[str, Callable[[object], bool]] = {
    "duration": _is_duration,
    "timestamp": _is_timestamp,
    "matches": _is_pattern,
}


# Lists and maps of one type


def _mixed_list(checked: Checked, node: ListLiteral) -> Iterator[Issue]:
    given = [
        _present(checked.types[element]) if index in node.optional else checked.types[element]
        for index, element in enumerate(node.elements)
    ]
    for element, found in zip(node.elements, given, strict=True):
        if found != given[0]:
            yield _mismatch(checked, element, given[0], found)
            return


def _mixed_map(checked: Checked, node: MapLiteral) -> Iterator[Issue]:
    key: Type | None = None
    value: Type | None = None
    for entry in node.entries:
        key_type, value_type = checked.types[entry.key], checked.types[entry.value]
        if entry.optional:
            value_type = _present(value_type)
        if key is None or value is None:
            key, value = key_type, value_type
            continue
        if key_type != key:
            yield _mismatch(checked, entry.key, key, key_type)
        if value_type != value:
            yield _mismatch(checked, entry.value, value, value_type)


def _present(type: Type) -> Type:
    return type.parameters[0] if type.name == "optional_type" else type


def _mismatch(checked: Checked, node: Node, expected: Type, found: Type) -> Issue:
    return checked.source.issue(node.id, f"expected type '{expected}' but found '{found}'")


# Format strings


class _Format:
    """A format string and the literal list of what goes into it."""

    def __init__(self, checked: Checked, call: Call, template: str) -> None:
        self._checked = checked
        self._call = call
        self._template = template

    def issues(self) -> Iterator[Issue]:
        """Yield the first thing that is wrong."""
        arguments = self._call.arguments[0]
        if not isinstance(arguments, ListLiteral):
            return
        used = 0
        for verb in self._verbs():
            if isinstance(verb, Issue):
                yield verb
                return
            if used >= len(arguments.elements):
                yield self._at_call(f"index {used} out of range")
                return
            problem = self._judge(verb, arguments.elements[used])
            if problem is not None:
                yield problem
                return
            used += 1
        if used < len(arguments.elements):
            yield self._at_call(
                f"too many arguments supplied to string.format (expected {used}, got {len(arguments.elements)})"
            )

    def _at_call(self, message: str) -> Issue:
        return self._checked.source.issue(self._call.id, message)

    def _verbs(self) -> Iterator[str | Issue]:
        template, at = self._template, 0
        while at < len(template):
            if template[at] != "%":
                at += 1
                continue
            at += 1
            if at >= len(template):
                yield self._at_call("unexpected end of string")
                return
            if template[at] == "%":
                at += 1
                continue
            if template[at] == ".":
                start = at = at + 1
                while at < len(template) and template[at].isdigit():
                    at += 1
                problem = ""
                if at >= len(template):
                    problem = "could not find end of precision specifier"
                elif at == start:
                    problem = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
                if problem:
                    yield self._at_call(f"could not parse formatting clause: error while parsing precision: {problem}")
                    return
            verb = template[at]
            at += 1
            if verb not in "sdfebxXo":
                yield self._at_call(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
                return
            yield verb

    def _judge(self, verb: str, node: Node) -> Issue | None:
        given = self._checked.types[node]
        if given.kind == "dyn":
            return None
        kinds, text = _CLAUSES[verb]
        if verb == "s":
            found = self._unprintable(node, given, kinds)
            if found is None:
                return None
            node, given = found
        elif given.kind in kinds:
            return None
        return self._checked.source.issue(
            node.id, f"error during formatting: {text}, was given {given.name or given.kind}"
        )

    def _unprintable(self, node: Node, type: Type, kinds: frozenset[str]) -> tuple[Node, Type] | None:
        """Return what cannot be printed: the value itself or the first one inside a literal."""
        if type.kind not in kinds:
            return node, type
        inner: list[Node] = []
        if isinstance(node, ListLiteral):
            inner = node.elements
        elif isinstance(node, MapLiteral):
            inner = [part for entry in node.entries for part in (entry.key, entry.value)]
        for child in inner:
            found = self._unprintable(child, self._checked.types[child], kinds)
            if found is not None:
                return found
        return None


_CLAUSES: Mapping[str, tuple[frozenset[str], str]] = {
    "s": (
        frozenset(
            {"bool", "bytes", "double", "duration", "dyn", "error", "int", "list", "map", "null", "string", "timestamp"}
            | {"type", "uint", "parameter"}
        ),
        NO_STRING,
    ),
    "d": (frozenset({"int", "uint"}), "decimal clause can only be used on integers"),
    "f": (frozenset({"double", "string"}), "fixed-point clause can only be used on doubles"),
    "e": (frozenset({"double", "string"}), "scientific clause can only be used on doubles"),
    "b": (frozenset({"bool", "int", "uint"}), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset({"bytes", "int", "string", "uint"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "X": (
        frozenset({"bytes", "int", "string", "uint"}),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset({"int", "uint"}), "octal clause can only be used on integers"),
}
