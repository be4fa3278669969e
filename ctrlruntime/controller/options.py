"""The options of a controller, validated by the constructor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeAlias, TypedDict

from typing_extensions import TypeVar

from ctrlruntime.ownership.options import ShardBy
from ctrlruntime.reconcile import Request
from ctrlruntime.workqueue import RateLimiter

R = TypeVar("R", default=Request)

LogFields: TypeAlias = Callable[[R | None], Mapping[str, object]]
"""Returns the fields for each log line of a reconcile; with None, those for the controller's own lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions(Generic[R]):
    """Options of a controller. Raises: ValueError for an invalid value."""

    max_concurrent_reconciles: int = 1
    """The number of concurrent reconciles; with `on="fleet"`, of each cluster.

    One request is never reconciled twice at the same time.
    """

    max_concurrent_total: int = 64
    """With `on="fleet"`: the number of concurrent reconciles of all clusters."""

    rate_limiter: RateLimiter[R] | None = None
    """The delays after failures of a request.

    None: 5 ms, doubled by each failure up to 1000 s. Use one instance for each controller.
    """

    reconciliation_timeout: float | None = None
    """Seconds after which a reconcile is cancelled, counted as timed out and retried with backoff; None: no limit."""

    cache_sync_timeout: float | None = None
    """Seconds for the watches to sync before the controller fails with CacheSyncTimeoutError; None: wait, and log the reason."""

    needs_leader_election: bool = True
    """Reconcile only while this process is the leader (if the manager elects one)."""

    sharded: bool = False
    """Reconcile only the share of this replica. The manager needs `sharding`."""

    shard_by: ShardBy = "name"
    """How the objects are divided among replicas: by "name" (namespace and name), "namespace", "uid", or a `ctrl.ShardKey`.

    With "uid", an API server with the feature gate ShardedListAndWatch sends each replica its own objects only.
    """

    enable_warmup: bool = False
    """Start watches and fill the queue before this process leads, so that a new leader starts at once."""

    warm_caches: bool = True
    """List and watch the kinds of this controller before this process leads.

    Each waiting replica then uses the memory and the watches of the leader. Without it, a new leader lists them first.
    """

    recover_panic: bool = True
    """Retry a reconcile that panics (raises an error that is not an Exception) with backoff; False: the controller fails with it."""

    skip_name_validation: bool = False
    """Allow another controller of the manager with the same name; both share metrics, log fields and field manager."""

    slow_reconcile_warning: float = 60.0
    """Seconds after which a running reconcile is logged with its age and the line at which it waits; 0: never."""

    cancel_interval: float = 5.0
    """Seconds between two attempts to cancel a reconcile that does not end."""

    log_constructor: LogFields[R] | None = None
    """Replaces the fields that the controller binds to its log lines."""

    def __post_init__(self) -> None:
        for name in ("max_concurrent_reconciles", "max_concurrent_total"):
            number: int = getattr(self, name)
            if number < 1:
                raise ValueError(f"{name} is {number}: give 1 or more")
        for name in ("reconciliation_timeout", "cache_sync_timeout"):
            seconds: float | None = getattr(self, name)
            if seconds is not None and seconds <= 0:
                raise ValueError(f"{name} is {seconds}: give seconds above 0, or None for no limit")
        if self.slow_reconcile_warning < 0:
            raise ValueError(
                f"slow_reconcile_warning is {self.slow_reconcile_warning}: give seconds, or 0 for no warning"
            )
        if self.cancel_interval <= 0:
            raise ValueError(f"cancel_interval is {self.cancel_interval}: give seconds above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDefaults:
    """Defaults for all controllers of a manager; see `ControllerOptions`."""

    max_concurrent_reconciles: int = 1
    group_kind_concurrency: Mapping[str, int] = field(default_factory=dict[str, int])
    """Workers by kind: {"Deployment.apps": 5, "Pod": 2}.

    Overrides the single number; a controller's own option overrides both.
    """

    reconciliation_timeout: float | None = None
    cache_sync_timeout: float | None = None
    enable_warmup: bool = False
    warm_caches: bool = True
    recover_panic: bool = True
    needs_leader_election: bool = True

    def options_of(self, group: str, kind: str) -> ControllerOptions[Any]:
        """Return the options of a controller of this kind without options of its own."""
        said: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        by_kind: Mapping[str, int] = said.pop("group_kind_concurrency")
        workers = by_kind.get(f"{kind}.{group}" if group else kind)
        if workers is not None:
            said["max_concurrent_reconciles"] = workers
        return ControllerOptions(**said)


class OptionKeywords(TypedDict, Generic[R], total=False):
    """The fields of ControllerOptions as keywords, for `Builder.with_options`."""

    max_concurrent_reconciles: int
    max_concurrent_total: int
    rate_limiter: RateLimiter[R] | None
    reconciliation_timeout: float | None
    cache_sync_timeout: float | None
    needs_leader_election: bool
    sharded: bool
    shard_by: ShardBy
    enable_warmup: bool
    warm_caches: bool
    recover_panic: bool
    skip_name_validation: bool
    slow_reconcile_warning: float
    cancel_interval: float
    log_constructor: LogFields[R] | None
