"""Fleets: one operator for many clusters.

A cluster that is added to the manager is part of its fleet: `mgr.add(ctrl.Cluster(config, name="eu"))`. Controllers watch all of them with
`on="fleet"`. See `ctrlruntime.fleet.clusters`.
"""

from ctrlruntime.fleet.clusters import ClusterStatus, FleetClusters
from ctrlruntime.fleet.life import ClusterState

__all__ = ["ClusterState", "ClusterStatus", "FleetClusters"]
