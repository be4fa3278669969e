"""The container build of a project: which commands make its image, by the tool that is there, and running them.

Nothing is compiled for a platform, so builds for several only differ in their base image: one Dockerfile serves them all.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from ctrlruntime.errors import ConfigError

__all__ = ["TOOLS", "Build", "Tool", "base_of", "commands", "find_tool", "run", "with_base"]

Tool: TypeAlias = Literal["docker", "podman", "nerdctl", "buildah"]
Command: TypeAlias = tuple[str, ...]

TOOLS: Final[tuple[Tool, ...]] = get_args(Tool)
"""In the order they are looked for."""

_DOCKERFILE: Final = "Dockerfile"
_BASE: Final = re.compile(r"(?m)^(ARG[ \t]+BASE=)([^@\s]+)(@\S+)?[ \t]*$")
_PLATFORM: Final = re.compile(r"[a-z0-9]+/[a-z0-9]+(/v[0-9]+)?")
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    # [host[:port]/]path[:tag]; a digest cannot be given to what is yet to be built.
    rf"(?:(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::[\w][\w.-]{{0,127}})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What is to be built. Raises: ConfigError for what no tool builds."""

    image: str
    """The name of the image, with a tag."""

    folder: Path
    """The path of the Dockerfile."""

    platforms: tuple[str, ...] = ()
    """`linux/arm64` and the like; none: that of the machine that builds."""

    push: bool = False

    def __post_init__(self) -> None:
        if not _REFERENCE.fullmatch(self.image):
            raise ConfigError(
                f"the image {self.image!r} is not valid. Use [REGISTRY/]NAME[:TAG] in lower case, such as ghcr.io/me/shop:v1"
            )
        for platform in self.platforms:
            if not _PLATFORM.fullmatch(platform):
                raise ConfigError(
                    f"the platform {platform!r} is not valid. Use OS/ARCH, such as linux/amd64 or linux/arm64"
                )
        if len(self.platforms) > 1 and not self.push:
            raise ConfigError("an image for several platforms must be pushed to a registry. Add --push")


def base_of(dockerfile: str) -> str:
    """Return the base image that the text of a Dockerfile names in `ARG BASE=`, without a digest. Raises: ConfigError when it names none."""
    found = _BASE.findall(dockerfile)
    if len(found) != 1:
        raise ConfigError(
            f"cannot pin the base image: the Dockerfile has {len(found) or 'no'} lines ARG BASE=IMAGE. "
            "Write one, and FROM ${BASE} in each stage"
        )
    return str(found[0][1])


def with_base(dockerfile: str, digest: str) -> str:
    """Return the text with this digest behind the base image of `base_of`. The tag stays: it says which one to renew."""
    return _BASE.sub(rf"\g<1>\g<2>@{digest}", dockerfile)


def find_tool(which: Callable[[str], str | None] = shutil.which) -> Tool | None:
    """Return the first tool on PATH, or None."""
    return next((tool for tool in TOOLS if which(tool)), None)


def commands(build: Build, tool: Tool) -> list[Command]:
    """Return the commands that build the image, and push it if that is wanted, to be run one after the other."""
    folder = os.path.relpath(build.folder)
    platforms = ("--platform", ",".join(build.platforms)) if build.platforms else ()
    is_list = len(build.platforms) > 1
    match tool:
        case "docker" if build.platforms:
            # buildx keeps what it builds for itself unless it is told where to.
            where = "--push" if build.push else "--load"
            return [("docker", "buildx", "build", *platforms, "--tag", build.image, where, folder)]
        case "podman" | "buildah" if is_list:
            made = (tool, "build", *platforms, "--manifest", build.image, folder)
            return [made, (tool, "manifest", "push", "--all", build.image, f"docker://{build.image}")]
        case _:
            made = (tool, "build", *platforms, "--tag", build.image, folder)
            every = ("--all-platforms",) if is_list else ()
            return [made, (tool, "push", *every, build.image)] if build.push else [made]


def run(build: Build, tool: Tool) -> None:
    """Build the image; what the tool prints goes where ours goes. Raises: ConfigError when it cannot be run or fails."""
    if not (build.folder / _DOCKERFILE).is_file():
        raise ConfigError(f"{build.folder / _DOCKERFILE} does not exist. Restore it from version control")
    if tool == "docker" and build.platforms and not _has_buildx():
        raise ConfigError(
            "docker requires its plugin buildx to build for a platform. Install it, or use another tool with --tool"
        )
    for command in commands(build, tool):
        code = _call(command)
        if code:
            raise ConfigError(f"`{' '.join(command)}` failed with exit code {code}")


def _call(command: Command) -> int:
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - a list, and the tool is one of TOOLS
    except OSError as error:
        raise ConfigError(f"cannot run {command[0]}: {error.strerror or error}") from error


def _has_buildx(probe: Sequence[str] = ("docker", "buildx", "version")) -> bool:
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0  # noqa: S603 - as above
    except OSError:
        return False
