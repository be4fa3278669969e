"""The classes of apiregistration.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "APIService",
    "APIServiceCondition",
    "APIServiceSpec",
    "APIServiceStatus",
    "ServiceReference",
]


class ServiceReference(Model):
    name: str = ""
    namespace: str = ""
    port: int | None = None


class APIServiceSpec(Model, always_sent=("group_priority_minimum", "version_priority")):
    ca_bundle: bytes = b""
    group: str = ""
    group_priority_minimum: int = 0
    insecure_skip_tls_verify: bool = Field(
        default=False, validation_alias="insecureSkipTLSVerify", serialization_alias="insecureSkipTLSVerify"
    )
    service: ServiceReference | None = None
    version: str = ""
    version_priority: int = 0


class APIServiceCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class APIServiceStatus(Model):
    conditions: list[APIServiceCondition] = Field(default_factory=list)


class APIService(Object, group="apiregistration.k8s.io", version="v1", scope="Cluster", categories=("api-extensions",)):
    spec: APIServiceSpec = Field(default_factory=APIServiceSpec)
    status: APIServiceStatus = Field(default_factory=APIServiceStatus)
