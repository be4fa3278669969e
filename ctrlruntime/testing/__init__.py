"""Testing an operator: an API server (`Environment`), waiting for facts (`eventually`), and the pytest fixtures that
use them.
"""

from __future__ import annotations

from ctrlruntime.testing.environment import Backend, Environment
from ctrlruntime.testing.eventually import eventually

__all__ = ["Backend", "Environment", "eventually"]
