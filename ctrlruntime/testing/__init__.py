"""Test tools for operators: an API server (`Environment`), `eventually`, and pytest fixtures."""

from __future__ import annotations

from ctrlruntime.testing.environment import Backend, Environment
from ctrlruntime.testing.eventually import eventually

__all__ = ["Backend", "Environment", "eventually"]
