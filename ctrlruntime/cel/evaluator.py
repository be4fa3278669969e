"""Evaluation: a checked tree becomes nested Python functions of one frame, which holds the variables.

`&&` and `||` absorb a failure on one side when the other side decides, as CEL has it. A call whose types the checker knows goes straight
to its implementation; a call on dyn chooses its overload by the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ctrlruntime.cel.checker import Checked
from ctrlruntime.cel.escaping import unescape
from ctrlruntime.cel.failures import CostError, EvaluationError
from ctrlruntime.cel.functions import Implementation, Overload
from ctrlruntime.cel.library.standard import find_part, optional_part, part
from ctrlruntime.cel.mismatches import CONSTANT_PATTERN, no_overload, no_range
from ctrlruntime.cel.syntax import Call, Comprehension, Identifier, ListLiteral, Literal, MapLiteral, Node, Select
from ctrlruntime.cel.types import Type
from ctrlruntime.cel.values import Message, Optional, TypeValue, kind_of, show

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], Any]

_MISSING: Any = object()
_MOST_ROUNDS = 200_000
"""How many rounds all loops of one run may take. Upstream counts every step and stops at a million; a round takes about five."""
_KINDS: Mapping[str, str] = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "object": "map",
}


_PARTS: Final[Mapping[str, Implementation]] = {"_[_]": part, "_[?_]": optional_part}
"""Calls that do not choose an overload: every value may be asked for a part."""
_WITH_PATTERN: Final = frozenset({"find", "findAll", "matches"})


class Plan:
    """A program: call it with the variables' values in the order of `variables`."""

    def __init__(self, checked: Checked, variables: list[str]) -> None:
        self._slots = {name: index for index, name in enumerate(variables)}
        self._size = len(variables)
        self._checked = checked
        self._growing: set[str] = set()
        self._root = self._step(checked.node)

    def run(self, values: list[Any]) -> Any:
        """Return the expression's value. Raises: EvaluationError."""
        try:
            return self._root([*values, *[None] * (self._size - len(values)), 0])
        except RecursionError:
            raise EvaluationError("expression nests too deeply") from None

    def _step(self, node: Node) -> Step:
        match node:
            case Literal():
                value = node.value
                return lambda _frame: value
            case Identifier():
                return self._name(self._checked.names[node])
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case Comprehension():
                return self._comprehension(node)

    def _name(self, name: str) -> Step:
        slot = self._slots.get(name)
        if slot is not None:
            return _accumulator(slot) if name.startswith("@") else _variable(slot)
        value = TypeValue(name)
        return lambda _frame: value

    # Selection

    def _select(self, node: Select) -> Step:
        name = self._checked.names.get(node)
        if name is not None:
            return self._name(name)
        operand = self._step(node.operand)
        is_object = self._checked.types[node.operand].kind == "object"
        field = unescape(node.field) if is_object else node.field
        if node.tests:
            return lambda frame: _has(operand(frame), field)

        def select(frame: Frame) -> Any:
            value = operand(frame)
            if type(value) is dict:
                found = value.get(field, _MISSING)
                if found is _MISSING:
                    raise EvaluationError(f"no such key: {field}")
                return found
            return part(value, field)

        return select

    # Calls

    def _call(self, node: Call) -> Step:
        match node.function:
            case "_&&_":
                return self._logical(node, deciding=False)
            case "_||_":
                return self._logical(node, deciding=True)
            case "_?_:_":
                return self._conditional(node)
            case "@not_strictly_false":
                return self._lenient(node)
            case "_?._":
                return self._optional_select(node)
            case "or" | "orValue" if node.target is not None:
                return self._alternative(node, node.target)
            case _:
                return self._ordinary(node)

    def _logical(self, node: Call, *, deciding: bool) -> Step:
        left, right = (self._step(argument) for argument in node.arguments)
        other = not deciding

        def decide(frame: Frame) -> Any:
            failure: EvaluationError | None = None
            try:
                first = left(frame)
                if first is deciding:
                    return deciding
                if first is not other:
                    failure = EvaluationError("no such overload")
            except CostError:
                raise
            except EvaluationError as error:
                failure = error
            second = right(frame) if failure is None else _quiet(right, frame)
            if second is deciding:
                return deciding
            if failure is not None:
                raise failure
            if second is not other:
                raise EvaluationError("no such overload")
            return other

        return decide

    def _conditional(self, node: Call) -> Step:
        choice, left, right = (self._step(argument) for argument in node.arguments)

        def choose(frame: Frame) -> Any:
            chosen = choice(frame)
            if chosen is True:
                return left(frame)
            if chosen is False:
                return right(frame)
            raise EvaluationError("no such overload")

        return choose

    def _lenient(self, node: Call) -> Step:
        inner = self._step(node.arguments[0])

        def test(frame: Frame) -> bool:
            try:
                return inner(frame) is not False
            except CostError:
                raise
            except EvaluationError:
                return True

        return test

    def _optional_select(self, node: Call) -> Step:
        operand = self._step(node.arguments[0])
        literal = node.arguments[1]
        assert isinstance(literal, Literal)
        is_object = self._checked.types[node.arguments[0]].kind in {"object", "opaque"}
        field = unescape(literal.value) if is_object else str(literal.value)

        def select(frame: Frame) -> Optional:
            return optional_part(operand(frame), field)

        return select

    def _alternative(self, node: Call, target: Node) -> Step:
        """The argument is evaluated only if there is no value; what is not an optional is its own value."""
        first, other = self._step(target), self._step(node.arguments[0])
        unwraps = node.function == "orValue"

        def choose(frame: Frame) -> Any:
            value = first(frame)
            if not isinstance(value, Optional):
                return value
            if not value.present:
                return other(frame)
            return value.value() if unwraps else value

        return choose

    def _ordinary(self, node: Call) -> Step:
        _, overloads = self._checked.calls[node]
        nodes = [node.target, *node.arguments] if node.target is not None else node.arguments
        if self._grows(node):
            return self._append(node)
        arguments = [self._step(argument) for argument in nodes]
        given = [self._checked.types[argument] for argument in nodes]
        if len(overloads) == 1 and not any(_is_open(found) or found.kind == "null" for found in given):
            return _direct(overloads[0].call, arguments)
        if node.function in _PARTS:
            return _direct(_PARTS[node.function], arguments)
        is_constant = node.function in _WITH_PATTERN and isinstance(node.arguments[node.target is None], Literal)
        return _chosen(CONSTANT_PATTERN if is_constant else node.function, overloads, arguments)

    # Literals

    def _list(self, node: ListLiteral) -> Step:
        elements = [self._step(element) for element in node.elements]
        if not node.optional:
            return lambda frame: [element(frame) for element in elements]
        optional = node.optional

        def make(frame: Frame) -> list[Any]:
            made: list[Any] = []
            for index, element in enumerate(elements):
                value = element(frame)
                if index not in optional:
                    made.append(value)
                elif not isinstance(value, Optional):
                    shown = show(value)
                    raise EvaluationError(f"cannot initialize optional list element from non-optional value {shown}")
                elif value.present:
                    made.append(value.value())
            return made

        return make

    def _map(self, node: MapLiteral) -> Step:
        entries = [(self._step(entry.key), self._step(entry.value), entry.optional) for entry in node.entries]

        def make(frame: Frame) -> dict[Any, Any]:
            made: dict[Any, Any] = {}
            for key_of, value_of, optional in entries:
                key, value = key_of(frame), value_of(frame)
                if optional:
                    if not isinstance(value, Optional):
                        shown = f"{show(key)}' from non-optional value {show(value)}"
                        raise EvaluationError(f"cannot initialize optional entry '{shown}")
                    if not value.present:
                        continue
                    value = value.value()
                try:
                    made[key] = value
                except TypeError:  # a map or a list: cel-go takes it, as a key that equals only itself
                    raise EvaluationError(f"unsupported key type: {kind_of(key)}") from None
            return made

        if node.message:
            return lambda frame: Message(node.message, make(frame))
        return make

    # Loops

    def _slot(self, name: str) -> int:
        self._slots[name] = self._size
        self._size += 1
        return self._size - 1

    def _comprehension(self, node: Comprehension) -> Step:
        over, start = self._step(node.range), self._step(node.start)
        before = dict(self._slots)
        grows = isinstance(node.start, ListLiteral) and not node.start.elements
        accumulator = self._slot(node.accumulator)
        outer = dict(self._slots)
        first = self._slot(node.variable)
        second = self._slot(node.second) if node.second else -1
        was_growing = node.accumulator in self._growing
        self._growing.discard(node.accumulator)
        if grows:
            self._growing.add(node.accumulator)
        condition = None if _is_true(node.condition) else self._step(node.condition)
        step = self._step(node.step)
        self._growing.discard(node.accumulator)
        if was_growing:
            self._growing.add(node.accumulator)
        self._slots = outer
        result = self._step(node.result)
        self._slots = before

        def loop(frame: Frame) -> Any:
            items = over(frame)
            _count(frame, len(items) if isinstance(items, list | dict) else 0)
            frame[accumulator] = start(frame)
            for one, two in _pairs(items, two=second >= 0):
                frame[first] = one
                if second >= 0:
                    frame[second] = two
                if condition is None:
                    frame[accumulator] = step(frame)
                    continue
                if condition(frame) is False:
                    break
                try:
                    frame[accumulator] = step(frame)
                except CostError:
                    raise
                except EvaluationError as error:
                    frame[accumulator] = error  # a later item may still decide
            return result(frame)

        return loop

    def _grows(self, node: Call) -> bool:
        """Tell whether the call only adds to the list a loop is building, which may then grow in place."""
        if node.function != "_+_" or len(node.arguments) != 2:
            return False
        left, right = node.arguments
        return isinstance(left, Identifier) and left.name in self._growing and isinstance(right, ListLiteral)

    def _append(self, node: Call) -> Step:
        left, right = (self._step(argument) for argument in node.arguments)

        def grow(frame: Frame) -> list[Any]:
            more = right(frame)
            items: list[Any] = left(frame)
            items.extend(more)
            return items

        return grow


def _count(frame: Frame, rounds: int) -> None:
    """Count the rounds of loops in the frame's last place. Raises: CostError."""
    frame[-1] += rounds
    if frame[-1] > _MOST_ROUNDS:
        raise CostError("operation cancelled: actual cost limit exceeded")


def _variable(slot: int) -> Step:
    return lambda frame: frame[slot]


def _accumulator(slot: int) -> Step:
    def read(frame: Frame) -> Any:
        value = frame[slot]
        if isinstance(value, EvaluationError):
            raise value
        return value

    return read


def _quiet(step: Step, frame: Frame) -> Any:
    try:
        return step(frame)
    except CostError:
        raise
    except EvaluationError:
        return _MISSING


def _has(value: Any, field: str) -> bool:
    return field in value if type(value) is dict else find_part(value, field) is not None


def _direct(call: Implementation, arguments: list[Step]) -> Step:
    match arguments:
        case []:
            return lambda _frame: call()
        case [one]:
            return lambda frame: call(one(frame))
        case [one, two]:
            return lambda frame: call(one(frame), two(frame))
        case _:
            return lambda frame: call(*[argument(frame) for argument in arguments])


def _chosen(name: str, overloads: tuple[Overload, ...], arguments: list[Step]) -> Step:
    """Return a call that finds its overload by the values."""

    def choose(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        for overload in overloads:
            if all(accepts(*pair) for pair in zip(overload.parameters, values, strict=True)):
                return overload.call(*values)
        raise EvaluationError(no_overload(name, values))

    return choose


def accepts(type: Type, value: Any) -> bool:
    """Tell whether a value can be used where the type is wanted."""
    match type.kind:
        case "dyn" | "parameter" | "error":
            return True
        case "list":
            return isinstance(value, list) and (
                (type.parameters[0].kind != "opaque" and _is_open(type.parameters[0]))
                or all(accepts(type.parameters[0], item) for item in value)
            )
        case "map" | "object":
            return isinstance(value, dict)
        case "opaque":
            return kind_of(value) == type.name
        case _:
            return kind_of(value) == _KINDS.get(type.kind, type.kind)


def _is_open(type: Type) -> bool:
    """Tell whether the checker left open what the value is."""
    return type.kind in {"dyn", "parameter", "error"} or (
        type.kind in {"list", "map", "opaque"} and any(_is_open(inner) for inner in type.parameters)
    )


def _is_true(node: Node) -> bool:
    return isinstance(node, Literal) and node.value is True


def _pairs(items: Any, *, two: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(items, dict):
        return list(items.items())
    if not isinstance(items, list):
        raise EvaluationError(no_range(items, two=two))
    return enumerate(items) if two else ((item, None) for item in items)
