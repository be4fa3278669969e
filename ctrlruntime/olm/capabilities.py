"""The capability levels of operators: five levels, each of which includes those before it."""

from __future__ import annotations

from typing import Final

__all__ = ["LEVELS"]

LEVELS: Final = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
"""The values of the annotation `capabilities`."""
