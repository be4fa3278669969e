"""The bound fields of the current context: structlog's contextvars, in the order in which they were first bound.

structlog returns them in the order of their hashes, which differs in each process. A log is easier to read if fields have a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any, Final

from structlog.contextvars import bind_contextvars, get_contextvars


def bind_fields(fields: Mapping[str, object]) -> Sequence[Token[object]]:
    # A controller binds for every reconcile: structlog makes a field's variable, later on it is set without it, which
    # takes half the time.
    return [
        var.set(value) if (var := _variables.get(key)) is not None else _first_bound(key, value)
        for key, value in fields.items()
    ]


def reset_fields(tokens: Sequence[Token[object]]) -> None:
    for token in tokens:
        token.var.reset(token)


def current_fields() -> dict[str, Any]:
    """Return the bound fields, of `bind_fields` and of structlog's own functions.

    You may change the result.
    """
    fields = get_contextvars()
    return {key: fields[key] for key in sorted(fields, key=_rank)} if len(fields) > 1 else fields


class Refill:
    """Binds the same fields again and again in a task, each time with other values.

    Nothing is unbound in between, because the next values replace the previous ones. This takes a third of the time of `bind_fields` and
    `reset_fields`. `lasting` are fields that stay; they are bound again only if the task lost them.
    """

    __slots__ = ("_changing", "_lasting")

    def __init__(self, lasting: Mapping[str, object], changing: Sequence[str]) -> None:
        self._lasting = [(_variable(key), value) for key, value in lasting.items()]
        self._changing = [_variable(key) for key in changing]

    def __call__(self, *values: object) -> None:
        """Bind the lasting fields, and the changing ones with these values, in order."""
        for variable, value in self._lasting:
            if variable.get() is not value:
                variable.set(value)
        for variable, value in zip(self._changing, values, strict=True):
            variable.set(value)


def _variable(key: str) -> ContextVar[object]:
    """Return the variable of a field; structlog makes it when it is first bound."""
    if key not in _variables:
        reset_fields([_first_bound(key, None)])
    return _variables[key]


def _first_bound(key: str, value: object) -> Token[object]:
    token = bind_contextvars(**{key: value})[key]
    _variables[key] = token.var
    _ranks[key] = len(_ranks)
    return token


def _rank(key: str) -> tuple[int, str]:
    return _ranks.get(key, _UNRANKED), key


_variables: Final[dict[str, ContextVar[object]]] = {}
_ranks: Final[dict[str, int]] = {}
_UNRANKED: Final = 1_000_000  # bound by others: behind ours, by name
