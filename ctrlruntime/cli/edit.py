"""`ctrl edit`: other settings for a project, and the tree that follows from them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ctrlruntime.cli.go_flags import GoFlagsCommand
from ctrlruntime.cli.output import say, warn

__all__ = ["edit"]

_HELP = """Change settings of the project: [tool.ctrlruntime] of pyproject.toml, and config/, which is generated from it.

    Other settings, the rest of pyproject.toml and your own files do not change.

    \b
    Examples:
      ctrl edit --image registry.example.com/shop:v1.2.0
      ctrl edit --prometheus --no-network-policy
      ctrl edit --no-cert-manager
      ctrl edit --sharding --replicas 5
    """
_FEATURES: Final = ("cert_manager", "metrics", "network_policy", "prometheus")


@click.command(cls=GoFlagsCommand, help=_HELP)
@click.option("--image", metavar="IMAGE", help="Image of the Deployment.")
@click.option(
    "--namespaced/--no-namespaced", default=None,
    help="Restrict the operator to its own namespace (Roles), or let it watch the whole cluster (ClusterRoles).",
)  # fmt: skip
@click.option(
    "--multigroup/--no-multigroup", default=None,
    help="Create classes in api/GROUP/VERSION, or in api/VERSION; only possible while the project has no classes.",
)  # fmt: skip
@click.option(
    "--sharding/--no-sharding", default=None,
    help="Run several replicas, which share the objects of controllers with sharded=True, with a PodDisruptionBudget.",
)  # fmt: skip
@click.option("--replicas", type=int, metavar="NUMBER", help="Number of replicas with --sharding (default: 3).")
@click.option(
    "--cert-manager/--no-cert-manager", default=None,
    help="Issue the webhook certificate with cert-manager. Without it, the operator creates the certificate and stores it in a Secret.",
)  # fmt: skip
@click.option(
    "--metrics/--no-metrics", default=None, help="Serve metrics over HTTPS to callers that RBAC allows, with a Service."
)
@click.option("--prometheus/--no-prometheus", default=None, help="Add a ServiceMonitor for the Prometheus operator.")
@click.option(
    "--network-policy/--no-network-policy", default=None,
    help="Allow only metrics readers (from namespaces labelled metrics: enabled) and webhook callers.",
)  # fmt: skip
def edit(
    *,
    image: str | None,
    namespaced: bool | None,
    multigroup: bool | None,
    sharding: bool | None,
    replicas: int | None,
    **features: bool | None,
) -> None:
    from ctrlruntime.project.editing import edit as edited
    from ctrlruntime.project.settings import REPLICAS, find_project, read_settings

    if sharding is False and replicas is None:
        replicas = REPLICAS  # back to the default, since without sharding there is nothing that it could set
    of_project = _given(image=image, namespaced=namespaced, multigroup=multigroup, sharding=sharding, replicas=replicas)
    switches = _given(**{name: features[name] for name in _FEATURES})
    if not of_project and not switches:
        raise click.UsageError("no setting to change. Pass one, such as --image registry.example.com/shop:v1")
    # Relative to here, as a person would name the files.
    folder = Path(os.path.relpath(find_project(Path.cwd())))
    settings = read_settings(folder)
    wanted = replace(settings, features=replace(settings.features, **switches), **of_project)
    change = edited(folder, wanted, warn=warn)
    change.apply()
    lines = list(change.lines())
    for line in lines or ["nothing to change: the settings already have these values"]:
        say(line)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
