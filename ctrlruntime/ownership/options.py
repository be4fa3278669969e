"""Options of sharding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from ctrlruntime.ownership.machine import Timing

SLOTS: Final = (64, 128, 256)
"""The numbers of slots that a ring can have, besides the one of the leader."""


@dataclass(frozen=True, slots=True)
class ShardKey:
    """Returns the text that decides which replica reconciles an object.

    The same replica reconciles all objects with the same text.

    Raises: ConfigError without a name.
    """

    name: str
    """The name of the rule. Give the rule another name when you change the function: replicas with different rules never share the objects."""

    function: Callable[[NamespacedName], str]
    """A pure function of namespace and name."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError(
                "a ShardKey needs a name: replicas compare it, so that two versions never divide the objects differently"
            )


MARGIN: Final = 1.25
"""The factor between the time after which a replica stops, and that after which others take its objects."""

ShardBy: TypeAlias = Literal["name", "namespace", "uid"] | ShardKey
"""How the objects of a controller are divided: by namespace and name, by namespace, by uid, or by your own rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """Divides the objects of controllers with `sharded=True` among replicas.

    Times are seconds. Controllers and runnables without `sharded=True` run in one replica, as with leader election.

    Raises: ConfigError for a missing id, or invalid values.
    """

    id: str = field(kw_only=False)
    """The name of the Lease; the same in all replicas of an operator, and different for every operator."""

    namespace: str | None = None
    """The namespace of the Leases; None: the namespace of this pod."""

    slots: int = 256
    """The number of parts that are divided: 64, 128 or 256. Replicas with another number wait until the others have left."""

    weight: int = 1
    """The share of this replica, in proportion to those of the others."""

    lease_duration: float = 15.0
    """The time after the last renewal until other replicas take the objects of a replica."""

    renew_deadline: float = 10.0
    """The time that a replica continues without a successful renewal."""

    renew_period: float = 4.0
    """The time between two renewals."""

    drain_timeout: float = 10.0
    """The time that running reconciles have when their object moves. Then they are cancelled."""

    strict: bool = False
    """Reject writes to an object of another replica by a reconcile of the same controller. False: send them, with a warning.

    A rejected write raises `ForeignShardError`.
    """

    server_ranges: bool = True
    """Ask the API server for the own objects only, if controllers divide by `"uid"`.

    It needs the feature gate ShardedListAndWatch (KEP-5866, alpha). A server without it sends all objects.
    """

    identity: str | None = None
    """The name of this process in logs and in `ctrl why`. None: the variable POD_NAME, or the host name."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """The labels of the Leases."""

    def __post_init__(self) -> None:
        if not self.id:
            raise ConfigError("sharding needs an id, the name of the Lease, such as 'memcached.example.com'")
        if self.slots not in SLOTS:
            raise ConfigError(f"slots is {self.slots}: give {', '.join(map(str, SLOTS[:-1]))} or {SLOTS[-1]}")
        if self.weight < 1:
            raise ConfigError(f"weight is {self.weight}: give 1 or more")
        for name in ("lease_duration", "renew_deadline", "renew_period"):
            seconds: float = getattr(self, name)
            if seconds < 1:
                raise ConfigError(f"{name} is {seconds:g} s: give 1 s or more")
        if self.drain_timeout < 0:
            raise ConfigError(f"drain_timeout is {self.drain_timeout:g} s: give 0 s or more")
        if self.lease_duration < self.renew_deadline * MARGIN:
            raise ConfigError(
                f"lease_duration ({self.lease_duration:g} s) must be at least {MARGIN:g} times renew_deadline ({self.renew_deadline:g} s): "
                "a replica must stop before others can take its objects"
            )
        if self.renew_deadline < 2 * self.renew_period:
            raise ConfigError(
                f"renew_deadline ({self.renew_deadline:g} s) must be at least twice renew_period ({self.renew_period:g} s): "
                "one renewal may fail"
            )

    def timing(self, stop_grace: float) -> Timing:
        """Return the times of the member.

        `stop_grace`: seconds until it leaves with slots that no other replica took.
        """
        from ctrlruntime.ownership.machine import Timing

        return Timing(
            lease_duration=self.lease_duration,
            renew_deadline=self.renew_deadline,
            renew_period=self.renew_period,
            stop_grace=stop_grace,
        )
