"""Commands of kubebuilder and operator-sdk that ctrl does not have, and what to use instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["elsewhere"]

_SDK: Final = "operator-sdk"
_COMMANDS: Final = {
    "run bundle": (_SDK, "Install from a catalog (`ctrl catalog`), or run `operator-sdk run bundle`"),
    "run bundle-upgrade": (_SDK, "Add the version to a catalog (`ctrl catalog`), or run `operator-sdk run bundle-upgrade`"),
    "run packagemanifests": (_SDK, "Create a bundle with `ctrl bundle`: OLM replaced package manifests by bundles"),
    "generate packagemanifests": (_SDK, "Create a bundle with `ctrl bundle`: OLM replaced package manifests by bundles"),
    "generate bundle": (_SDK, "Use `ctrl bundle`"),
    "cleanup": (_SDK, "Delete the Subscription and the ClusterServiceVersion with kubectl, or run `operator-sdk cleanup`"),
    "olm": (_SDK, "Run `operator-sdk olm`, or apply the manifests of an OLM release with kubectl"),
    "pkgman-to-bundle": (_SDK, "Run `operator-sdk pkgman-to-bundle`, or create a bundle with `ctrl bundle`"),
    "alpha": ("kubebuilder", "Upgrade the files of a project with `ctrl upgrade`"),
}  # fmt: skip


def elsewhere(words: Sequence[str]) -> str | None:
    """Return what to use instead if the words of a command line start with one of these commands."""
    for name in (" ".join(words[:2]), *words[:1]):
        if name in _COMMANDS:
            tool, instead = _COMMANDS[name]
            return f"`ctrl {name}` does not exist: {name} is a command of {tool}. {instead}"
    return None
