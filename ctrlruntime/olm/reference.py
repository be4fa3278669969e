"""The parts of an image reference: registry, repository, tag and digest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ctrlruntime.errors import ConfigError

__all__ = ["DIGEST", "DOCKER_HUB", "Reference"]

DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
"""The pattern of an image digest."""

DOCKER_HUB: Final = "docker.io"
"""The default registry of an image."""

_LEGACY_HUB: Final = "index.docker.io"
_OFFICIAL: Final = "library"
_LATEST: Final = "latest"
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REST: Final = re.compile(
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]{32,}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An image. Two references to the same image are equal."""

    registry: str
    """Host, with the port if one is named; default: `docker.io`."""

    path: str
    """The repository in the registry; an official image of Docker Hub has `library/` in front."""

    tag: str
    """`latest` when neither a tag nor a digest is named; empty when there is only a digest."""

    digest: str
    """Empty without a digest."""

    text: str = field(compare=False)
    """The reference as written."""

    name: str = field(compare=False)
    """The reference as written, without tag and digest."""

    @staticmethod
    def of(image: str) -> Reference:
        """Return the parts of a reference. Raises: ConfigError for an invalid one."""
        host, rest = _divided(image)
        found = _REST.fullmatch(rest)
        if found is None or (host and not _HOST.fullmatch(host)):
            raise ConfigError(
                f"{image!r} is not a reference to an image. Write [REGISTRY/]NAME[:TAG] in lower case, such as ghcr.io/me/shop:v1"
            )
        path, tag, digest = found["path"], found["tag"] or "", found["digest"] or ""
        name = f"{host}/{path}" if host else path
        registry = DOCKER_HUB if host in {"", _LEGACY_HUB} else host
        if registry == DOCKER_HUB and "/" not in path:
            path = f"{_OFFICIAL}/{path}"
        return Reference(
            registry=registry, path=path, tag=tag or ("" if digest else _LATEST), digest=digest, text=image, name=name
        )

    def pinned_to(self, digest: str) -> str:
        """Return the reference with the digest instead of the tag, and the name as written."""
        return f"{self.name}@{digest}"


def _divided(image: str) -> tuple[str, str]:
    """Host and the rest. What stands before the first slash is a host only if it looks like one: `me/shop` is of Docker Hub."""
    first, slash, rest = image.partition("/")
    is_host = bool(slash) and (first == "localhost" or any(sign in first for sign in ".:") or first != first.lower())
    return (first, rest) if is_host else ("", image)
