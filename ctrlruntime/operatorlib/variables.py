"""Variables for operands: the proxy of the cluster, and images from RELATED_IMAGE variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ctrlruntime.errors import ConfigError

if TYPE_CHECKING:
    from ctrlruntime.api.core.v1 import EnvVar

__all__ = ["proxy_variables", "related_image"]

_PROXY: Final = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def proxy_variables(environ: Mapping[str, str] = os.environ) -> list[EnvVar]:
    """Return the proxy of this process as variables of a container.

    Each is set in upper and in lower case.

    OLM sets them on an operator's Deployment in clusters with a proxy; programs differ in the case that they read.
    """
    from ctrlruntime.api.core.v1 import EnvVar

    found: list[EnvVar] = []
    for name in _PROXY:
        value = environ.get(name) or environ.get(name.lower()) or ""
        if value:
            found += [EnvVar(name=name, value=value), EnvVar(name=name.lower(), value=value)]
    return found


def related_image(name: str, default: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """Return the image in RELATED_IMAGE_NAME, or `default`.

    In a disconnected cluster it is a mirrored image with a digest.

    `name` is the name of the operand (`memcached`, `kube-rbac-proxy`). Raises: ConfigError without both.
    """
    variable = "RELATED_IMAGE_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    image = environ.get(variable) or default
    if not image:
        raise ConfigError(f"{variable} is not set, and no default image is set for {name}")
    return image
