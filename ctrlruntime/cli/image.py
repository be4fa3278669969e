"""`ctrl image`: the container image of a project. `build` prints or runs its build, `pin` pins its base."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from ctrlruntime.cli.output import say
from ctrlruntime.errors import ConfigError
from ctrlruntime.generate.documents import read_text
from ctrlruntime.project.image import TOOLS, Build, Tool, base_of, commands, find_tool, run, with_base
from ctrlruntime.project.settings import find_project, read_settings

__all__ = ["image"]

_BUILD_HELP = """Build the image of the project from its Dockerfile.

    The name is --image, or the image of the settings. The tool is the first of docker, podman, nerdctl and buildah on PATH. If none is
    installed, the command is printed.

    \b
    Examples:
      ctrl image build
      ctrl image build --image ghcr.io/me/shop:v1 --push
      ctrl image build --image ghcr.io/me/shop:v1 --platform linux/amd64,linux/arm64 --push
    """


_PIN_HELP = """Pin the base image of the Dockerfile to its current digest.

    The line `ARG BASE=NAME:TAG` becomes `ARG BASE=NAME:TAG@sha256:...`. Run it again to update the digest of the tag. The
    registry is queried without a login first, then with that of `docker login`.

    \b
    Examples:
      ctrl image pin
      ctrl image pin --digest sha256:...
    """


@click.group()
def image() -> None:
    """Build the project's container image."""


@image.command(help=_BUILD_HELP)
@click.option("--image", "name", metavar="IMAGE", help="Name of the image.  [default: the image of the settings]")
@click.option(
    "--platform", "platforms", multiple=True, metavar="OS/ARCH", help="Platforms of the image, separated by commas. Can be repeated."
)  # fmt: skip
@click.option("--tool", type=click.Choice(TOOLS), help="Build tool.  [default: the first one on PATH]")
@click.option("--push", is_flag=True, help="Push the image to its registry.")
@click.option("--print", "only_print", is_flag=True, help="Print the commands without running them.")
def build(*, name: str | None, platforms: tuple[str, ...], tool: Tool | None, push: bool, only_print: bool) -> None:
    project = find_project(Path.cwd())
    wanted = Build(image=name or read_settings(project).image, folder=project, platforms=_listed(platforms), push=push)
    chosen = tool or find_tool()
    if only_print:
        _print(wanted, chosen or TOOLS[0])
    elif chosen is None or shutil.which(chosen) is None:
        _print(wanted, chosen or TOOLS[0])
        missing = f"{tool} is not on PATH" if tool else f"none of {', '.join(TOOLS)} is on PATH"
        raise ConfigError(
            f"cannot build the image: {missing}. Install it, or run the printed commands on another machine"
        )
    else:
        run(wanted, chosen)
        say(f"{'pushed' if push else 'built'} {wanted.image}")


@image.command(help=_PIN_HELP)
@click.option("--digest", metavar="sha256:HEX", help="Digest to pin, instead of that in the registry.")
def pin(*, digest: str | None) -> None:
    from ctrlruntime.olm.making.registry import Registries
    from ctrlruntime.olm.reference import DIGEST
    from ctrlruntime.project.staging import write

    if digest is not None and not DIGEST.fullmatch(digest):
        raise click.UsageError(f"--digest must be sha256: and 64 hexadecimal digits, not {digest!r}")
    path = Path(os.path.relpath(find_project(Path.cwd()))) / "Dockerfile"
    text = read_text(path)
    base = base_of(text)
    if digest is None:
        digest = Registries(os.environ).digests_of([base])[base].rpartition("@")[2]
    pinned = with_base(text, digest)
    if pinned == text:
        say(f"{path}: up to date")
        return
    write({path: pinned})
    say(f"changed {path}: BASE is {base}@{digest}")


def _print(wanted: Build, tool: Tool) -> None:
    for command in commands(wanted, tool):
        say(shlex.join(command))


def _listed(given: Sequence[str]) -> tuple[str, ...]:
    parts = (part.strip() for each in given for part in each.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))
