"""The root of the command line: its commands, and how every failure ends: one line and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import click
from typing_extensions import override

from ctrlruntime.errors import CtrlError

__all__ = ["ctrl"]

_COMMANDS: Final = {
    "bundle": ("ctrlruntime.cli.bundle", "bundle", "Make the bundle of a project for OLM, or check one."),
    "catalog": ("ctrlruntime.cli.catalog", "catalog", "Write and check a file-based catalog of bundles."),
    "check": ("ctrlruntime.cli.check", "check", "Check manifests without a cluster."),
    "completion": ("ctrlruntime.cli.completion", "completion", "Teach a shell to complete commands."),
    "crd": ("ctrlruntime.cli.crd", "crd", "Look at what changes in definitions."),
    "create": ("ctrlruntime.cli.create", "create", "Add a kind, its controller or its webhooks to the project."),
    "deploy": ("ctrlruntime.cli.deploy", "deploy", "Put the project into a cluster."),
    "doctor": ("ctrlruntime.cli.doctor", "doctor", "Look for what is wrong here and in the cluster."),
    "edit": ("ctrlruntime.cli.edit", "edit", "Change the project's settings and what follows from them."),
    "explain": ("ctrlruntime.cli.explain", "explain", "Print the fields of a kind, as kubectl explain does."),
    "generate": ("ctrlruntime.cli.generate", "generate", "Write the base that `ctrl bundle` starts from."),
    "helm": ("ctrlruntime.cli.helm", "helm", "Write a Helm chart of the project."),
    "image": ("ctrlruntime.cli.image", "image", "Build the project's container image."),
    "import": ("ctrlruntime.cli.import_", "import_definitions", "Write classes for the definitions in a file."),
    "init": ("ctrlruntime.cli.init", "init", "Begin a project."),
    "install": ("ctrlruntime.cli.install", "install", "Install the definitions of your kinds into a cluster."),
    "manifests": ("ctrlruntime.cli.manifests", "manifests", "Write CRDs, roles and webhook configurations."),
    "render": ("ctrlruntime.cli.render", "render", "Print the objects of a kustomization, without kubectl."),
    "run": ("ctrlruntime.cli.run", "run", "Run the operator here, against a cluster or an embedded API server."),
    "scorecard": ("ctrlruntime.cli.scorecard", "scorecard", "Run the scorecard's tests of a bundle, without a cluster."),
    "storage": ("ctrlruntime.cli.storage", "storage", "Look after stored objects."),
    "undeploy": ("ctrlruntime.cli.deploy", "undeploy", "Take the project out of a cluster."),
    "uninstall": ("ctrlruntime.cli.install", "uninstall", "Remove the definitions of your kinds, and every object of them."),
    "upgrade": ("ctrlruntime.cli.upgrade", "upgrade", "Bring the files of a project to this version."),
    "why": ("ctrlruntime.cli.why", "why", "Say why an object was reconciled, or why not."),
}  # fmt: skip
"""Module, attribute and summary of each command. `ctrl --help` loads none of them."""

_EPILOG: Final = """Exit codes: 0 done, 1 refused, failed or (with --check) stale, 2 wrong usage."""


class _Program(click.Group):
    """Loads a command when it is used, and turns errors into one line."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][2]) for name in self.list_commands(ctx)])

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CtrlError as error:
            if ctx.params["traceback"]:
                raise
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)


def _version() -> str:
    try:
        return version("ctrlruntime")
    except PackageNotFoundError:
        return "unknown"


@click.group(cls=_Program, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--traceback", is_flag=True, help="Show where an error came from.")
@click.version_option(_version(), message="%(prog)s %(version)s")
def ctrl(*, traceback: bool) -> None:
    """Generate, install and look after what a Kubernetes operator in Python needs.

    Start with: ctrl init --domain YOUR.DOMAIN, in an empty folder
    """
    del traceback
    # The console script does not look for modules where it is run; `python -m ctrlruntime` does.
    here = os.getcwd()  # noqa: PTH109 - sys.path holds texts
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
