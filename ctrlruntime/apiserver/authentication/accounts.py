"""Service account tokens: issued on request, and valid while their objects exist.

A token names its account by uid, and perhaps a Pod, Secret or Node it is bound to; each use looks whether they are still
there, so a deleted account's token ends at once. Signatures are checked once for each token and remembered.
"""

from __future__ import annotations

import hmac
import time
import uuid
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, cast

import msgspec

from ctrlruntime.apiserver.authentication.signing import SigningKey, VerifyingKey, decode_part, read_keys
from ctrlruntime.apiserver.authentication.well_known import AUTHENTICATED, CREDENTIAL_ID, account_groups, account_user
from ctrlruntime.apiserver.authorization import User
from ctrlruntime.apiserver.encoding import decode
from ctrlruntime.field_errors import shown
from ctrlruntime.schema.trees import Document

LEGACY_ISSUER: Final = "kubernetes/serviceaccount"
_LEGACY_CLAIMS: Final = "kubernetes.io/serviceaccount"
_LEEWAY: Final = 60
"""Seconds that the clocks of signer and reader may differ, as upstream has it."""
_INVALIDATED: Final = "service account token has been invalidated"
_REMEMBERED: Final = 10_000
_PLURALS: Final = {"pod": "pods", "secret": "secrets", "node": "nodes"}
_EXTRAS: Final = "authentication.kubernetes.io/"


class TokenRefused(Exception):  # noqa: N818 - it says what happened
    """A token of ours that is not valid, with the real server's words."""


class Reader(Protocol):
    """Reads core objects: a part of `API`."""

    def get(self, group: str, resource: str, namespace: str, name: str) -> Document | None: ...


@dataclass(frozen=True, slots=True)
class Bound:
    """An object that a token lives with; `kind` is pod, secret or node."""

    kind: str
    name: str
    uid: str

    def claim(self) -> dict[str, dict[str, str]]:
        return {self.kind: {"name": self.name, "uid": self.uid}}


class AccountTokens:
    """Makes and reads the tokens of service accounts.

    Args:
        issuer: the `iss` of the tokens, and the audience of the server itself.
        pem: the private key that signs; None makes one when it is first needed.
        reader: where accounts and bound objects are looked up.
        issuers: further issuers whose tokens are believed; each is an audience of the server, too.
        keys: PEM of further keys whose tokens are believed.

    """

    def __init__(
        self,
        issuer: str,
        reader: Reader,
        pem: bytes | None = None,
        *,
        issuers: Sequence[str] = (),
        keys: Sequence[bytes] = (),
        now: Callable[[], float] = time.time,
        make_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self.issuer = issuer
        self.audiences: Sequence[str] = tuple(dict.fromkeys((issuer, *issuers)))
        self._reader = reader
        self._given = pem
        # A key that cannot be used fails at construction and not at the first token.
        self._made: SigningKey | None = SigningKey(pem) if pem is not None else None
        self._further = {key.id: key for pem in keys for key in read_keys(pem)}
        self._now = now
        self._make_id = make_id
        self._read: dict[str, Mapping[str, Any]] = {}

    @property
    def key(self) -> SigningKey:
        if self._made is None:
            self._made = SigningKey()
        return self._made

    @property
    def keys(self) -> list[VerifyingKey]:
        """The keys whose tokens are believed, the one that signs first."""
        return [self.key, *(key for key in self._further.values() if key.id != self.key.id)]

    # Made

    def make(
        self,
        account: Document,
        audiences: Sequence[str],
        seconds: int,
        *bound: Bound,
        issued: int,
        warn_after: int | None = None,
    ) -> str:
        """Return a token for a ServiceAccount that is valid for `seconds` from `issued` (seconds since 1970)."""
        metadata: Document = account["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        private: dict[str, Any] = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": metadata.get("uid", "")},
        }
        for one in bound:
            private.update(one.claim())
        if warn_after is not None:
            private["warnafter"] = warn_after
        return self.key.sign(
            {
                "aud": list(audiences),
                "exp": issued + seconds,
                "iat": issued,
                "iss": self.issuer,
                "jti": self._make_id(),
                "kubernetes.io": dict(sorted(private.items())),
                "nbf": issued,
                "sub": account_user(namespace, name),
            }
        )

    def make_legacy(self, account: Document, secret: str) -> str:
        """Return the endless token that a Secret of type kubernetes.io/service-account-token holds."""
        metadata: Document = account["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        return self.key.sign(
            {
                "iss": LEGACY_ISSUER,
                f"{_LEGACY_CLAIMS}/namespace": namespace,
                f"{_LEGACY_CLAIMS}/secret.name": secret,
                f"{_LEGACY_CLAIMS}/service-account.name": name,
                f"{_LEGACY_CLAIMS}/service-account.uid": metadata.get("uid", ""),
                "sub": account_user(namespace, name),
            }
        )

    # Read

    def user_of(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """Return the user of a token and those of `audiences` that it is for; None when the token is not one of ours.

        Raises: TokenRefused when it is ours and not, or no longer, valid.
        """
        claims = self._read.get(token)
        if claims is None:
            claims = self._verified(token)
            if claims is None:
                return None
            if len(self._read) >= _REMEMBERED:
                self._read.clear()
            self._read[token] = claims
        meant = self._audiences(claims, audiences)
        if claims.get("iss") == LEGACY_ISSUER:
            return self._legacy_user(token, claims), meant
        self._check_times(claims)
        return self._bound_user(claims), meant

    def _verified(self, token: str) -> Mapping[str, Any] | None:
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            head, claims = decode(decode_part(parts[0])), decode(decode_part(parts[1]))
            signature = decode_part(parts[2])
        except (ValueError, msgspec.DecodeError):
            return None
        if not isinstance(head, dict) or not isinstance(claims, dict):
            return None
        # Compared by equality: what came in may be unhashable.
        header, body = cast("dict[str, Any]", head), cast("dict[str, Any]", claims)
        if body.get("iss") not in (*self.audiences, LEGACY_ISSUER):
            return None
        keys = [key for key in self.keys if header.get("kid") in (None, "", key.id)]
        if not keys:
            raise TokenRefused("invalid signature, no keys found")
        signed, algorithm = f"{parts[0]}.{parts[1]}".encode(), str(header.get("alg"))
        if not any(key.has_signed(signed, signature, algorithm) for key in keys):
            raise TokenRefused("go-jose/go-jose: error in cryptographic primitive")
        return body

    def _audiences(self, claims: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
        given = claims.get("aud") or list(self.audiences)
        if isinstance(given, str):
            given = [given]
        meant = [audience for audience in wanted if audience in given]
        if not meant:
            listed = " ".join(shown(one) for one in given)
            asked = " ".join(shown(one) for one in wanted)
            raise TokenRefused(f"token audiences [{listed}] is invalid for the target audiences [{asked}]")
        return meant

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        if _seconds(claims, "nbf", 0) - _LEEWAY > now:
            raise TokenRefused("service account token is not valid yet")
        if _seconds(claims, "exp", now) + _LEEWAY < now:
            raise TokenRefused("service account token has expired")
        if _seconds(claims, "iat", 0) - _LEEWAY > now:
            raise TokenRefused("service account token is issued in the future")

    def _bound_user(self, claims: Mapping[str, Any]) -> User:
        private: Mapping[str, Any] = claims.get("kubernetes.io") or {}
        namespace = str(private.get("namespace", ""))
        named: Mapping[str, str] = private.get("serviceaccount") or {}
        name, uid = named.get("name", ""), named.get("uid", "")
        if not name:
            raise TokenRefused("resource name may not be empty")
        account = self._reader.get("", "serviceaccounts", namespace, name)
        if account is None:
            raise TokenRefused(f'serviceaccounts "{name}" not found')
        if self._is_past(account):
            raise TokenRefused(f"service account {namespace}/{name} has been deleted")
        found = account["metadata"].get("uid", "")
        if found != uid:
            raise TokenRefused(f"service account UID ({found}) does not match claim ({uid})")
        extra = {CREDENTIAL_ID: (f"JTI={claims['jti']}",)} if claims.get("jti") else {}
        # A Pod's token names its Node, too, but does not end with it.
        bound = [kind for kind in ("secret", "pod") if private.get(kind)]
        for kind in bound or (["node"] if private.get("node") else []):
            self._check_bound(kind, namespace, private[kind])
        for kind in ("node", "pod"):
            if private.get(kind):
                extra[f"{_EXTRAS}{kind}-name"] = (private[kind].get("name", ""),)
                extra[f"{_EXTRAS}{kind}-uid"] = (private[kind].get("uid", ""),)
        return User(account_user(namespace, name), (*account_groups(namespace), AUTHENTICATED), uid, extra)

    def _check_bound(self, kind: str, namespace: str, claim: Mapping[str, str]) -> None:
        place = "" if kind == "node" else namespace
        found = self._reader.get("", _PLURALS[kind], place, claim.get("name", ""))
        if found is None or self._is_past(found):
            raise TokenRefused(_INVALIDATED)
        uid = found["metadata"].get("uid", "")
        if uid != claim.get("uid", ""):
            text = f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claim.get('uid', '')})"
            raise TokenRefused(text)

    def _is_past(self, document: Document) -> bool:
        """Tell whether something was deleted more than the leeway ago and is only held by finalizers."""
        deleted = document["metadata"].get("deletionTimestamp")
        return bool(deleted) and datetime.fromisoformat(deleted).timestamp() < self._now() - _LEEWAY

    def _legacy_user(self, token: str, claims: Mapping[str, Any]) -> User:
        namespace = str(claims.get(f"{_LEGACY_CLAIMS}/namespace", ""))
        name = str(claims.get(f"{_LEGACY_CLAIMS}/service-account.name", ""))
        uid = str(claims.get(f"{_LEGACY_CLAIMS}/service-account.uid", ""))
        secret = self._reader.get("", "secrets", namespace, str(claims.get(f"{_LEGACY_CLAIMS}/secret.name", "")))
        if secret is None or "deletionTimestamp" in secret["metadata"]:
            raise TokenRefused("Token has been invalidated")
        if not hmac.compare_digest(b64decode((secret.get("data") or {}).get("token", "")), token.encode()):
            raise TokenRefused("Token does not match server's copy")
        account = self._reader.get("", "serviceaccounts", namespace, name)
        if account is None or "deletionTimestamp" in account["metadata"]:
            raise TokenRefused(f"ServiceAccount {namespace}/{name} has been deleted")
        found = account["metadata"].get("uid", "")
        if found != uid:
            raise TokenRefused(f"ServiceAccount UID ({found}) does not match claim ({uid})")
        return User(account_user(namespace, name), (*account_groups(namespace), AUTHENTICATED), uid)


def _seconds(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name)
    return float(value) if isinstance(value, int | float) else default
