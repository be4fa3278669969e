"""Fleets: one operator for many clusters.

Pass `fleet=ctrl.Fleet(provider)` to `new_manager`, or add single clusters: `mgr.add(ctrl.Cluster(config, name="eu"))`. Controllers watch all of
them with `on="fleet"`. See `ctrlruntime.fleet.clusters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctrlruntime.lazy import lazy_attributes

if TYPE_CHECKING:
    from ctrlruntime.fleet.clusters import ClusterStatus, FleetClusters
    from ctrlruntime.fleet.hub_providers import (
        ClusterAPI,
        ClusterProfiles,
        CredentialPlugin,
        KubeconfigSecrets,
        Namespaces,
    )
    from ctrlruntime.fleet.life import ClusterState
    from ctrlruntime.fleet.provider import ClusterSource, Inventory, Provider
    from ctrlruntime.fleet.providers import KubeconfigFiles, Static

__all__ = [
    "ClusterAPI",
    "ClusterProfiles",
    "ClusterSource",
    "ClusterState",
    "ClusterStatus",
    "CredentialPlugin",
    "FleetClusters",
    "Inventory",
    "KubeconfigFiles",
    "KubeconfigSecrets",
    "Namespaces",
    "Provider",
    "Static",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_attributes(
        __name__,
        {
            **dict.fromkeys(("ClusterStatus", "FleetClusters"), ".clusters"),
            "ClusterState": ".life",
            **dict.fromkeys(("ClusterSource", "Inventory", "Provider"), ".provider"),
            **dict.fromkeys(
                ("ClusterAPI", "ClusterProfiles", "CredentialPlugin", "KubeconfigSecrets", "Namespaces"),
                ".hub_providers",
            ),
            **dict.fromkeys(("KubeconfigFiles", "Static"), ".providers"),
        },
    )
