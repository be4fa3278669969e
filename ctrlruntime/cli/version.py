"""`ctrl version`: what is installed."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import click

from ctrlruntime.cli.output import say
from ctrlruntime.data import KUBERNETES_VERSION

__all__ = ["installed", "version"]

_HELP = """Print the versions of ctrlruntime, Python and Kubernetes.

    The Kubernetes version is that of the built-in kinds and of the embedded API server. For the version of your cluster, run `kubectl version`.
    """


def installed() -> str:
    """Return the installed version of ctrlruntime."""
    try:
        return version_of("ctrlruntime")
    except PackageNotFoundError:
        return "unknown"


@click.command(help=_HELP)
@click.option(
    "-o", "--output", type=click.Choice(("text", "json", "yaml")), default="text", show_default=True,
    help="Format: text lines, a JSON object, or a YAML document.",
)  # fmt: skip
def version(*, output: str) -> None:
    from ctrlruntime.generate.text import dump

    found = {
        "ctrlruntime": installed(),
        "python": platform.python_version(),
        "kubernetes": KUBERNETES_VERSION.removeprefix("v"),
    }
    match output:
        case "json":
            say(json.dumps(found, indent=2))
        case "yaml":
            say(dump(found), nl=False)
        case _:
            for name, number in found.items():
                say(f"{name} {number}")
