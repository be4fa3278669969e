"""Website: the operator keeps a Deployment and a Service for each Website, and reports whether the site is ready.

The pattern of most operators: create dependents from the spec, and report what they are doing.

- `create_or_update` reads the dependent, calls the function, and writes only if the function changed something. The function sets the fields
  that the operator owns, and keeps those that Kubernetes sets.
- `set_controller_reference` makes the Website the owner. `owns` reconciles the Website when a dependent changes, and Kubernetes deletes the
  dependents with the Website.
- The status is written last, and only if it differs. Its condition has the generation of the spec that it describes.

Shows: `create_or_update`, `owns`, `set_controller_reference`, conditions with `observedGeneration`, printer columns.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import apps, core, meta
from examples.cookbook import running


class WebsiteSpec(ctrl.Model):
    image: str = Field(min_length=1)
    replicas: Annotated[ctrl.Int32, Field(ge=0)] = 1


class WebsiteStatus(ctrl.Model):
    ready_replicas: ctrl.Int32 = 0
    conditions: Annotated[list[meta.Condition], crd.ListMap("type")] = Field(default_factory=list[meta.Condition])


@crd.printcolumn("Ready", '.status.conditions[?(@.type=="Ready")].status')
@crd.printcolumn("Replicas", ".status.readyReplicas", type="integer")
class Website(ctrl.Object, group="cookbook.example.com", version="v1"):
    """A website, served by replicas of one image."""

    spec: WebsiteSpec
    status: WebsiteStatus = Field(default_factory=WebsiteStatus)


@ctrl.rbac(groups="cookbook.example.com", resources="websites", verbs="get;list;watch")
@ctrl.rbac(groups="cookbook.example.com", resources="websites/status", verbs="update")
@ctrl.rbac(groups="apps", resources="deployments", verbs="create;update")
@ctrl.rbac(groups="", resources="services", verbs="create;update")
class WebsiteReconciler:
    def __init__(self, client: ctrl.Client) -> None:
        self.client = client

    async def reconcile(self, request: ctrl.Request) -> None:
        website = await self.client.get_or_none(Website, request)
        if website is None or website.metadata.deletion_timestamp is not None:
            return  # Kubernetes deletes the dependents
        labels = {"website": request.name}

        def mutate_deployment(deployment: apps.Deployment) -> None:
            deployment.spec.replicas = website.spec.replicas
            deployment.spec.selector = meta.LabelSelector(match_labels=labels)
            template = deployment.spec.template
            template.metadata.labels = labels
            if not template.spec.containers:
                template.spec.containers = [core.Container(name="web")]
            template.spec.containers[0].image = website.spec.image
            ctrl.set_controller_reference(website, deployment)

        def mutate_service(service: core.Service) -> None:
            service.spec.selector = labels
            if not service.spec.ports:
                service.spec.ports = [core.ServicePort(port=80)]
            ctrl.set_controller_reference(website, service)

        deployment, _ = await ctrl.create_or_update(self.client, apps.Deployment, request, mutate_deployment)
        await ctrl.create_or_update(self.client, core.Service, request, mutate_service)
        await self.report(website, deployment)

    async def report(self, website: Website, deployment: apps.Deployment) -> None:
        before = website.status.model_copy(deep=True)
        ready, wanted = deployment.status.ready_replicas, website.spec.replicas
        website.status.ready_replicas = ready
        ctrl.set_condition(
            website.status.conditions,
            "Ready",
            ready >= wanted,
            reason="Available" if ready >= wanted else "Starting",
            message=f"{ready} of {wanted} replicas are ready",
            observed_generation=website.metadata.generation,
        )
        if website.status != before:
            await self.client.status.update(website)


def setup(mgr: ctrl.Manager) -> None:
    """Add the controller to a manager. `ctrl manifests` calls this too."""
    builder = ctrl.new_controller_managed_by(mgr).for_(Website).owns(apps.Deployment).owns(core.Service)
    builder.complete(WebsiteReconciler(mgr.client))


SAMPLE = """
apiVersion: cookbook.example.com/v1
kind: Website
metadata: {name: shop, namespace: default}
spec: {image: "nginx:1.29", replicas: 2}
"""


def main() -> None:
    running.run(setup, Website, sample=SAMPLE, shows="websites,deployments,services,pods")


if __name__ == "__main__":
    main()
