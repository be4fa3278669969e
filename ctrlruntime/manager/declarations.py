"""The declarations of a manager: which controllers watch which kinds and why, and who records Events.

Builders and the manager write; the generator of roles reads, from a manager that never starts. A builder says why a kind is watched. Of a
controller that was created without one only the watches are known: they need reading, and its writes are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ctrlruntime.api.object import Object
from ctrlruntime.controller.controller import Controller
from ctrlruntime.source import Kind, Reason

__all__ = ["Declarations", "Watch"]


@dataclass(frozen=True, slots=True)
class Watch:
    """A kind that a controller watches: the one it reconciles ("for"), its children ("owns"), or another one ("watches")."""

    controller: str
    kind: type[Object]
    reason: Reason


@dataclass(slots=True)
class Declarations:
    """The declarations so far, in order."""

    watches: list[Watch] = field(default_factory=list[Watch])
    """What the builders' controllers watch."""

    recorders: list[str] = field(default_factory=list[str])
    """Names of those that record Events."""

    _controllers: list[Controller[Any]] = field(default_factory=list[Controller[Any]])

    def note(self, runnable: object) -> None:
        """Note a controller that the manager runs."""
        if isinstance(runnable, Controller):
            self._controllers.append(runnable)

    @property
    def is_sharded(self) -> bool:
        """Whether a controller reconciles only the share of a replica."""
        return any(controller.options.sharded for controller in self._controllers)

    def made_by_hand(self) -> list[Watch]:
        """Return what the controllers watch that were made without a builder, those watches that were added after `mgr.add` too."""
        built = {watch.controller for watch in self.watches}
        return [
            Watch(controller.name, watch.source.kind, watch.source.reason)
            for controller in self._controllers
            if controller.name not in built
            for watch in controller.watches
            if isinstance(watch.source, Kind)
        ]
