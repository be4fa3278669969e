"""The macros: `has`, loops of one and of two variables, `sortBy`, `optMap` and `optFlatMap`, and `cel.bind`.

A macro is expanded to a `Comprehension`, as in cel-go; the result replaces the call.
"""

from __future__ import annotations

import copy

from ctrlruntime.cel.failures import CompileError
from ctrlruntime.cel.syntax import (
    Call,
    Comprehension,
    Entry,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    Source,
)

_RESULT = "@result"
_INPUT = "@__sortBy_input__"
_NOT_SORTED = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
_OLD_RESULT = "__result__"
_TESTS = frozenset({"all", "exists", "existsOne", "exists_one"})
_LOOPS = {
    ("all", 2),
    ("exists", 2),
    ("exists_one", 2),
    ("map", 2),
    ("map", 3),
    ("filter", 2),
    ("all", 3),
    ("exists", 3),
    ("existsOne", 3),
    ("exists_one", 3),
    ("transformList", 3),
    ("transformList", 4),
    ("transformMap", 3),
    ("transformMap", 4),
    ("transformMapEntry", 3),
    ("transformMapEntry", 4),
}


def expand(node: Node, source: Source, *, binds: bool = False) -> Node:
    """Return the tree with all macros written out; `binds`: `cel.bind` is one. Raises: CompileError."""
    result = _Expansion(source, binds=binds).walk(node)
    if source.issues:
        raise CompileError(source.text, source.issues)
    return result


class _Expansion:
    def __init__(self, source: Source, *, binds: bool) -> None:
        self._source = source
        self._binds = binds

    def walk(self, node: Node) -> Node:
        match node:
            case Select():
                node.operand = self.walk(node.operand)
            case Call():
                return self._call(node)
            case ListLiteral():
                node.elements = [self.walk(element) for element in node.elements]
            case MapLiteral():
                node.entries = [
                    Entry(self.walk(entry.key), self.walk(entry.value), entry.optional, entry.id)
                    for entry in node.entries
                ]
            case Comprehension():
                node.range, node.start = self.walk(node.range), self.walk(node.start)
                node.condition, node.step = self.walk(node.condition), self.walk(node.step)
                node.result = self.walk(node.result)
            case Literal() | Identifier():
                pass
        return node

    def _call(self, node: Call) -> Node:
        node.target = self.walk(node.target) if node.target is not None else None
        node.arguments = [self.walk(argument) for argument in node.arguments]
        if node.target is None:
            return self._test(node) if node.function == "has" and len(node.arguments) == 1 else node
        if (node.function, len(node.arguments)) in _LOOPS:
            is_double = len(node.arguments) - (node.function == "map") > 2 or node.function.startswith("transform")
            return self._double_loop(node, node.target) if is_double else self._loop(node, node.target)
        if node.function in {"optMap", "optFlatMap"} and len(node.arguments) == 2:
            return self._if_present(node, node.target)
        if node.function == "sortBy" and len(node.arguments) == 2:
            return self._sort(node, node.target)
        is_cel = isinstance(node.target, Identifier) and node.target.name == "cel"
        if self._binds and is_cel and node.function == "bind" and len(node.arguments) == 3:
            return self._bind(node)
        return node

    def _test(self, call: Call) -> Node:
        """Return `has(operand.field)` as a selection that tests."""
        field = call.arguments[0]
        if isinstance(field, Select):
            return Select(field.operand, field.field, tests=True, id=call.id)
        return self._wrong(field, "invalid argument to has() macro")

    def _loop(self, call: Call, range: Node) -> Node:
        is_test = call.function in _TESTS
        name = self._name(
            call.arguments[0], "argument must be a simple name" if is_test else "argument is not an identifier"
        )
        if name in {_RESULT, _OLD_RESULT}:
            return self._wrong(call.arguments[0], "iteration variable overwrites accumulator variable")
        if not name:
            return Literal(None, self._source.at(call.arguments[0].id))
        if is_test:
            start, condition, step, result = self._body(call)
            return Comprehension(name, "", range, _RESULT, start, condition, step, result, call.id)
        kept = [call.arguments[0]] if call.function == "filter" else [call.arguments[-1]]
        step = self._do(call, "_+_", self._so_far(call), ListLiteral(kept, id=self._at(call)))
        if call.function == "filter" or len(call.arguments) == 3:
            step = self._do(call, "_?_:_", call.arguments[1], step, self._so_far(call))
        start = ListLiteral([], id=self._at(call))
        return Comprehension(
            name, "", range, _RESULT, start, self._literal(call, True), step, self._so_far(call), call.id
        )

    def _if_present(self, call: Call, target: Node) -> Node:
        """Return a choice: a loop over nothing whose result has the name, if the target has a value."""
        name = self._name(call.arguments[0], f"{call.function}() variable name must be a simple identifier")
        if not name:
            return Literal(None, self._source.at(call.arguments[0].id))
        value = Call("value", copy.deepcopy(target), [], self._at(call))
        bound: Node = self._over_nothing(
            self._at(call), name, value, call.arguments[1], Identifier(name, self._at(call))
        )
        if call.function == "optMap":
            bound = self._do(call, "optional.of", bound)
        test = Call("hasValue", target, [], self._at(call))
        return Call("_?_:_", None, [test, bound, self._do(call, "optional.none")], call.id)

    def _over_nothing(self, id: int, name: str, start: Node, result: Node, step: Node) -> Comprehension:
        """Return a loop that only gives a value a name."""
        nothing, never = ListLiteral([], id=self._source.at(id)), Literal(False, self._source.at(id))
        return Comprehension("#unused", "", nothing, name, start, never, step, result, id)

    def _double_loop(self, call: Call, range: Node) -> Node:
        first, second = self._name(call.arguments[0]), self._name(call.arguments[1])
        if first and first == second:
            self._source.report(call.arguments[1].id, f"duplicate variable name: {second}")
        if not (first and second):
            return call
        start, condition, step, result = self._body(call)
        return Comprehension(first, second, range, _RESULT, start, condition, step, result, call.id)

    def _body(self, call: Call) -> tuple[Node, Node, Node, Node]:
        """Return start, condition, step and result of a loop."""
        last = call.arguments[-1]
        always = self._literal(call, True)
        match call.function:
            case "all":
                condition = self._do(call, "@not_strictly_false", self._so_far(call))
                return always, condition, self._do(call, "_&&_", self._so_far(call), last), self._so_far(call)
            case "exists":
                condition = self._do(call, "@not_strictly_false", self._do(call, "!_", self._so_far(call)))
                step = self._do(call, "_||_", self._so_far(call), last)
                return self._literal(call, False), condition, step, self._so_far(call)
            case "existsOne" | "exists_one":
                more = self._do(call, "_+_", self._so_far(call), self._literal(call, 1))
                step = self._do(call, "_?_:_", last, more, self._so_far(call))
                result = self._do(call, "_==_", self._so_far(call), self._literal(call, 1))
                return self._literal(call, 0), always, step, result
            case "transformList":
                start: Node = ListLiteral([], id=self._at(call))
                step = self._do(call, "_+_", self._so_far(call), ListLiteral([last], id=self._at(call)))
            case "transformMap":
                start = MapLiteral([], id=self._at(call))
                key = Identifier(self._name(call.arguments[0]), self._at(call))
                step = self._do(call, "cel.@mapInsert", self._so_far(call), key, last)
            case _:
                start = MapLiteral([], id=self._at(call))
                step = self._do(call, "cel.@mapInsert", self._so_far(call), last)
        if len(call.arguments) == 4:
            step = self._do(call, "_?_:_", call.arguments[2], step, self._so_far(call))
        return start, always, step, self._so_far(call)

    def _sort(self, call: Call, target: Node) -> Node:
        if not isinstance(target, ListLiteral | Identifier | Comprehension | Call | Select):
            return self._wrong(target, _NOT_SORTED)
        name = self._name(call.arguments[0], "sortBy can only be applied with a simple identifier")
        items = Identifier(_INPUT, self._at(call))
        empty = ListLiteral([], id=self._at(call))
        step = self._do(call, "_+_", self._so_far(call), ListLiteral([call.arguments[1]], id=self._at(call)))
        keys = Comprehension(
            name, "", items, _RESULT, empty, self._literal(call, True), step, self._so_far(call), self._at(call)
        )
        ordered = Call("@sortByAssociatedKeys", Identifier(_INPUT, self._at(call)), [keys], self._at(call))
        return self._over_nothing(call.id, _INPUT, target, ordered, Identifier(_INPUT, self._at(call)))

    def _bind(self, call: Call) -> Node:
        """Return a loop over nothing, whose result has the name (ext.Bindings in cel-go)."""
        name = self._name(call.arguments[0], "cel.bind() variable names must be simple identifiers")
        if not name:
            return call
        start, result = call.arguments[1:]
        return self._over_nothing(call.id, name, start, result, Identifier(name, self._at(call)))

    def _wrong(self, node: Node, text: str) -> Node:
        """Return what stands for a macro that is wrong: it is where the mistake is."""
        self._source.report(node.id, text)
        return Literal(None, self._source.at(node.id))

    def _name(self, node: Node, text: str = "argument must be a simple name") -> str:
        if isinstance(node, Identifier):
            return node.name
        issue = self._source.issue(node.id, text)
        if issue not in self._source.issues:
            self._source.issues.append(issue)
        return ""

    def _at(self, call: Call) -> int:
        return self._source.at(call.id)

    def _so_far(self, call: Call) -> Node:
        return Identifier(_RESULT, self._at(call))

    def _literal(self, call: Call, value: bool | int) -> Node:
        return Literal(value, self._at(call))

    def _do(self, call: Call, function: str, *arguments: Node) -> Node:
        return Call(function, None, list(arguments), self._at(call))
