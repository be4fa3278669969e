"""Projects: what the scaffold starts is forked, which takes a tenth of the time."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _forks(manifests_in_forks: None) -> None:
    """`ctrl manifests` at the end of a scaffold."""
