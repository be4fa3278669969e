"""How much an operator does by itself: five levels, each with all that those before it do."""

from __future__ import annotations

from typing import Final

__all__ = ["LEVELS"]

LEVELS: Final = ("Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot")
"""The levels, as the annotation `capabilities` has them."""
