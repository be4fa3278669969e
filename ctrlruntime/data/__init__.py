"""The recorded facts of Kubernetes 1.36 that the package reads at run time.

It uses no other module, and returns the bytes of one file by its name.
"""

from __future__ import annotations

from importlib import resources

__all__ = ["open_data"]


def open_data(name: str) -> bytes:
    """Return the bytes of one file, for example `kubernetes-1.36/discovery.json.gz`. Raises: FileNotFoundError."""
    return resources.files(__name__).joinpath(*name.split("/")).read_bytes()
