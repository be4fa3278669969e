"""`ctrl install` and `ctrl uninstall`: the definitions of a package's kinds, in a cluster."""

from __future__ import annotations

import click

from ctrlruntime.cli.connection import cluster_options, project_here, with_client
from ctrlruntime.cli.output import say
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.install import install_crds, uninstall_crds
from ctrlruntime.project.manifests import Choice, manifests
from ctrlruntime.project.package import load

__all__ = ["install", "uninstall"]

_INSTALL = """Create or update the CRDs of your kinds, and wait until they are served.

    \b
    Examples:
      ctrl install
      ctrl install --module shop.api --context test
    """

_UNINSTALL = """Delete the CRDs of your kinds, and every object of these kinds.

    \b
    Examples:
      ctrl uninstall
      ctrl uninstall --yes --module shop.api
    """

_module = click.option(
    "--module", metavar="MODULE", help="Dotted name of the operator's package.  [default: the project's]"
)


@click.command(help=_INSTALL)
@_module
@cluster_options
@click.option(
    "--timeout",
    "wait",
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for the CRDs to be served.",
)
def install(*, module: str | None, kubeconfig: str | None, context: str | None, wait: float) -> None:
    definitions = _definitions(module)
    for name in with_client(kubeconfig, context, lambda client: install_crds(client, *definitions, wait=wait)):
        say(f"installed {name}")


@click.command(help=_UNINSTALL)
@_module
@cluster_options
@click.confirmation_option("--yes", prompt="Every object of these kinds is deleted too. Continue?")
def uninstall(*, module: str | None, kubeconfig: str | None, context: str | None) -> None:
    definitions = _definitions(module)
    with_client(kubeconfig, context, lambda client: uninstall_crds(client, *definitions))
    for definition in definitions:
        say(f"uninstalled {definition['metadata']['name']}")


def _definitions(module: str | None) -> list[Document]:
    name = module if module is not None else project_here()[1].package
    definitions = manifests(load(name), choice=Choice(rbac=False, webhook=False)).definitions
    if not definitions:
        raise GenerateError(f"module {name} defines no kinds")
    return definitions
