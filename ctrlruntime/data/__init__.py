"""The recorded facts of Kubernetes 1.36 that the package reads at run time.

It uses no other module, and returns the bytes of one file by its name.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

__all__ = ["KUBERNETES_VERSION", "open_data"]

KUBERNETES_VERSION: Final = "v1.36.1"
"""The release of Kubernetes whose facts they are: of the built-in kinds, the embedded server and the real one in tests."""


def open_data(name: str) -> bytes:
    """Return the bytes of one file, for example `kubernetes-1.36/discovery.json.gz`. Raises: FileNotFoundError."""
    return resources.files(__name__).joinpath(*name.split("/")).read_bytes()
