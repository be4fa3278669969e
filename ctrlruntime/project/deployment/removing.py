"""A deployment taken out of a cluster, in the order that lets it end well.

Custom resources go first, while the operator still runs and can do what their finalizers are for. Then webhooks, the operator, the rest,
the definitions, and the Namespace, which has the record of the set and everything that the operator wrote outside its manifests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from ctrlruntime.api import apps, core
from ctrlruntime.api.kind import GroupVersionKind
from ctrlruntime.api.metadata import NamespacedName
from ctrlruntime.client.interfaces import Client, PropagationPolicy
from ctrlruntime.client.patches import merge_patch
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError, Conflict, NoMatchError, NotFound
from ctrlruntime.project.deployment.applying import DeployError
from ctrlruntime.project.deployment.applyset import PART_OF, ApplySet, Member, Scope
from ctrlruntime.project.deployment.objects import Named, Step, Tell
from ctrlruntime.project.deployment.pruning import custom_objects, in_removal_order, removal_rank

__all__ = ["NotDeployedError", "Plan", "Removal", "undeploy"]

_POLL: Final = 0.25  # seconds between looks at what is waited for
_SHOWN: Final = 10  # objects named in a message
_NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")


class NotDeployedError(ConfigError):
    """The record of a deployment does not exist."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What will be removed: the members of the set, and the objects of each definition among them."""

    members: tuple[Member, ...]
    custom: Mapping[Named, Sequence[Member]]

    @property
    def objects(self) -> list[Member]:
        return [member for members in self.custom.values() for member in members]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """How to undeploy."""

    wait: float = 120.0
    """Seconds for everything to be deleted."""

    remove_finalizers: bool = False
    """Remove finalizers of custom resources: at once if no operator runs, else after the timeout."""

    confirm: Callable[[Plan], None] = lambda _plan: None
    """Called before anything is deleted; raises to stop."""

    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)


async def undeploy(cluster: Cluster, *, name: str, namespace: str, removal: Removal, tell: Tell) -> None:
    """Remove the set `name` in `namespace` and every object of its definitions.

    Raises: NotDeployedError without a deployment, DeployError with the remaining objects after the timeout, APIStatusError, TransportError.
    """
    client = cluster.unfenced_client()
    ours = ApplySet(client, name, namespace)
    scope = await ours.read() or await _rest_of(client, ours)
    if scope is None:
        raise NotDeployedError(
            f"{name} is not deployed in namespace {namespace}: {ours.parent}, the record of `ctrl deploy`, does not exist"
        )
    members = await ours.members(scope)
    definitions = [each.named for each in members if each.named.kind.kind == "CustomResourceDefinition"]
    custom = {named: await custom_objects(client, named) for named in definitions}
    plan = Plan(tuple(members), {named: found for named, found in custom.items() if found})
    removal.confirm(plan)
    await _Undeployment(client, ours, removal, tell).run(plan)


async def _rest_of(client: Client, ours: ApplySet) -> Scope | None:
    """Return the scope of a removal that was cut off: the record went with the Namespace, which is still there."""
    found = await client.api_reader.get_or_none(core.Namespace, NamespacedName("", ours.parent.namespace))
    if found is None or found.metadata.labels.get(PART_OF) != ours.id:
        return None
    return Scope(frozenset({("", "Namespace")}), frozenset())


class _Undeployment:
    """One run."""

    def __init__(self, client: Client, ours: ApplySet, removal: Removal, tell: Tell) -> None:
        self._client = client
        self._set = ours
        self._removal = removal
        self._tell = tell
        self._clock = asyncio.get_running_loop().time
        self._deadline = self._clock() + removal.wait

    async def run(self, plan: Plan) -> None:
        await self._remove_custom(plan)
        for _, stage in groupby(in_removal_order(plan.members), key=lambda member: removal_rank(member.named)):
            members = list(stage)
            for member in members:
                await self._delete(member.named, member.uid)
            left = await self._wait_gone(members)
            if left:
                raise DeployError(
                    f"not deleted after {self._removal.wait:g} s: {_listed(left)}. Run the command again to continue"
                )
        if Named(_NAMESPACE, "", self._set.parent.namespace) not in {each.named for each in plan.members}:
            await self._delete(self._set.parent, "")

    # Custom resources

    async def _remove_custom(self, plan: Plan) -> None:
        objects = plan.objects
        if not objects:
            return
        held = [each for each in objects if each.finalizers]
        is_attended = not held or await self._operator_runs(plan)
        if not is_attended and not self._removal.remove_finalizers:
            raise DeployError(
                f"{_listed(held)}: no operator runs that could remove these finalizers. Start it, or use --remove-finalizers"
            )
        for each in objects:
            await self._delete(each.named, each.uid)
        left = await self._wait_gone(objects) if is_attended else held
        if left and self._removal.remove_finalizers:
            left = await self._remove_finalizers(left)
        if left:
            raise DeployError(
                f"not deleted after {self._removal.wait:g} s: {_listed(left)}. The operator still runs. Read its log, or remove "
                "the remaining finalizers with --remove-finalizers"
            )

    async def _operator_runs(self, plan: Plan) -> bool:
        for member in plan.members:
            if member.named.kind == _DEPLOYMENT:
                found = await self._client.api_reader.get_or_none(apps.Deployment, member.named.key)
                if found is not None and found.status.available_replicas:
                    return True
        return False

    async def _remove_finalizers(self, members: Iterable[Member]) -> list[Member]:
        members = list(members)
        for each in members:
            try:
                await self._client.patch(each.named.metadata_only(), merge_patch({"metadata": {"finalizers": None}}))
            except NotFound:
                continue
        self._deadline = self._clock() + self._removal.wait  # it was used up by who should have done this
        return await self._wait_gone(members)

    # One by one

    async def _delete(self, named: Named, uid: str) -> None:
        # In the foreground: a Deployment is gone when its Pods are, which use what is removed after it.
        propagation_policy: PropagationPolicy = "Foreground" if named.kind == _DEPLOYMENT else "Background"
        try:
            await self._client.delete(named.metadata_only(), uid=uid, propagation_policy=propagation_policy)
        except (NotFound, NoMatchError):
            return
        except Conflict as error:
            # A Namespace that is going answers so; anything else is an object that was made again under the same name.
            if named.kind != _NAMESPACE:
                raise DeployError(f"{named} was created again while it was deleted. Run the command again") from error

    async def _wait_gone(self, members: Sequence[Member]) -> list[Member]:
        """Wait until objects are gone, tell of each, and return those that are not when the time is up."""
        left = list(members)
        while True:
            there: list[Member] = []
            for each in left:
                now = await self._look(each)
                if now is None:
                    self._tell(Step("deleted", each.named))
                else:
                    there.append(now)
            left = there
            if not left or self._clock() >= self._deadline:
                return left
            await self._removal.sleep(_POLL)

    async def _look(self, member: Member) -> Member | None:
        try:
            found = await self._client.api_reader.get_or_none(member.named.metadata_class, member.named.key)
        except NoMatchError:
            return None
        if found is None or found.metadata.uid != member.uid:
            return None
        return Member(member.named, member.uid, is_going=True, finalizers=tuple(found.metadata.finalizers))


def _listed(members: Iterable[Member]) -> str:
    """Return names with what holds each; the first ten of them."""
    members = list(members)
    texts = [
        f"{each.named} (finalizers {', '.join(each.finalizers)})" if each.finalizers else str(each.named)
        for each in members[:_SHOWN]
    ]
    more = f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else ""
    return ", ".join(texts) + more
