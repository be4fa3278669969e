"""The classes of authentication.k8s.io/v1. Written by scripts/generate-api; do not edit."""

# No postponed annotations: pydantic would have to evaluate every one, a quarter of the import time.
from pydantic import Field

from ctrlruntime.api.model import Model
from ctrlruntime.api.object import Object
from ctrlruntime.field import Time

__all__ = [
    "BoundObjectReference",
    "SelfSubjectReview",
    "SelfSubjectReviewStatus",
    "TokenRequest",
    "TokenRequestSpec",
    "TokenRequestStatus",
    "TokenReview",
    "TokenReviewSpec",
    "TokenReviewStatus",
    "UserInfo",
]


class BoundObjectReference(Model):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""


class UserInfo(Model):
    extra: dict[str, list[str]] = Field(default_factory=dict)
    groups: list[str] = Field(default_factory=list)
    uid: str = ""
    username: str = ""


class SelfSubjectReviewStatus(Model):
    user_info: UserInfo = Field(default_factory=UserInfo)


class SelfSubjectReview(Object, group="authentication.k8s.io", version="v1", scope="Cluster"):
    status: SelfSubjectReviewStatus = Field(default_factory=SelfSubjectReviewStatus)


class TokenRequestSpec(Model):
    audiences: list[str] = Field(default_factory=list)
    bound_object_ref: BoundObjectReference | None = None
    expiration_seconds: int | None = None


class TokenRequestStatus(Model, always_sent=("token",)):
    expiration_timestamp: Time | None = None
    token: str = ""


class TokenRequest(Object, group="authentication.k8s.io", version="v1"):
    spec: TokenRequestSpec = Field(default_factory=TokenRequestSpec)
    status: TokenRequestStatus = Field(default_factory=TokenRequestStatus)


class TokenReviewSpec(Model):
    audiences: list[str] = Field(default_factory=list)
    token: str = ""


class TokenReviewStatus(Model):
    audiences: list[str] = Field(default_factory=list)
    authenticated: bool = False
    error: str = ""
    user: UserInfo = Field(default_factory=UserInfo)


class TokenReview(Object, group="authentication.k8s.io", version="v1", scope="Cluster", always_sent=("spec",)):
    spec: TokenReviewSpec = Field(default_factory=TokenReviewSpec)
    status: TokenReviewStatus = Field(default_factory=TokenReviewStatus)
