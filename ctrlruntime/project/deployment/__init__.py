"""A project's rendered tree in a cluster: deployed, waited for, pruned and removed."""

from ctrlruntime.project.deployment.applying import DeployError, Options, deploy
from ctrlruntime.project.deployment.objects import Document, Named, Step, manager_deployment, with_image
from ctrlruntime.project.deployment.removing import NotDeployedError, Plan, Removal, undeploy

__all__ = [
    "DeployError",
    "Document",
    "Named",
    "NotDeployedError",
    "Options",
    "Plan",
    "Removal",
    "Step",
    "deploy",
    "manager_deployment",
    "undeploy",
    "with_image",
]
