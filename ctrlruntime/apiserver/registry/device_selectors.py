"""The expressions that select devices: compiled when they are written (dynamic-resource-allocation's cel/compile.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from ctrlruntime.apiserver.registry.device_parts import listed_causes
from ctrlruntime.apiserver.registry.expressions import declared
from ctrlruntime.errors import StatusCause
from ctrlruntime.field_errors import forbidden_field, invalid_value, required, too_long
from ctrlruntime.schema.trees import Document
from ctrlruntime.selector import utf8_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctrlruntime.cel import Type

_MOST_SELECTORS: Final = 32
_LONGEST_EXPRESSION: Final = 10 * 1024
_LARGEST_COST: Final = 1_000_000
_TOO_DEAR: Final = "too complex, exceeds cost limit"


def selector_list_causes(selectors: Sequence[Document | None], path: str) -> Iterator[StatusCause]:
    """What selects devices: expressions about `device`."""
    return listed_causes(selectors, path, _MOST_SELECTORS, _selector_causes)


def _selector_causes(selector: Document | None, path: str) -> Iterator[StatusCause]:
    found = (selector or {}).get("cel")
    if found is None:
        yield required(f"{path}.cel")
        return
    expression, where = str(found.get("expression") or ""), f"{path}.cel.expression"
    if utf8_length(expression) > _LONGEST_EXPRESSION:
        yield too_long(where, _LONGEST_EXPRESSION)
        return
    problem = _problem_of(expression)
    if problem == _TOO_DEAR:
        yield forbidden_field(where, problem)
    elif problem:
        yield invalid_value(where, expression, problem)


@lru_cache(maxsize=1024)
def _problem_of(expression: str) -> str:
    from ctrlruntime import cel
    from ctrlruntime.cel.types import ANYTHING, BOOL

    try:
        program = cel.compile(expression, variables=_variables(), binds=True)
    except cel.CompileError as error:
        return f"compilation failed: {error}"
    if program.result_type not in {BOOL, ANYTHING}:
        return f"must evaluate to bool or the unknown type, not {declared(program.result_type)}"
    return _TOO_DEAR if program.cost(other_roots=False).most > _LARGEST_COST else ""


@lru_cache(maxsize=1)
def _variables() -> Mapping[str, Type]:
    """`device` with the sizes that its parts can have (newCompiler)."""
    from dataclasses import replace

    from ctrlruntime.cel.types import ANYTHING, BOOL, STRING, map_of, object_of, opaque

    domain, identifier = replace(STRING, largest=63), replace(STRING, largest=32)
    attributes = map_of(identifier, replace(ANYTHING, largest=64), 32)
    capacities = map_of(identifier, opaque("kubernetes.Quantity"), 32)
    fields = {
        "driver": domain,
        "allowMultipleAllocations": replace(BOOL, largest=1),
        "attributes": map_of(domain, attributes, 32),
        "capacity": map_of(domain, capacities, 32),
    }
    return {"device": object_of("kubernetes.DRADevice", fields)}


__all__ = ["selector_list_causes"]
