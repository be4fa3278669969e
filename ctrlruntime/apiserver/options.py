"""What the embedded server can be told at its start."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from ctrlruntime.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an embedded API server runs; the defaults make a small cluster with RBAC, workloads and one node."""

    port: int = 0
    """TCP port on 127.0.0.1; 0 takes a free one."""
    admin_token: str = ""
    """Bearer token of a member of system:masters; empty makes a random one."""
    authorization: Literal["rbac", "always-allow"] = "rbac"
    controllers: Collection[str] | None = None
    """Names of the simulated controllers that run; None runs all, an empty collection none."""
    workloads: bool = True
    """False leaves out the workload controllers and the node."""
    nodes: bool = True
    """False leaves out node, scheduler and kubelet: Pods stay Pending."""
    pod_ready_delay: float = 0.0
    """Seconds from binding a Pod to its being Ready."""
    history: int = 10_000
    """Writes remembered for each resource, for watches that resume and lists that continue."""
    bookmark_interval: float = 60.0
    """Seconds between bookmarks on a watch."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port {self.port} is not a TCP port; use 0 for a free one, or 1 to 65535")
        if self.authorization not in {"rbac", "always-allow"}:
            raise ConfigError(f"authorization {self.authorization!r} is unknown; use 'rbac' or 'always-allow'")
        if self.history < 1:
            raise ConfigError(f"history must be at least 1, not {self.history}")
        if self.pod_ready_delay < 0:
            raise ConfigError(f"pod_ready_delay must not be negative, and is {self.pod_ready_delay}")
