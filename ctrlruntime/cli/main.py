"""The root of the command line: its commands, and how every failure ends: one line, for some a link to its page, and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click
from typing_extensions import override

from ctrlruntime.cli.elsewhere import elsewhere
from ctrlruntime.cli.lazy import Command, LazyGroup
from ctrlruntime.cli.output import say
from ctrlruntime.cli.version import installed
from ctrlruntime.errors import CtrlError
from ctrlruntime.terminal import escaped

__all__ = ["ctrl"]

_COMMANDS: Final = {
    "bundle": Command("ctrlruntime.cli.bundle", "bundle", "Create the bundle of a project for OLM, or validate one."),
    "catalog": Command("ctrlruntime.cli.catalog", "catalog", "Create or validate a file-based catalog of bundles."),
    "completion": Command("ctrlruntime.cli.completion", "completion", "Print a shell completion script."),
    "crd": Command("ctrlruntime.cli.crd", "crd", "Compare CRDs."),
    "create": Command("ctrlruntime.cli.create", "create", "Add a kind, its controller or its webhooks to the project."),
    "delete": Command("ctrlruntime.cli.delete", "delete", "Delete a kind or its webhooks from the project."),
    "deploy": Command("ctrlruntime.cli.deploy", "deploy", "Deploy the project to a cluster."),
    "doctor": Command("ctrlruntime.cli.doctor", "doctor", "Check the project and its deployment."),
    "edit": Command("ctrlruntime.cli.edit", "edit", "Change the settings of the project."),
    "explain": Command("ctrlruntime.cli.explain", "explain", "Print the fields of a kind, as kubectl explain does."),
    "generate": Command("ctrlruntime.cli.generate", "generate", "Create the base of a bundle."),
    "helm": Command("ctrlruntime.cli.helm", "helm", "Create a Helm chart of the project."),
    "image": Command("ctrlruntime.cli.image", "image", "Build the project's container image."),
    "import": Command("ctrlruntime.cli.import_", "import_definitions", "Generate classes from CRDs."),
    "init": Command("ctrlruntime.cli.init", "init", "Create a project."),
    "install": Command("ctrlruntime.cli.install", "install", "Install the CRDs of your kinds into a cluster."),
    "manifests": Command("ctrlruntime.cli.manifests", "manifests", "Generate CRDs, roles and webhook configurations."),
    "render": Command("ctrlruntime.cli.render", "render", "Print the objects of a kustomization, without kubectl."),
    "run": Command("ctrlruntime.cli.run", "run", "Run the operator on this machine."),
    "scorecard": Command("ctrlruntime.cli.scorecard", "scorecard", "Run the scorecard's tests of a bundle, without a cluster."),
    "storage": Command("ctrlruntime.cli.storage", "storage", "Migrate stored objects."),
    "undeploy": Command("ctrlruntime.cli.deploy", "undeploy", "Delete the deployed project from a cluster."),
    "uninstall": Command("ctrlruntime.cli.install", "uninstall", "Delete the CRDs of your kinds, and all their objects."),
    "upgrade": Command("ctrlruntime.cli.upgrade", "upgrade", "Upgrade the files of a project to this version."),
    "validate": Command("ctrlruntime.cli.validate", "validate", "Validate manifests without a cluster."),
    "version": Command("ctrlruntime.cli.version", "version", "Print the versions of ctrlruntime, Python and Kubernetes."),
    "why": Command("ctrlruntime.cli.why", "why", "Explain why an object was reconciled, or why not."),
}  # fmt: skip

_EXPLAINED_BY_MESSAGE: Final = frozenset({"CtrlError", "ConfigError", "GenerateError"})
"""The entries of the error reference that only say: the message has the cause and a fix."""

_EPILOG: Final = """Exit codes: 0 success, 1 failed, rejected or (with --check) stale, 2 wrong usage."""


class _Program(LazyGroup):
    """Turns errors into one line."""

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not ctx.resilient_parsing and (instead := elsewhere(args)):
            say(f"error: {instead}", err=True)
            ctx.exit(2)
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CtrlError as error:
            if ctx.params["traceback"]:
                raise
            say(f"error: {error}", err=True)
            if error.doc_url.rpartition("#")[2] not in _EXPLAINED_BY_MESSAGE:
                say(f"See {error.doc_url}", err=True)
            ctx.exit(1)
        except click.ClickException as error:
            error.message = escaped(error.message)  # type: ignore[misc]  # it can hold what stands in a file
            raise


@click.group(cls=_Program, lazy=_COMMANDS, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--traceback", is_flag=True, help="Print the Python traceback of an error.")
@click.version_option(installed(), message="%(prog)s %(version)s")
def ctrl(*, traceback: bool) -> None:
    """Create, run and deploy Kubernetes operators in Python.

    Start with `ctrl init --domain YOUR.DOMAIN` in an empty folder.
    """
    del traceback
    # The console script does not look for modules where it is run; `python -m ctrlruntime` does.
    here = os.getcwd()  # noqa: PTH109 - sys.path holds texts
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
