"""The Memcached kind: a number of memcached servers, and their names."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime import crd
from ctrlruntime.api import apps, core


class MemcachedSpec(ctrl.Model):
    size: Annotated[int, crd.OLMDescriptor(x=["podCount"])] = Field(
        ge=0, le=2**31 - 1, description="Number of memcached pods."
    )


class MemcachedStatus(ctrl.Model):
    nodes: list[str] = Field(default_factory=list, description="Names of the memcached pods.")


class Memcached(
    ctrl.Object,
    group="cache.example.com",
    version="v1alpha1",
    short_names=["mc"],
    olm=crd.OLM(resources=[apps.Deployment, core.Pod]),
):
    """A group of memcached servers."""

    spec: MemcachedSpec
    status: MemcachedStatus = Field(default_factory=MemcachedStatus)
