"""The suite, and the names of error groups in operator-framework's validators."""

from __future__ import annotations

from typing import Final

__all__ = ["FAILED", "INVALID_CSV", "OPERATOR_FRAMEWORK"]

OPERATOR_FRAMEWORK: Final = "operatorframework"
"""The suite of checks for every published operator."""

INVALID_CSV: Final = "CSVFileNotValid"
FAILED: Final = "ValidationFailed"
