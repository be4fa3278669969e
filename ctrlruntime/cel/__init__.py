"""The Common Expression Language as in the Kubernetes API server: compile, type check, cost estimate, evaluation.

The names of this module are loaded on first use, so a server without rules does not load the compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctrlruntime.cel.failures import (
        CompileError,
        CostError,
        EvaluationError,
        InstantiationError,
        MissingLibraryError,
    )
    from ctrlruntime.cel.program import Program, compile  # noqa: A004 - it is what it does
    from ctrlruntime.cel.types import Type

__all__ = [
    "CompileError",
    "CostError",
    "EvaluationError",
    "InstantiationError",
    "MissingLibraryError",
    "Program",
    "Type",
    "compile",
]

if not TYPE_CHECKING:
    _HOMES = {"Program": "program", "Type": "types", "compile": "program"}

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'failures')}"), name)
