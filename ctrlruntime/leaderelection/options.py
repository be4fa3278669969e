"""What an election is about, and how patient its candidates are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctrlruntime.errors import ConfigError
from ctrlruntime.leaderelection.lock import Lock


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Elects one leader among the processes that name the same lease. Times are seconds.

    Raises: ConfigError for a missing id, or times that do not fit together.
    """

    id: str = field(kw_only=False)
    """Name of the lease; the same in all processes of an operator and different from every other operator's."""

    namespace: str | None = None
    """Where the lease lives; None: where this pod runs."""

    lease_duration: float = 15.0
    """How long other candidates wait after the last renewal they saw before they take over."""

    renew_deadline: float = 10.0
    """How long the leader goes on without a renewal that worked before it gives up."""

    retry_period: float = 2.0
    """How long to wait between two attempts."""

    release_on_cancel: bool = True
    """Give the lease back at a planned stop, so that another process takes over at once."""

    identity: str | None = None
    """What this process is called in the lease; None: its host name and a random part. No two processes may share it.
    """

    lock: Lock | None = None
    """Keeps the record of who leads in place of a Lease; `namespace` and `labels` then mean nothing. It is called on an event loop of its own
    (not the one of your reconcilers), and no Events are recorded."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels of the lease."""

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError("leader election needs an id, the name of the Lease, such as 'memcached.example.com'")
        if self.identity is not None and not self.identity:
            raise ConfigError(
                "identity is empty: a Lease with an empty holder has no leader. Give text, or None for a generated identity"
            )
        for name in ("lease_duration", "renew_deadline", "retry_period"):
            seconds: float = getattr(self, name)
            if seconds < 1:
                raise ConfigError(f"{name} is {seconds:g} s: give 1 s or more")
        if self.lease_duration <= self.renew_deadline:
            raise ConfigError(
                f"lease_duration ({self.lease_duration:g} s) must be longer than renew_deadline ({self.renew_deadline:g} s): "
                "a leader must stop before another replica can take over"
            )
        if self.renew_deadline <= 1.2 * self.retry_period:
            raise ConfigError(
                f"renew_deadline ({self.renew_deadline:g} s) must be longer than 1.2 times retry_period ({self.retry_period:g} s): "
                "a leader must be able to retry"
            )

    @property
    def request_timeout(self) -> float:
        """Seconds one request of the election may take."""
        return max(1.0, self.renew_deadline / 2)
