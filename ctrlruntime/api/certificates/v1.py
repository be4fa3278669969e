"""The classes of certificates.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "CertificateSigningRequest",
    "CertificateSigningRequestCondition",
    "CertificateSigningRequestSpec",
    "CertificateSigningRequestStatus",
]


class CertificateSigningRequestSpec(Model, always_sent=("request", "signer_name")):
    expiration_seconds: int | None = None
    extra: dict[str, list[str]] = Field(default_factory=dict)
    groups: list[str] = Field(default_factory=list)
    request: bytes = b""
    signer_name: str = ""
    uid: str = ""
    usages: list[str] = Field(default_factory=list)
    username: str = ""


class CertificateSigningRequestCondition(Model, always_sent=("status", "type")):
    last_transition_time: Time | None = None
    last_update_time: Time | None = None
    message: str = ""
    reason: str = ""
    status: str = ""
    type: str = ""


class CertificateSigningRequestStatus(Model):
    certificate: bytes = b""
    conditions: list[CertificateSigningRequestCondition] = Field(default_factory=list)


class CertificateSigningRequest(
    Object,
    group="certificates.k8s.io",
    version="v1",
    scope="Cluster",
    short_names=("csr",),
    always_sent=("spec",),
):
    spec: CertificateSigningRequestSpec = Field(default_factory=CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = Field(default_factory=CertificateSigningRequestStatus)
