"""Secrets of type kubernetes.io/service-account-token: filled with an endless token, and gone with their account."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, TypeAlias

from ctrlruntime.apiserver.controllers.keyed import Key, keys_of
from ctrlruntime.apiserver.controllers.objects import is_deleting, metadata
from ctrlruntime.apiserver.interfaces import API, Change
from ctrlruntime.errors import NotFound
from ctrlruntime.schema.trees import Document

MakeToken: TypeAlias = Callable[[Document, str], str]
"""(the ServiceAccount, the Secret's name) → the token."""
_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"


class TokenSecrets:
    """Fills the Secrets that ask for a token of a ServiceAccount."""

    name = "service-account-token"

    def __init__(self, make_token: MakeToken, root_ca: str) -> None:
        self._make_token = make_token
        self._root_ca = root_ca

    def feeds(self, api: API) -> Sequence[AsyncIterator[Key]]:
        def of_account(change: Change) -> Iterable[Key]:
            if change.type != "DELETED":
                return []
            meta = metadata(change.object)
            secrets = api.list("", "secrets", str(meta["namespace"]))
            return [_key(one) for one in secrets if _account_name(one) == meta["name"]]

        return [
            keys_of(api.watch("", "secrets"), _asking),
            keys_of(api.watch("", "serviceaccounts"), of_account),
        ]

    async def reconcile(self, api: API, key: Key) -> float | None:
        namespace, name = key
        secret = api.get("", "secrets", namespace, name)
        if secret is None or is_deleting(secret) or not _account_name(secret):
            return None
        account = api.get("", "serviceaccounts", namespace, _account_name(secret))
        annotations = metadata(secret).get("annotations") or {}
        if account is None or annotations.get(_UID, metadata(account)["uid"]) != metadata(account)["uid"]:
            try:
                await api.delete("", "secrets", namespace, name, uid=str(metadata(secret)["uid"]))
            except NotFound:
                return None
            return None
        present: Document = secret.get("data") or {}
        data: dict[str, str] = {}
        if not present.get("token"):
            data["token"] = _encoded(self._make_token(account, name))
        if present.get("ca.crt") != _encoded(self._root_ca):
            data["ca.crt"] = _encoded(self._root_ca)
        if present.get("namespace") != _encoded(namespace):
            data["namespace"] = _encoded(namespace)
        if data or _UID not in annotations:
            marked = {"metadata": {"annotations": {_UID: metadata(account)["uid"]}}, "data": data}
            await api.merge_patch("", "secrets", namespace, name, marked)
        return None


def _asking(change: Change) -> Iterable[Key]:
    return [_key(change.object)] if _account_name(change.object) else []


def _key(secret: Document) -> Key:
    meta = metadata(secret)
    return str(meta["namespace"]), str(meta["name"])


def _account_name(secret: Document) -> str:
    """Return the account a Secret asks a token for; empty when it is another kind of Secret."""
    if secret.get("type") != _TYPE:
        return ""
    return str((metadata(secret).get("annotations") or {}).get(_NAME, ""))


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
