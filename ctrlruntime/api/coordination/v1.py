"""The classes of coordination.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import MicroTime

__all__ = [
    "Lease",
    "LeaseSpec",
]


class LeaseSpec(Model):
    acquire_time: MicroTime | None = None
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    renew_time: MicroTime | None = None
    strategy: str | None = None


class Lease(Object, group="coordination.k8s.io", version="v1"):
    spec: LeaseSpec = Field(default_factory=LeaseSpec)
