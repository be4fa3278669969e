"""Options of leader election."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctrlruntime.errors import ConfigError
from ctrlruntime.leaderelection.lock import Lock


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Elects one leader among the processes with the same Lease. Times are seconds.

    Raises: ConfigError for a missing id, or invalid times.
    """

    id: str = field(kw_only=False)
    """The name of the Lease; the same in all replicas of an operator, and different for every operator."""

    namespace: str | None = None
    """The namespace of the Lease; None: the namespace of this pod."""

    lease_duration: float = 15.0
    """The time that candidates wait after the last renewal they saw before they take over."""

    renew_deadline: float = 10.0
    """The time that the leader continues without a successful renewal."""

    retry_period: float = 2.0
    """The time between two attempts."""

    release_on_cancel: bool = True
    """Release the Lease at a planned stop, so that another replica takes over at once."""

    identity: str | None = None
    """The name of this process in the Lease.

    None: the host name and a random part. It must be unique.
    """

    lock: Lock | None = None
    """Stores the leader record instead of a Lease.

    `namespace` and `labels` are then ignored.

    It is called on the second event loop, and no Events are recorded.
    """

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """The labels of the Lease."""

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
        """The timeout in seconds of one request."""
        return max(1.0, self.renew_deadline / 2)
