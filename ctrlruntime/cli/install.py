"""`ctrl install` and `ctrl uninstall`: the CRDs of a package's kinds, in a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ctrlruntime.cli.connection import cluster_options, project_here, with_client
from ctrlruntime.cli.output import say, say_objects, warn
from ctrlruntime.errors import GenerateError
from ctrlruntime.generate.options import Document
from ctrlruntime.install import install_crds, uninstall_crds
from ctrlruntime.project.manifests import Choice, crds_for_tests, manifests
from ctrlruntime.project.package import load

if TYPE_CHECKING:
    from ctrlruntime.client.interfaces import Client
    from ctrlruntime.project.deployment.applyset import Member
    from ctrlruntime.project.settings import Settings

__all__ = ["install", "uninstall"]

F = TypeVar("F", bound=Callable[..., Any])

_INSTALL = """Create or update the CRDs of your kinds, and wait until they are served.

    CRDs of external kinds (external=True) are left out. A CRD that another tool applied, or that is part of another deployment, is an error.

    \b
    Examples:
      ctrl install
      ctrl install --module shop.api --context test
    """

_UNINSTALL = """Delete the CRDs of your kinds, and every object of these kinds.

    You are asked for confirmation if objects would be deleted. A CRD that another tool applied, or that is part of a deployment, is an error.

    \b
    Examples:
      ctrl uninstall
      ctrl uninstall --yes --module shop.api
    """

_module = click.option(
    "--module", metavar="MODULE", help="Dotted name of the operator's package.  [default: the project's]"
)


def _force_conflicts(text: str) -> Callable[[F], F]:
    return click.option("--force-conflicts", "take_over", multiple=True, metavar="CRD", help=f"{text} Can be repeated.")


@click.command(help=_INSTALL)
@_module
@click.option(
    "--include-external", is_flag=True, help="Install the CRDs of external kinds too, such as on a cluster for tests."
)
@_force_conflicts("Take over this CRD of another tool or deployment.")
@cluster_options
@click.option(
    "--timeout",
    "wait",
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for the CRDs to be served.",
)
def install(
    *,
    module: str | None,
    include_external: bool,
    take_over: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    wait: float,
) -> None:
    definitions, settings = _definitions(module, include_external=include_external)

    async def work(client: Client) -> list[str]:
        from ctrlruntime.project.deployment.applyset import ApplySet
        from ctrlruntime.project.deployment.ownership import check_install

        ours = "" if settings is None else ApplySet(client, settings.project_name, settings.namespace).id
        await check_install(client, definitions, deployment=ours, take_over=take_over)
        return await install_crds(client, *definitions, wait=wait)

    for name in with_client(kubeconfig, context, work) if definitions else ():
        say(f"installed {name}")


@click.command(help=_UNINSTALL)
@_module
@_force_conflicts("Delete this CRD even if another tool or deployment owns it.")
@cluster_options
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def uninstall(
    *, module: str | None, take_over: tuple[str, ...], kubeconfig: str | None, context: str | None, yes: bool
) -> None:
    definitions, _ = _definitions(module)

    async def work(client: Client) -> None:
        from ctrlruntime.project.deployment.ownership import check_uninstall

        objects = await check_uninstall(client, definitions, take_over=take_over)
        if objects and not yes:
            _ask(objects)
        await uninstall_crds(client, *definitions)

    with_client(kubeconfig, context, work)
    for definition in definitions:
        say(f"uninstalled {definition['metadata']['name']}")


def _ask(objects: Mapping[str, Sequence[Member]]) -> None:
    """Ask before the objects of CRDs are deleted. Raises: click.Abort."""
    for name, members in objects.items():
        say_objects(name, members)
    sys.stdout.flush()
    click.confirm("Continue?", abort=True, err=True)


def _definitions(module: str | None, *, include_external: bool = False) -> tuple[list[Document], Settings | None]:
    settings = None if module is not None else project_here()[1]
    name = module if settings is None else settings.package
    package = load(str(name))
    if include_external:
        return crds_for_tests(package), settings
    definitions = manifests(package, choice=Choice(rbac=False, webhook=False), warn=warn).definitions
    if not package.kinds:
        raise GenerateError(f"module {name} defines no kinds")
    if not definitions:
        raise GenerateError(f"module {name} defines only external kinds, whose CRDs belong to other projects")
    return definitions, settings
