"""Names every cluster knows: of groups, of service accounts, of who has no credential."""

from __future__ import annotations

from typing import Final

from ctrlruntime.apiserver.authorization import User

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
CREDENTIAL_ID: Final = "authentication.kubernetes.io/credential-id"
_ACCOUNT: Final = "system:serviceaccount:"


def account_user(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, str]:
    """Return the groups of every service account of a namespace."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def account_of(user: str) -> tuple[str, str] | None:
    """Return (namespace, name) of the service account of a user name; None if it is another user."""
    if not user.startswith(_ACCOUNT):
        return None
    namespace, _, name = user[len(_ACCOUNT) :].partition(":")
    return (namespace, name) if namespace and name and ":" not in name else None
