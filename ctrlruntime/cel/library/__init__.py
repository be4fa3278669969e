"""The functions an expression may call."""

from ctrlruntime.cel.library.tables import functions

__all__ = ["functions"]
