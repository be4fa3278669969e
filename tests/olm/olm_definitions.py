"""The definitions of OLM's kinds, as a cluster with OLM has them: generated from our classes."""

from __future__ import annotations

from functools import cache
from typing import Any

from ctrlruntime.generate.crd import crds
from ctrlruntime.olm.api import ClusterServiceVersion
from ctrlruntime.operatorlib import OperatorCondition


@cache
def olm_definitions() -> tuple[dict[str, Any], ...]:
    """Return those of ClusterServiceVersion and OperatorCondition."""
    return tuple(crds([ClusterServiceVersion, OperatorCondition]))
