"""Shapes of objects: the Go types of built-in kinds, the structural schemas of custom ones."""

from ctrlruntime.schema.structural import Structural, compile_schema
from ctrlruntime.schema.typed import Misfit, Typed, typed

__all__ = ["Misfit", "Structural", "Typed", "compile_schema", "typed"]
