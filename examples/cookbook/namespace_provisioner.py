"""Namespace provisioner: the operator gives each Team a Namespace, a quota, and a RoleBinding for its members.

A Team is cluster-scoped, so it can own a Namespace and objects in that Namespace. Kubernetes deletes them with the Team.

- A Namespace that exists already is not adopted. Otherwise a Team with the name `kube-system` would own that Namespace.
- A Team and its Namespace have the same name. So the event of a Namespace enqueues its Team, even if the Team does not own it.
- A role can be granted only by a user who has its permissions, or the verb `bind`. The operator has `bind` for the ClusterRole `edit` alone.
- The API server rejects new objects in a Namespace that is being deleted. The operator waits until it is gone, and then creates it again.

Shows: a cluster-scoped kind, `owns` for dependents in a namespace, `TerminalError` with a condition, `resource_names` in `ctrl.rbac`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import core, meta, rbac
from examples.cookbook import running

RBAC = "rbac.authorization.k8s.io"


class TeamSpec(ctrl.Model):
    members: Annotated[list[str], crd.ListSet] = Field(default_factory=list[str])
    quota: dict[str, ctrl.Quantity] = Field(default_factory=dict[str, ctrl.Quantity])


class TeamStatus(ctrl.Model):
    phase: str = ""
    conditions: Annotated[list[meta.Condition], crd.ListMap("type")] = Field(default_factory=list[meta.Condition])


@crd.printcolumn("Ready", '.status.conditions[?(@.type=="Ready")].status')
@crd.printcolumn("Phase", ".status.phase")
class Team(ctrl.Object, group="cookbook.example.com", version="v1", scope="Cluster"):
    """People who share a Namespace."""

    spec: TeamSpec = Field(default_factory=TeamSpec)
    status: TeamStatus = Field(default_factory=TeamStatus)


@ctrl.rbac(groups="cookbook.example.com", resources="teams", verbs="get")
@ctrl.rbac(groups="cookbook.example.com", resources="teams/status", verbs="update")
@ctrl.rbac(groups="", resources="namespaces", verbs="create")
@ctrl.rbac(groups="", resources="resourcequotas", verbs="create;update")
@ctrl.rbac(groups=RBAC, resources="rolebindings", verbs="create;update")
@ctrl.rbac(groups=RBAC, resources="clusterroles", resource_names="edit", verbs="bind")
class TeamReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        team = await self.client.get_or_none(Team, request)
        if team is None or team.metadata.deletion_timestamp is not None:
            return
        phase = ""
        try:
            namespace = await self.client.get_or_none(core.Namespace, request)
            if namespace is None:
                namespace = core.Namespace(metadata=meta.ObjectMeta(name=request.name))
                ctrl.set_controller_reference(team, namespace)
                await self.client.create(namespace)
            if not ctrl.controllerutil.has_owner(team, namespace):
                await self.report(team, phase, "NameTaken", f"the Namespace {request.name} existed before")
                return
            phase = namespace.status.phase
            if namespace.metadata.deletion_timestamp is None:
                await self.keep_content(team, ctrl.NamespacedName(request.name, "team"))
        except ctrl.Invalid as error:
            await self.report(team, phase, "Invalid", str(error))
            raise ctrl.TerminalError(str(error)) from error
        await self.report(team, phase, phase, f"the Namespace is {phase}")

    async def keep_content(self, team: Team, key: ctrl.NamespacedName) -> None:
        def mutate_quota(quota: core.ResourceQuota) -> None:
            quota.spec.hard = team.spec.quota
            ctrl.set_controller_reference(team, quota)

        def mutate_binding(binding: rbac.RoleBinding) -> None:
            binding.role_ref = rbac.RoleRef(api_group=RBAC, kind="ClusterRole", name="edit")
            binding.subjects = [rbac.Subject(kind="User", api_group=RBAC, name=name) for name in team.spec.members]
            ctrl.set_controller_reference(team, binding)

        await ctrl.create_or_update(self.client, core.ResourceQuota, key, mutate_quota)
        await ctrl.create_or_update(self.client, rbac.RoleBinding, key, mutate_binding)

    async def report(self, team: Team, phase: str, reason: str, message: str) -> None:
        before, generation = team.status.deep_copy(), team.metadata.generation
        team.status.phase = phase
        ready = reason == "Active"
        ctrl.set_condition(
            team.status.conditions, "Ready", ready, reason=reason, message=message, observed_generation=generation
        )
        if team.status != before:
            await self.client.status.update(team)


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(Team).owns(core.ResourceQuota).owns(rbac.RoleBinding)
    builder.watches(core.Namespace, ctrl.handler.EnqueueRequestForObject())
    builder.complete(TeamReconciler(mgr.client))


SAMPLE = """
{apiVersion: cookbook.example.com/v1, kind: Team, metadata: {name: penguins},
spec: {members: [ada, grace], quota: {pods: "20", requests.cpu: "8"}}}
"""


def main() -> None:
    running.run(setup, Team, sample=SAMPLE, shows="teams")


if __name__ == "__main__":
    main()
