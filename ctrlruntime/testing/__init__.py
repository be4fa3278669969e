"""Test tools for operators: an API server (`Environment`), `eventually`, `read_objects`, `second_pass`, and pytest fixtures."""

from __future__ import annotations

from ctrlruntime.testing.environment import Backend, Environment
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.testing.manifests import read_objects
from ctrlruntime.testing.second_pass import second_pass

__all__ = ["Backend", "Environment", "eventually", "read_objects", "second_pass"]
