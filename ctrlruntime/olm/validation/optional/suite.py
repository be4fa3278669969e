"""The suite, and operator-framework's words for the groups of errors that its validators yield."""

from __future__ import annotations

from typing import Final

__all__ = ["FAILED", "INVALID_CSV", "OPERATOR_FRAMEWORK"]

OPERATOR_FRAMEWORK: Final = "operatorframework"
"""The suite of what is expected of every operator that is published."""

INVALID_CSV: Final = "CSVFileNotValid"
FAILED: Final = "ValidationFailed"
