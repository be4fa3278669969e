"""The classes of discovery.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.core.v1 import ObjectReference
from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object

__all__ = [
    "Endpoint",
    "EndpointConditions",
    "EndpointHints",
    "EndpointPort",
    "EndpointSlice",
    "ForNode",
    "ForZone",
]


class EndpointConditions(Model):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForNode(Model, always_sent=("name",)):
    name: str = ""


class ForZone(Model, always_sent=("name",)):
    name: str = ""


class EndpointHints(Model):
    for_nodes: list[ForNode] = Field(default_factory=list)
    for_zones: list[ForZone] = Field(default_factory=list)


class Endpoint(Model, always_sent=("addresses",)):
    addresses: list[str] = Field(default_factory=list)
    conditions: EndpointConditions = Field(default_factory=EndpointConditions)
    deprecated_topology: dict[str, str] = Field(default_factory=dict)
    hints: EndpointHints | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None
    zone: str | None = None


class EndpointPort(Model):
    app_protocol: str | None = None
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(Object, group="discovery.k8s.io", version="v1", always_sent=("address_type",)):
    address_type: str = ""
    endpoints: list[Endpoint] = Field(default_factory=list)
    ports: list[EndpointPort] = Field(default_factory=list)
