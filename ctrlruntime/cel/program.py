"""Compiling and running expressions: the front door of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctrlruntime.cel import literals, macros, syntax
from ctrlruntime.cel.checker import Checked, check
from ctrlruntime.cel.cost import estimate
from ctrlruntime.cel.evaluator import Plan
from ctrlruntime.cel.failures import CompileError
from ctrlruntime.cel.library import functions
from ctrlruntime.cel.library.mutation import message, mutating_functions
from ctrlruntime.cel.parser import read
from ctrlruntime.cel.sizes import CostRange
from ctrlruntime.cel.types import Type


class Program:
    """A compiled expression. It keeps no state between runs."""

    def __init__(self, checked: Checked, variables: Mapping[str, Type]) -> None:
        self._checked = checked
        self._variables = variables
        self._names = list(variables)
        self._plan = Plan(checked, self._names)

    @property
    def source(self) -> str:
        """The expression's text."""
        return self._checked.source.text

    @property
    def result_type(self) -> Type:
        """The type of the value of the expression."""
        return self._checked.result

    @property
    def used_variables(self) -> frozenset[str]:
        """The declared variables that the expression uses."""
        return frozenset(name for name in self._checked.names.values() if name in self._variables)

    def untyped_arguments(self, *functions: str) -> list[tuple[str, str]]:
        """Return the calls of one-argument functions whose argument has a type only at run time.

        Each is the name of the function and the text of the argument: `self.memory`, or `…` for a longer expression.
        """
        return [
            (call.function, _path(call.arguments[0]))
            for call in self._checked.calls
            if call.function in functions
            and len(call.arguments) == 1
            and self._checked.types[call.arguments[0]].kind == "dyn"
        ]

    def calls(self, function: str) -> bool:
        """Return whether the expression calls a function."""
        return any(call.function == function for call in self._checked.calls)

    def evaluate(self, /, **bindings: Any) -> Any:
        """Return the value for these variables; a missing one is null. Raises: EvaluationError."""
        return self._plan.run([bindings.get(name) for name in self._names])

    def cost(self, *, other_roots: bool = True) -> CostRange:
        """Return the minimum and the maximum cost of the expression, in the API server's units.

        Without `other_roots` nothing is known of the size of what is not below a variable.
        """
        return estimate(self._checked, self._variables, other_roots=other_roots)


def _path(node: syntax.Node) -> str:
    match node:
        case syntax.Identifier(name=name):
            return name.removeprefix(".")
        case syntax.Select(operand=operand, field=field):
            below = _path(operand)
            return below if below == "…" else f"{below}.{field}"
        case _:
            return "…"


def _no_message(_: str) -> None:
    return None


def compile(  # noqa: A001 - it is what it does
    rule: str, *, variables: Mapping[str, Type], mutates: bool = False, binds: bool = False
) -> Program:
    """Return the compiled expression.

    `mutates`: it may make `Object{}` and `JSONPatch{}`; `binds`: it may name values with `cel.bind`.

    Raises: CompileError with each problem, in the words of the API server (its subclass InstantiationError if a constant has no value);
    MissingLibraryError if a pattern needs google-re2 and it is not installed.
    """
    node, source = read(rule)
    messages, known = (message, mutating_functions()) if mutates else (_no_message, functions())
    checked = check(macros.expand(node, source, binds=binds), source, variables, known, messages)
    issues = literals.find_issues(checked)
    if issues:
        raise CompileError(rule, issues)
    literals.check_constants(checked)
    return Program(checked, variables)
