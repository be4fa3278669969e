"""Chooses the controllers that run, by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Final

from ctrlruntime.apiserver.controllers.autoscalers import Autoscalers
from ctrlruntime.apiserver.controllers.claims import AttributesClassProtection, ClaimProtection, VolumeProtection
from ctrlruntime.apiserver.controllers.cronjobs import CronJobs
from ctrlruntime.apiserver.controllers.daemonsets import DaemonSets
from ctrlruntime.apiserver.controllers.deployments import Deployments
from ctrlruntime.apiserver.controllers.disruption import DisruptionBudgets
from ctrlruntime.apiserver.controllers.endpointslices import Endpoints, EndpointSlices
from ctrlruntime.apiserver.controllers.expiry import EventExpiry
from ctrlruntime.apiserver.controllers.garbage import GarbageCollector
from ctrlruntime.apiserver.controllers.jobs import Jobs
from ctrlruntime.apiserver.controllers.keyed import KeyedController, Reconciler
from ctrlruntime.apiserver.controllers.kubelet import Kubelet
from ctrlruntime.apiserver.controllers.namespaces import Furniture, Namespaces
from ctrlruntime.apiserver.controllers.nodes import Nodes, Scheduler
from ctrlruntime.apiserver.controllers.objects import Now, utc_now
from ctrlruntime.apiserver.controllers.provisioner import Provisioner
from ctrlruntime.apiserver.controllers.replicasets import ReplicaSets
from ctrlruntime.apiserver.controllers.resourcequotas import ResourceQuotas
from ctrlruntime.apiserver.controllers.roles import RoleAggregation
from ctrlruntime.apiserver.controllers.signing import RequestSigning, Sign
from ctrlruntime.apiserver.controllers.statefulsets import StatefulSets
from ctrlruntime.apiserver.controllers.tokens import MakeToken, TokenSecrets
from ctrlruntime.apiserver.controllers.volumes import EphemeralVolumes, VolumeBinding
from ctrlruntime.apiserver.interfaces import Controller
from ctrlruntime.errors import ConfigError

SYSTEM: Final = (
    "garbage-collector",
    "namespace",
    "service-account",
    "service-account-token",
    "root-ca",
    "clusterrole-aggregation",
    "persistentvolume-binder",
    "ephemeral-volume",
    "persistentvolumeclaim-protection",
    "persistentvolume-protection",
    "volumeattributesclass-protection",
    "csrsigning",
    "resourcequota",
    "event-ttl",
)
WORKLOADS: Final = (
    "deployment",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "daemonset",
    "job",
    "cronjob",
    "horizontalpodautoscaler",
    "disruption",
    "endpointslice",
    "endpoints",
)
NODES: Final = ("node", "scheduler", "kubelet", "provisioner")
ALL: Final = (*SYSTEM, *WORKLOADS, *NODES)


def build(
    names: Collection[str] | None = None,
    *,
    pod_ready_delay: float = 0.0,
    nodes: bool = True,
    root_ca: str = "",
    make_token: MakeToken | None = None,
    sign: Sign | None = None,
    event_ttl: float = 3600.0,
    now: Now = utc_now,
    clock: Callable[[], float] = time.monotonic,
) -> list[Controller]:
    """Return the controllers to run; None means all of them (see ALL).

    `pod_ready_delay` is the seconds from a pod's binding to its readiness. Without `nodes` there is neither a node nor
    scheduler and no kubelet, and pods stay Pending. `root_ca` is the PEM text for `kube-root-ca.crt`. Without
    `make_token` no Secret is filled with a service account's token, and without `sign` no CertificateSigningRequest is
    signed. `event_ttl` is the seconds an Event lives.

    Raises:
        ConfigError: a name is not the name of a controller.

    """
    chosen = ALL if names is None else tuple(names)
    unknown = [name for name in chosen if name not in ALL]
    if unknown:
        raise ConfigError(f"controller {', '.join(unknown)} does not exist. Use one of {', '.join(ALL)}")
    makers: dict[str, Callable[[], Reconciler]] = {
        "garbage-collector": lambda: GarbageCollector(now),
        "namespace": lambda: Namespaces(now),
        "service-account": Furniture.service_account,
        "root-ca": lambda: Furniture.root_ca(root_ca),
        "clusterrole-aggregation": RoleAggregation,
        "persistentvolume-binder": lambda: VolumeBinding(now),
        "ephemeral-volume": EphemeralVolumes,
        "persistentvolumeclaim-protection": ClaimProtection,
        "persistentvolume-protection": VolumeProtection,
        "volumeattributesclass-protection": AttributesClassProtection,
        "resourcequota": lambda: ResourceQuotas(lambda: now().timestamp()),
        "event-ttl": lambda: EventExpiry(now, ttl=event_ttl),
        "deployment": lambda: Deployments(now),
        "replicaset": lambda: ReplicaSets(now),
        "statefulset": lambda: StatefulSets(now),
        "daemonset": lambda: DaemonSets(now),
        "replicationcontroller": lambda: ReplicaSets(now, name="replicationcontroller", kind="ReplicationController"),
        "job": lambda: Jobs(now),
        "cronjob": lambda: CronJobs(now),
        "horizontalpodautoscaler": lambda: Autoscalers(now),
        "disruption": lambda: DisruptionBudgets(now),
        "endpointslice": EndpointSlices,
        "endpoints": Endpoints,
        "node": lambda: Nodes(now),
        "scheduler": lambda: Scheduler(now),
        "provisioner": lambda: Provisioner(now),
        "kubelet": lambda: Kubelet(ready_delay=pod_ready_delay, now=now, clock=clock),
    }
    if make_token is not None:
        makers["service-account-token"] = lambda: TokenSecrets(make_token, root_ca)
    if sign is not None:
        makers["csrsigning"] = lambda: RequestSigning(sign, now)
    left_out = () if nodes else NODES
    return [
        KeyedController(makers[name]()) for name in ALL if name in chosen and name in makers and name not in left_out
    ]
