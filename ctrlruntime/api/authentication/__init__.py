"""The classes of authentication.k8s.io/v1. Written by scripts/generate-api; do not edit."""

from __future__ import annotations

from ctrlruntime.api.authentication.v1 import (
    BoundObjectReference,
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenRequest,
    TokenRequestSpec,
    TokenRequestStatus,
    TokenReview,
    TokenReviewSpec,
    TokenReviewStatus,
    UserInfo,
)

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
