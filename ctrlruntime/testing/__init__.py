"""Test tools for operators: API servers (`Environment`, `EmbeddedServers`), `eventually`, `read_objects`, `second_pass`, pytest fixtures."""

from __future__ import annotations

from ctrlruntime.testing.embedded_servers import EmbeddedServers
from ctrlruntime.testing.environment import Backend, Environment
from ctrlruntime.testing.eventually import eventually
from ctrlruntime.testing.manifests import read_objects
from ctrlruntime.testing.second_pass import second_pass

__all__ = ["Backend", "EmbeddedServers", "Environment", "eventually", "read_objects", "second_pass"]
