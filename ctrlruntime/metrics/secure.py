"""Options of the HTTPS endpoint of the metrics. `serving.tls` carries them out."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["SecureMetrics"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecureMetrics:
    """Metrics over HTTPS, to callers that RBAC lets read them.

    A caller sends a bearer token; its user needs `get` of the nonResourceURL `/metrics`, and the operator `create` of TokenReviews and
    SubjectAccessReviews.
    """

    cert_dir: str | os.PathLike[str] | None = None
    """The folder of the certificate, which may be replaced at any time; default: a self-signed certificate."""

    cert_name: str = "tls.crt"
    key_name: str = "tls.key"
