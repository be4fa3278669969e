"""The clusters of a fleet that replicas divide: what `Shards` calls when the slots of this replica change.

The slot of a cluster follows from its name. All its requests are reconciled by the replica that has the slot; see `ownership.shards`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from ctrlruntime.fleet.clusters import FleetClusters, Lane

__all__ = ["FleetSlots"]


class FleetSlots:
    """All controllers of a fleet, as `Shards` sees them."""

    def __init__(self, fleet: FleetClusters) -> None:
        self._fleet = fleet

    @property
    def queue(self) -> None:
        """None: requests that wait are kept with their cluster."""

    @property
    def shard(self) -> None: ...

    async def wait_synced(self) -> None:
        """Connect the clusters of new slots."""
        self._fleet.settle_all()

    async def show(self, slots: Collection[int]) -> None:
        """Reconcile all objects of the clusters of slots."""
        for lane in self._lanes(slots):
            await self._fleet.resume(lane)

    def withdraw(self, slots: Collection[int]) -> list[tuple[int, object]]:
        for lane in self._lanes(slots):
            self._fleet.stand_by(lane)
        return []

    async def end_moved(self, slots: Collection[int], within: float) -> None:
        await asyncio.gather(*(self._fleet.end_reconciles(lane, within=within) for lane in self._lanes(slots)))

    def forget(self, slots: Collection[int]) -> None:
        for lane in self._lanes(slots):
            lane.parked.clear()

    def _lanes(self, slots: Collection[int]) -> list[Lane]:
        return [lane for lane in self._fleet.lanes if lane.slot in slots]
