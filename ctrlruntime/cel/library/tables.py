"""All functions by name, put together once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from ctrlruntime.cel.functions import Function, collect
from ctrlruntime.cel.library import authorization, collections, kubernetes, standard, text, versions


@cache
def functions() -> Mapping[str, Function]:
    """Return every function of the API server's environment."""
    return collect(
        standard.declared(),
        text.declared(),
        collections.declared(),
        kubernetes.declared(),
        versions.declared(),
        authorization.declared(),
    )
