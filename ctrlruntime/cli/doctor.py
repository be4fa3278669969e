"""`ctrl doctor`: check the project and its deployment."""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from ctrlruntime.cli.connection import cluster_options, project_here, with_cluster
from ctrlruntime.cli.output import Coloured, say
from ctrlruntime.cluster import Cluster
from ctrlruntime.errors import ConfigError
from ctrlruntime.project.doctor import Check, Subject, cluster_checks, local_checks, rendered

__all__ = ["doctor"]

_HELP = """Check the project and its deployment in the cluster. Each check is a line: ok, warn or fail, and what to do.

    Local checks: Python, the project, stale manifests, and the memory of an idle operator. Checks in the cluster: its response, your
    permissions and those of the operator, differences between CRDs and classes, the state and memory of the operator, and its webhooks.
    The command changes nothing. The exit code is 1 if a check fails.

    \b
    Examples:
      ctrl doctor
      ctrl doctor --context production --json
    """
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command(help=_HELP)
@cluster_options
@click.option("--local", is_flag=True, help="Skip the checks in the cluster.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def doctor(*, kubeconfig: str | None, context: str | None, local: bool, as_json: bool) -> None:
    folder, settings = project_here()
    found: list[Check] = []

    def tell(check: Check) -> None:
        found.append(check)
        if not as_json:
            say(Coloured(f"{check.status:<5}", _COLOURS[check.status]), str(check)[5:])

    subject, tree = rendered(folder, settings)
    tell(tree)
    for check in local_checks(subject):
        tell(check)
    if not local:
        _look_at_cluster(kubeconfig, context, subject, tell)
    if as_json:
        say(json.dumps([check.to_json() for check in found], indent=2))
    click.get_current_context().exit(1 if any(check.status == "fail" for check in found) else 0)


def _look_at_cluster(
    kubeconfig: str | None, context: str | None, subject: Subject, tell: Callable[[Check], None]
) -> None:
    async def work(cluster: Cluster) -> None:
        async for check in cluster_checks(cluster, subject):
            tell(check)

    try:
        with_cluster(kubeconfig, context, work)
    except ConfigError as error:
        tell(Check("cluster", "fail", str(error), "Fix the kubeconfig, or skip the cluster with --local"))
