"""The bars: what ctrlruntime must reach beside its peers, in the same run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Bar:
    """The figure of a workload is at most (or at least) `limit`, times the peer's when there is one."""

    workload: str
    figure: str
    sense: Literal["<=", ">="]
    limit: float
    peer: str = ""
    program: str = "ctrlruntime"
    """Whose figure it is."""

    def judge(self, ours: float | None, theirs: float | None) -> tuple[str, float | None]:
        """Return held, missed or not measured, and the value that is compared with the limit."""
        if ours is None or (self.peer and not theirs):
            return "not measured", None
        value = ours / theirs if self.peer and theirs else ours
        good = value <= self.limit if self.sense == "<=" else value >= self.limit
        return "held" if good else "missed", value


BARS = (
    Bar("synced", "wall", "<=", 0.6, "go"),
    Bar("synced", "cpu", "<=", 0.25, "go"),
    Bar("synced", "kib", "<=", 0.7, "go"),
    Bar("synced", "wall", "<=", 1.0, "rust"),
    Bar("synced", "cpu", "<=", 1.0, "rust"),
    Bar("synced", "kib", "<=", 0.35, "rust"),
    Bar("reconciled", "wall", "<=", 0.8, "go"),
    Bar("reconciled", "cpu", "<=", 0.5, "go"),
    Bar("reconciled", "wall", "<=", 0.1, "kopf"),
    Bar("pods", "kib", "<=", 0.6, "go"),
    Bar("pods", "cpu", "<=", 0.6, "go"),
    Bar("pods", "wall", "<=", 1.0, "go"),
    Bar("children", "rate", ">=", 1.0, "go"),
    Bar("children", "cpu", "<=", 1.0, "go"),
    Bar("owns", "rate", ">=", 1.0, "go"),
    Bar("owns", "cpu", "<=", 1.0, "go"),
    Bar("queue", "operations", ">=", 300_000),
    Bar("reads", "gets", ">=", 60_000),
    Bar("reads", "gets_cpu", ">=", 0.7, "go"),
    Bar("reads", "lookups", ">=", 1 / 1.5, "go"),
    Bar("reads", "list_ms", "<=", 1.0, "go"),
    Bar("reads", "list_typed_ms", "<=", 1.0, "go"),
    Bar("reads", "list_all_ms", "<=", 2.5, "go"),
    Bar("reads", "held_ms", "<=", 20.0),
    Bar("latency", "p50", "<=", 1.25, "go"),
    Bar("idle", "resident", "<=", 80.0),
    Bar("controllers", "cpu", "<=", 1.0, "go"),
    Bar("namespaces", "cpu", "<=", 1.0, "go"),
    Bar("webhook", "p50", "<=", 1.0, "go"),
    Bar("webhook", "review_us", "<=", 1.0, "go"),
    Bar("metadata", "peak_ratio", "<=", 1.3),
    Bar("startup", "import_cpu", "<=", 250.0),
    Bar("server", "thread_ready", "<=", 150.0, program="embedded"),
    Bar("server", "creates", ">=", 1_500, program="embedded"),
)
