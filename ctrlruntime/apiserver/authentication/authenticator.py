"""Who calls: bearer tokens (static ones, service accounts'), client certificates, anonymous.

The HTTP layer hands in what came with a request and gets a `User`, or the 401. TokenReview asks the same question for a
token and audiences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from ssl import SSLObject
from typing import Any, Final

from ctrlruntime.apiserver.authentication.accounts import AccountTokens, TokenRefused
from ctrlruntime.apiserver.authentication.well_known import ANONYMOUS, AUTHENTICATED, CREDENTIAL_ID
from ctrlruntime.apiserver.authorization import User
from ctrlruntime.apiserver.options import TokenUser
from ctrlruntime.errors import Unauthorized

_UNKNOWN: Final = "invalid bearer token"
_REMEMBERED: Final = 1_000


class Authenticator:
    """Finds the user of a request."""

    def __init__(self, accounts: AccountTokens, tokens: Mapping[str, TokenUser] | None = None) -> None:
        self.accounts = accounts
        self.tokens: dict[str, User] = {}
        """Static bearer tokens and their users; change them with `add_token` and `remove_token`."""
        self._certificates: dict[bytes, User | None] = {}
        for token, user in (tokens or {}).items():
            self.add_token(token, user)

    def add_token(self, token: str, user: TokenUser) -> None:
        """Accept a bearer token for a user, at once."""
        self.tokens[token] = User(user.name, _authenticated(user.groups), user.uid)

    def remove_token(self, token: str) -> None:
        """Refuse a static bearer token from now on."""
        self.tokens.pop(token, None)

    def authenticate(self, authorization: str | None, tls: SSLObject | None) -> User:
        """Return the user; a request without any credential is anonymous. A certificate goes before a token.

        Raises: Unauthorized for a token that is not valid.
        """
        if tls is not None:
            user = self._of_certificate(tls)
            if user is not None:
                return user
        if not authorization:
            return ANONYMOUS
        scheme, _, rest = authorization.partition(" ")
        token = rest.partition(" ")[0]
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        user = self.tokens.get(token)
        if user is not None:
            return user
        try:
            found = self.accounts.user_of(token, self.accounts.audiences)
        except TokenRefused:
            found = None
        if found is None:
            raise Unauthorized("Unauthorized")
        return found[0]

    def review(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]]:
        """Return the user of a token and those of the audiences it is for; no audience asks for the server's own.

        Raises: TokenRefused with what a TokenReview reports.
        """
        wanted = list(audiences or self.accounts.audiences)
        user = self.tokens.get(token)
        if user is not None:
            meant = [audience for audience in wanted if audience in self.accounts.audiences]
            if meant:
                return user, meant
            raise TokenRefused(_UNKNOWN)
        try:
            found = self.accounts.user_of(token, wanted)
        except TokenRefused as error:
            raise TokenRefused(f"[{_UNKNOWN}, {error}]") from None
        if found is None:
            raise TokenRefused(_UNKNOWN)
        return found

    def _of_certificate(self, tls: SSLObject) -> User | None:
        der = tls.getpeercert(binary_form=True)
        if not der:
            return None
        if der in self._certificates:
            return self._certificates[der]
        user = _certified(tls.getpeercert() or {}, der)
        if len(self._certificates) >= _REMEMBERED:
            self._certificates.clear()
        self._certificates[der] = user
        return user


def is_token_after_spaces(authorization: str) -> bool:
    """Tell whether a token is overlooked for the spaces before it (bearertoken.go in apiserver's pkg/authentication)."""
    scheme, _, rest = authorization.strip().partition(" ")
    return scheme.lower() == "bearer" and rest.startswith(" ")


def _certified(certificate: Mapping[str, Any], der: bytes) -> User | None:
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    user = next((value for key, value in names if key == "commonName"), "")
    if not user:
        return None
    groups = tuple(value for key, value in names if key == "organizationName")
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    return User(user, _authenticated(groups), "", extra)


def _authenticated(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(groups) if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
