"""Which Pod of the operator reconciles: the one that holds its Lease, or the only one; and the arguments of its container.

The election itself is in the process. From outside, a leader is the Pod whose host name is in the identity of a Lease's holder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ctrlruntime.api import apps, core
from ctrlruntime.api.coordination.v1 import Lease
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import CtrlError, Forbidden, NotFound
from ctrlruntime.ownership.leases import LABEL as RING_LABEL
from ctrlruntime.project.deployment.objects import MANAGER

__all__ = [
    "PodChoiceError",
    "SeveralPodsError",
    "arguments",
    "choose_pod",
    "find_pod",
    "flag_value",
    "operator_container",
]

_LEASE_NAMESPACE: Final = "--leader-election-namespace"
_HOSTNAME_LENGTH: Final = 63  # the kubelet cuts the names of Pods for their host names
_SHOWN: Final = 5
_reference = re.compile(r"\$(?:\$|\(([A-Za-z0-9_.-]+)\))")


class PodChoiceError(CtrlError):
    """No Pod of the operator can be chosen; the message says what to do."""


class SeveralPodsError(PodChoiceError):
    """Several Pods could be meant; the message has their names."""


async def find_pod(cluster: Cluster, deployment: NamespacedName) -> core.Pod:
    """Return the Pod of the operator's Deployment that reconciles.

    Raises: PodChoiceError, Forbidden, APIStatusError, TransportError.
    """
    try:
        found = await cluster.api_reader.get(apps.Deployment, deployment)
    except NotFound:
        raise PodChoiceError(
            f"the cluster {cluster.config.host} has no Deployment {deployment}. Deploy the operator with `ctrl deploy`, or run it "
            "here with `ctrl run`"
        ) from None
    labels = found.spec.selector.match_labels if found.spec.selector is not None else {}
    listed = await cluster.api_reader.list(core.Pod, namespace=deployment.namespace, labels=labels)
    return choose_pod(deployment, listed.valid, await _leases(cluster, deployment.namespace, listed.valid))


async def _leases(cluster: Cluster, namespace: str, pods: Iterable[core.Pod]) -> Sequence[Lease] | None:
    """Return the Leases where these Pods elect a leader; None if this user has no permission to list them."""
    namespaces = {_lease_namespace(pod) or namespace for pod in pods}
    found: list[Lease] = []
    for each in sorted(namespaces):
        try:
            found += (await cluster.api_reader.list(Lease, namespace=each)).valid
        except Forbidden:
            return None
    return found


def _lease_namespace(pod: core.Pod) -> str:
    container = operator_container(pod.spec)
    return flag_value(arguments(container), _LEASE_NAMESPACE) or "" if container is not None else ""


def choose_pod(deployment: NamespacedName, pods: Sequence[core.Pod], leases: Sequence[Lease] | None) -> core.Pod:
    """Return the Pod that reconciles: the leader if there is one, else the only ready Pod. With sharding, all reconcile: return the first.

    A leader is chosen even if it is not ready, because a blocked event loop is a reason not to be. `leases` is None if they cannot be read.
    Raises: PodChoiceError.
    """
    held = {pod.metadata.name: names for pod in pods if (names := _held_by(pod, leases or ()))}
    leaders = [pod for pod in pods if pod.metadata.name in held]
    if len(leaders) == 1:
        return leaders[0]
    if leaders and all(_shares(pod, leases or ()) for pod in leaders):
        return leaders[0]
    if leaders:
        texts = "; ".join(f"{name} holds {', '.join(held[name])}" for name in sorted(held))
        raise SeveralPodsError(f"several Pods of Deployment {deployment} hold a Lease: {texts}")
    ready = [pod for pod in pods if _is_ready(pod)]
    if len(ready) == 1:
        return ready[0]
    if not ready:
        count = len(pods)
        has = f"has {count} Pod{'' if count == 1 else 's'}, and none is ready" if pods else "has no Pods"
        raise PodChoiceError(f"Deployment {deployment} {has}. Find the reason with `ctrl doctor`")
    shown = _listed(pod.metadata.name for pod in ready)
    if leases is None:
        raise SeveralPodsError(
            f"Deployment {deployment} has several ready Pods ({shown}), and this user has no permission to find the leader. Ask for the "
            "verb list on leases.coordination.k8s.io"
        )
    raise SeveralPodsError(
        f"Deployment {deployment} has several ready Pods ({shown}), and none of them holds a Lease. With --leader-elect, try again after "
        "the election"
    )


def _shares(pod: core.Pod, leases: Iterable[Lease]) -> bool:
    """Return whether a Pod shares the objects with others: each replica then has a Lease."""
    held = set(_held_by(pod, leases))
    return any(RING_LABEL in lease.metadata.labels for lease in leases if lease.metadata.name in held)


def _held_by(pod: core.Pod, leases: Iterable[Lease]) -> list[str]:
    """Return the names of the Leases that a Pod holds. An identity is a host name, here followed by `_` and a random part, as in Go."""
    host = _hostname(pod)
    holders = ((lease.metadata.name, lease.spec.holder_identity or "") for lease in leases)
    return sorted(name for name, holder in holders if host in {holder, holder.rpartition("_")[0]})


def _hostname(pod: core.Pod) -> str:
    return pod.spec.hostname or pod.metadata.name[:_HOSTNAME_LENGTH].rstrip("-.")


def _is_ready(pod: core.Pod) -> bool:
    is_ready = any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
    return is_ready and pod.metadata.deletion_timestamp is None


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more


def operator_container(spec: core.PodSpec) -> core.Container | None:
    """Return the operator's container; the only one where none has its name."""
    named = [each for each in spec.containers if each.name == MANAGER]
    if named:
        return named[0]
    return spec.containers[0] if len(spec.containers) == 1 else None


def arguments(container: core.Container) -> list[str]:
    """Return command and arguments of a container, with the values of its variables, as far as they are in the Pod."""
    variables = {each.name: each.value for each in container.env if each.value_from is None}
    return [_expanded(each, variables) for each in (*container.command, *container.args)]


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as the kubelet does: an unknown name stays as it is, and `$$` is a `$`."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[1] is None else variables.get(found[1], found[0])

    return _reference.sub(value, text)


def flag_value(args: Sequence[str], flag: str) -> str | None:
    """Return the value of a flag, `--flag=value` or `--flag value`; the last one, as for the operator, or None."""
    found: str | None = None
    for place, each in enumerate(args):
        if each == flag and place + 1 < len(args):
            found = args[place + 1]
        elif each.startswith(f"{flag}="):
            found = each.removeprefix(f"{flag}=")
    return found
