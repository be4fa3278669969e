"""The fields bound to what runs now: structlog's contextvars, given back in the order in which they were first bound.

structlog walks them in the order of their hashes, which differs from process to process; a log is easier to read when
the same field stands in the same place.
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
    """Return what is bound here, with `bind_fields` or with structlog's own functions; the caller's to change."""
    fields = get_contextvars()
    return {key: fields[key] for key in sorted(fields, key=_rank)} if len(fields) > 1 else fields


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
