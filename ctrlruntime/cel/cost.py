"""The maximum cost of an expression, in the units of the API server: about 1 for an operation, 0.1 for a character.

The estimate walks a checked tree with the sizes a schema allows (`Type.largest`) and multiplies through loops. The numbers are meant to
equal kube-apiserver's, because a rule above its limit is refused with the number in the message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctrlruntime.cel.checker import Checked
from ctrlruntime.cel.cost_rules import RULES
from ctrlruntime.cel.functions import Overload
from ctrlruntime.cel.sizes import ANY, NONE, ONE, CostRange, Invocation, Operand, Sized, total
from ctrlruntime.cel.syntax import Call, Comprehension, Identifier, ListLiteral, Literal, MapLiteral, Node, Select
from ctrlruntime.cel.types import Type


def estimate(checked: Checked, variables: Mapping[str, Type]) -> CostRange:
    """Return the minimum and the maximum cost of the expression."""
    return _Estimate(checked, variables).cost(checked.node)


class _Estimate:
    def __init__(self, checked: Checked, variables: Mapping[str, Type]) -> None:
        self._checked = checked
        self._variables = variables
        self._root = next(iter(variables.values()), None)
        self._sizes: dict[Node, CostRange] = {}
        self._paths: dict[Node, tuple[str, ...]] = {}
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
        return ANY

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

        What a path starts with is not looked at, as upstream does it: a name that is not a variable, or the items of a list made on the
        way, count as the first variable itself.
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
                return self._sum(node.elements).plus(CostRange(10, 10))
            case MapLiteral():
                parts = [part for entry in node.entries for part in (entry.key, entry.value)]
                return self._sum(parts).plus(CostRange(30, 30))
            case Comprehension():
                return self._comprehension(node)

    def _sum(self, nodes: Sequence[Node]) -> CostRange:
        return total([self.cost(node) for node in nodes])

    def _identifier(self, node: Identifier) -> CostRange:
        if node.name in self._loops:
            over, part = self._loops[node.name]
            if part:
                self._paths[node] = (*self._paths.get(over, ()), part)
        elif node.name in self._locals:
            self._copy(self._locals[node.name], node)
        else:
            self._paths[node] = (node.name,)
        return ONE

    def _copy(self, source: Node, target: Node) -> None:
        if source in self._sizes:
            self._sizes[target] = self._sizes[source]
        if source in self._paths:
            self._paths[target] = self._paths[source]

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
        kind = self._checked.types[node.range].kind
        if node.second:
            self._loops[node.variable] = (node.range, "@keys" if kind == "map" else "")
            self._loops[node.second] = (node.range, "@values" if kind == "map" else "@items")
        else:
            self._loops[node.variable] = (node.range, {"list": "@items", "map": "@keys"}.get(kind, ""))
        loop = self.cost(node.condition).plus(self.cost(node.step))
        self._loops = before
        spent = spent.plus(self.cost(node.result))
        self._locals = locals_before
        count = self.size(self._operand(node.range))
        self._size_of_loop(node, count)
        return spent.plus(count.times(loop))

    def _size_of_loop(self, node: Comprehension, count: CostRange) -> None:
        match node.start:
            case ListLiteral() | MapLiteral():
                filters = isinstance(node.step, Call) and node.step.function == "_?_:_"
                self._sizes[node] = CostRange(0, count.most) if filters else count
            case _:
                pass

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
        if function.name == "_[_]":
            self._index_path(node)
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
