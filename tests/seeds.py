"""The seeds of random tests."""

from __future__ import annotations

import pytest


def seeds(all: range, few: int) -> list[object]:
    """Return the first `few` for a normal run, and the others for `--all`."""
    return [*all[:few], *(pytest.param(seed, marks=pytest.mark.thorough) for seed in all[few:])]
