"""Who calls: bearer tokens (the admin's and others', service accounts'), client certificates, anonymous; and impersonation."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ctrlruntime.apiserver.authorization import MASTERS, User
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.errors import Unauthorized

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"


class Authenticator:
    """Finds the user of a request."""

    def __init__(self, admin_token: str, secret: bytes, *, now: Callable[[], float] = time.time) -> None:
        self.tokens: dict[str, User] = {admin_token: User("kubernetes-admin", (MASTERS, AUTHENTICATED))}
        self._secret = secret
        self._now = now
        self._certificates: dict[str, User] = {}

    def authenticate(self, authorization: str | None, certificate: Mapping[str, Any] | None) -> User:
        """Return the user; a request without any credential is anonymous. Raises: Unauthorized for a bad one."""
        if certificate:
            user = self._of_certificate(certificate)
            if user is not None:
                return user
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return ANONYMOUS
        user = self.of_token(token.strip())
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def of_token(self, token: str) -> User | None:
        """Return the user a bearer token stands for, or None when it is not valid."""
        return self.tokens.get(token) or self._of_service_account(token)

    @staticmethod
    def _of_certificate(certificate: Mapping[str, Any]) -> User | None:
        names = [pair for part in certificate.get("subject", ()) for pair in part]
        user = next((value for key, value in names if key == "commonName"), "")
        groups = tuple(value for key, value in names if key == "organizationName")
        return User(user, (*groups, AUTHENTICATED)) if user else None

    def _of_service_account(self, token: str) -> User | None:
        signed, _, signature = token.rpartition(".")
        expected = base64.urlsafe_b64encode(hmac.new(self._secret, signed.encode(), hashlib.sha256).digest())
        if not hmac.compare_digest(signature.encode(), expected.rstrip(b"=")):
            return None
        try:
            claims: Mapping[str, Any] = decode(base64.urlsafe_b64decode(signed.partition(".")[2] + "=="))
        except (ValueError, msgspec.DecodeError):
            return None
        if claims.get("exp", 0) < self._now():
            return None
        account = claims["kubernetes.io"]
        namespace = account["namespace"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        return User(claims["sub"], groups, account["serviceaccount"]["uid"])


def impersonated(headers: Mapping[str, str], groups: list[str]) -> User | None:
    """Return the user the Impersonate-* headers name, or None when there are none."""
    name = headers.get("Impersonate-User")
    if not name:
        return None
    if name.startswith("system:serviceaccount:") and not groups:
        namespace = name.split(":")[2]
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    extra = {
        key[len("Impersonate-Extra-") :].lower(): (value,)
        for key, value in headers.items()
        if key.lower().startswith("impersonate-extra-")
    }
    return User(name, (*groups, AUTHENTICATED), headers.get("Impersonate-Uid", ""), extra)
