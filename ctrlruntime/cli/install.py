"""`ctrl install` and `ctrl uninstall`: the definitions of a package's kinds, in a cluster."""

from __future__ import annotations

import click

from ctrlruntime.cli.connection import cluster_options, with_client
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.install import install_crds, uninstall_crds
from ctrlruntime.project.manifests import Choice, manifests
from ctrlruntime.project.package import load

__all__ = ["install", "uninstall"]

_module = click.option("--module", required=True, metavar="MODULE", help="Dotted name of the operator's package.")


@click.command()
@_module
@cluster_options
@click.option(
    "--wait", default=10.0, show_default=True, metavar="SECONDS", help="How long the cluster may take to serve them."
)
def install(*, module: str, kubeconfig: str | None, context: str | None, wait: float) -> None:
    """Create or update the definitions of the kinds in MODULE and wait until they are served."""
    definitions = _definitions(module)
    for name in with_client(kubeconfig, context, lambda client: install_crds(client, *definitions, wait=wait)):
        click.echo(f"installed {name}")


@click.command()
@_module
@cluster_options
@click.confirmation_option("--yes", prompt="Every object of these kinds is deleted, too. Go on?")
def uninstall(*, module: str, kubeconfig: str | None, context: str | None) -> None:
    """Delete the definitions of the kinds in MODULE, and with them every object of these kinds."""
    definitions = _definitions(module)
    with_client(kubeconfig, context, lambda client: uninstall_crds(client, *definitions))
    for definition in definitions:
        click.echo(f"uninstalled {definition['metadata']['name']}")


def _definitions(module: str) -> list[Document]:
    definitions = manifests(load(module), choice=Choice(rbac=False, webhook=False)).definitions
    if not definitions:
        raise GenerateError(f"{module} declares no kinds")
    return definitions
