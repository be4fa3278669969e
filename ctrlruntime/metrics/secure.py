"""Options for metrics over HTTPS. `serving.tls` implements them."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["SecureMetrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureMetrics:
    """Metrics over HTTPS, for callers that RBAC allows.

    A caller sends a bearer token. Its user needs `get` of the nonResourceURL `/metrics`, and the operator needs `create` of TokenReviews
    and SubjectAccessReviews.
    """

    cert_dir: str | os.PathLike[str] | None = None
    """The folder of the certificate, which is loaded again when it changes; default: a self-signed certificate."""

    cert_name: str = "tls.crt"
    key_name: str = "tls.key"
