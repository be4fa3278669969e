"""Faults for tests: a proxy in front of any API server that injects delays, errors, resets and stale data."""

from __future__ import annotations

from ctrlruntime.testing.faults.match import Match, SeenRequest
from ctrlruntime.testing.faults.plan import Change, Fault
from ctrlruntime.testing.faults.process import freeze, frozen, thaw
from ctrlruntime.testing.faults.proxy import FaultProxy

__all__ = ["Change", "Fault", "FaultProxy", "Match", "SeenRequest", "freeze", "frozen", "thaw"]
