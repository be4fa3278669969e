"""Who calls."""

from __future__ import annotations

from ctrlruntime.apiserver.authentication.accounts import AccountTokens, Bound, TokenRefused
from ctrlruntime.apiserver.authentication.authenticator import Authenticator, is_token_after_spaces
from ctrlruntime.apiserver.authentication.impersonation import Impersonation, is_impersonating, wanted_user
from ctrlruntime.apiserver.authentication.signing import SigningKey
from ctrlruntime.apiserver.authentication.well_known import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, account_user

__all__ = [
    "ANONYMOUS",
    "AUTHENTICATED",
    "UNAUTHENTICATED",
    "AccountTokens",
    "Authenticator",
    "Bound",
    "Impersonation",
    "SigningKey",
    "TokenRefused",
    "account_user",
    "is_impersonating",
    "is_token_after_spaces",
    "wanted_user",
]
