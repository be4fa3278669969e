"""The maximum cost of an expression, in the units of the API server: about 1 for an operation, 0.1 for a character.

The estimate walks a checked tree with the sizes a schema allows (`Type.largest`) and multiplies through loops. The numbers are meant to
equal kube-apiserver's, because a rule above its limit is refused with the number in the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctrlruntime.cel.checker import Checked
from ctrlruntime.cel.cost_rules import RULES
from ctrlruntime.cel.functions import Overload
from ctrlruntime.cel.sizes import ANY, NONE, ONE, CostRange, Invocation, Operand, Sized, total
from ctrlruntime.cel.syntax import Call, Comprehension, Identifier, ListLiteral, Literal, MapLiteral, Node, Select
from ctrlruntime.cel.types import ANYTHING, Type


def estimate(checked: Checked, variables: Mapping[str, Type], *, other_roots: bool = True) -> CostRange:
    """Return the minimum and the maximum cost of the expression; `other_roots` is explained at `Program.cost`."""
    return _Estimate(checked, variables, other_roots=other_roots).cost(checked.node)


class _Entries(NamedTuple):
    """The sizes of the keys (of a list: of its indices) and of the values of a list or a map that is made on the way."""

    keys: CostRange
    values: CostRange

    def union(self, other: _Entries | None) -> _Entries | None:
        return None if other is None else _Entries(self.keys.union(other.keys), self.values.union(other.values))


class _Estimate:
    def __init__(self, checked: Checked, variables: Mapping[str, Type], *, other_roots: bool) -> None:
        self._checked = checked
        self._variables = variables
        self._root = next(iter(variables.values()), None) if other_roots else None
        self._sizes: dict[Node, CostRange] = {}
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._entries: dict[Node, _Entries] = {}
        self._last_resorts: dict[Node, CostRange] = {}
        """Sizes of names that are not variables, where their path says nothing."""
        self._loops: dict[str, tuple[Node, str]] = {}
        self._locals: dict[str, Node] = {}

    # Sizes

    def _operand(self, node: Node) -> Operand:
        return Operand(node, self._checked.types[node], self._paths.get(node))

    def size(self, operand: Operand, *, scalars: bool = True) -> CostRange:
        known = self._known_size(operand)
        if known is not None:
            return known
        if scalars and operand.type.kind in {"bool", "double", "duration", "int", "timestamp", "uint"}:
            return ONE
        return ANY if operand.node is None else self._last_resorts.get(operand.node, ANY)

    def _size_of(self, node: Node) -> CostRange:
        return self.size(self._operand(node))

    def _known_size(self, operand: Operand) -> CostRange | None:
        node = operand.node
        if node is not None:
            found = self._sizes.get(node)
            if found is None:
                found = _literal_size(node)
            if found is not None:
                return found
        if operand.path is None:
            return None
        place = self._at(operand.path)
        return None if place is None else CostRange(0, place.largest)

    def _at(self, path: Sequence[str]) -> Type | None:
        """Return the type at a path.

        What a path starts with is not looked at, as upstream does it for schemas: a name that is not a variable, or the items of a list
        made on the way, count as the first variable itself.
        """
        found = self._variables.get(path[0], self._root)
        for name in path[1:]:
            if found is None:
                return None
            match name:
                case "@items":
                    found = found.parameters[0] if found.kind == "list" else None
                case "@values":
                    found = found.parameters[1] if found.kind == "map" else None
                case "@keys":
                    found = found.parameters[0] if found.kind == "map" else None
                case _ if found.kind == "map" and found.parameters[1].name == ANYTHING.name:
                    # A key of a device's attributes (sizeEstimator in dynamic-resource-allocation's cel/compile.go).
                    found = found.parameters[1]
                case _:
                    found = found.fields.get(name) if found.kind == "object" else None
        return found

    def element(self, operand: Operand) -> Operand | None:
        """Return the items of a list as an operand; None when it is not a list."""
        if operand.type.kind != "list":
            return None
        path = (*operand.path, "@items") if operand.path is not None else None
        return Operand(None, operand.type.parameters[0], path)

    # Costs

    def cost(self, node: Node) -> CostRange:
        """Return the cost of a node and all below it."""
        match node:
            case Literal():
                return NONE
            case Identifier():
                return self._identifier(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                spent = self._sum(node.elements)
                self._entries[node] = _Entries(ONE, self._any_of(node.elements))
                return spent.plus(CostRange(10, 10))
            case MapLiteral():
                keys, values = [entry.key for entry in node.entries], [entry.value for entry in node.entries]
                spent = self._sum([*keys, *values])
                if not node.message:
                    self._entries[node] = _Entries(self._any_of(keys), self._any_of(values))
                return spent.plus(CostRange(30, 30))
            case Comprehension():
                return self._comprehension(node)

    def _sum(self, nodes: Sequence[Node]) -> CostRange:
        return total([self.cost(node) for node in nodes])

    def _any_of(self, nodes: Sequence[Node]) -> CostRange:
        sizes = [self._size_of(node) for node in nodes]
        return CostRange(min(size.least for size in sizes), max(size.most for size in sizes)) if sizes else NONE

    def _identifier(self, node: Identifier) -> CostRange:
        if node.name in self._loops:
            over, part = self._loops[node.name]
            if part:
                self._paths[node] = (*self._paths.get(over, ()), part)
            entries = self._entries.get(over)
            if entries is not None:
                self._last_resorts[node] = entries.values if part in {"@items", "@values"} else entries.keys
        elif node.name in self._locals:
            start = self._locals[node.name]
            self._copy(start, node)
            self._last_resorts[node] = self._size_of(start)
        else:
            self._paths[node] = (node.name,)
        return ONE

    def _copy(self, source: Node, target: Node) -> None:
        if source in self._sizes:
            self._sizes[target] = self._sizes[source]
        if source in self._paths:
            self._paths[target] = self._paths[source]
        if source in self._entries:
            self._entries[target] = self._entries[source]

    def _select(self, node: Select) -> CostRange:
        if node in self._checked.names:
            self._paths[node] = (self._checked.names[node],)
            return ONE
        spent = self.cost(node.operand)
        if node.tests:
            return spent
        if self._checked.types[node.operand].kind in {"map", "object", "parameter"}:
            spent = spent.plus(ONE)
        path = self._paths.get(node.operand)
        if path is not None:
            self._paths[node] = (*path, node.field)
        return spent

    def _comprehension(self, node: Comprehension) -> CostRange:
        spent = self.cost(node.range).plus(self.cost(node.start))
        before, locals_before = dict(self._loops), dict(self._locals)
        self._locals[node.accumulator] = node.start
        outer = {name: loop for name, loop in before.items() if name != node.accumulator}
        self._loops = dict(outer)
        kind = self._checked.types[node.range].kind
        if node.second:
            self._loops[node.variable] = (node.range, "@keys" if kind == "map" else "")
            self._loops[node.second] = (node.range, "@values" if kind == "map" else "@items")
        else:
            self._loops[node.variable] = (node.range, {"list": "@items", "map": "@keys"}.get(kind, ""))
        loop = self.cost(node.condition).plus(self.cost(node.step))
        self._loops = outer
        spent = spent.plus(self.cost(node.result))
        self._loops, self._locals = before, locals_before
        count = self._size_of(node.range)
        self._size_of_loop(node, count)
        return spent.plus(count.times(loop))

    def _size_of_loop(self, node: Comprehension, count: CostRange) -> None:
        match node.start:
            case ListLiteral() | MapLiteral():
                filters = isinstance(node.step, Call) and node.step.function == "_?_:_"
                self._sizes[node] = CostRange(0, count.most) if filters else count
                if node.step in self._entries:
                    self._entries[node] = self._entries[node.step]
            case _:
                pass
        if isinstance(node.condition, Literal) and node.condition.value is False:
            self._take(node.result, node)  # cel.bind, and what is written out like it

    def _take(self, source: Node, target: Node) -> None:
        """Give a node the sizes of another, but not its path."""
        size = self._size_of(source)
        if size != ANY:
            self._sizes[target] = size
        if source in self._entries:
            self._entries[target] = self._entries[source]

    # Calls

    def _call(self, node: Call) -> CostRange:
        costs = [self.cost(argument) for argument in node.arguments]
        arguments = [self._operand(argument) for argument in node.arguments]
        found = self._checked.calls.get(node)
        if found is None:  # an optional selection
            path = self._paths.get(node.arguments[0])
            field = node.arguments[1]
            if path is not None and isinstance(field, Literal):
                self._paths[node] = (*path, field.value)
            return ONE.plus(costs[0])
        spent = NONE
        target: Operand | None = None
        if node.target is not None:
            spent = self.cost(node.target)
            target = self._operand(node.target)
        function, overloads = found
        cost: CostRange | None = None
        size: CostRange | None = None
        for overload in overloads:
            sized = self._overload(function.name, overload, target, arguments, costs)
            cost = sized.cost if cost is None else cost.union(sized.cost)
            if sized.size is not None:
                size = sized.size if size is None else size.union(sized.size)
        match function.name:
            case "_[_]":
                self._index_path(node)
                entries = self._entries.get(node.arguments[0])
                size = size if entries is None else entries.values
            case "_+_" | "_?_:_":
                first, second = (self._entries.get(each) for each in node.arguments[-2:])
                entries = None if first is None else first.union(second)
                if entries is not None:
                    self._entries[node] = entries
            case "dyn":
                self._take(node.arguments[0], node)
            case _:
                pass
        if size is not None:
            self._sizes[node] = size
        return spent.plus(cost or NONE)

    def _index_path(self, node: Call) -> None:
        path = self._paths.get(node.arguments[0])
        if path is not None:
            kind = self._checked.types[node.arguments[0]].kind
            self._paths[node] = (*path, "@values" if kind == "map" else "@items")

    def _overload(
        self, name: str, overload: Overload, target: Operand | None, arguments: list[Operand], costs: list[CostRange]
    ) -> Sized:
        spent = total(costs)
        match name:
            case "_&&_" | "_||_":
                return Sized(CostRange(costs[0].least, costs[0].plus(costs[1]).most))
            case "_?_:_":
                sizes = self.size(arguments[1]).union(self.size(arguments[2]))
                return Sized(costs[0].plus(costs[1].union(costs[2])), sizes)
            case _:
                pass
        rule = RULES.get(name)
        sized = rule(Invocation(self, overload, target, arguments)) if rule is not None else None
        if sized is None:
            sized = Sized(ONE)
        return Sized(sized.cost.plus(spent), sized.size)


def _literal_size(node: Node) -> CostRange | None:
    match node:
        case Literal(value=str() | bytes() as text):
            return CostRange(len(text), len(text))
        case Literal():
            return ONE
        case ListLiteral():
            return CostRange(len(node.elements), len(node.elements))
        case MapLiteral():
            return CostRange(len(node.entries), len(node.entries))
        case _:
            return None
