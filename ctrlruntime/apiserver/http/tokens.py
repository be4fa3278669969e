"""Service account tokens over HTTP: TokenRequest, and what a relying party needs to check tokens by itself (OpenID discovery)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from aiohttp import web

from ctrlruntime import field_errors
from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.authentication import AccountTokens, Bound
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.http.answers import failure, headers_of
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.posted import Posted
from ctrlruntime.apiserver.registry import Registry, Resource, WriteOptions
from ctrlruntime.errors import BadRequest, NotAcceptable, StatusCause
from ctrlruntime.schema.trees import Document, encode

KEYS_PATH: Final = "/openid/v1/jwks"
CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
_GROUP: Final = "authentication.k8s.io"
_KIND: Final = "TokenRequest"
_KEYS_TYPE: Final = "application/jwk-set+json"
_SHORTEST, _LONGEST, _USUAL = 600, 2**32, 3600
_KUBELETS: Final = 3607
"""The seconds that kubelets request: such a token lives a year, for Pods that read it only once, and warns after this time."""
_YEAR: Final = 365 * 24 * 3600
_PLURALS: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Tokens(Posted):
    """Handlers of serviceaccounts/token and of the two OpenID documents."""

    kind = Resource(_GROUP, "v1", "tokenrequests", "tokenrequest", _KIND, namespaced=True, verbs=("create",))
    keeps_system = True

    def __init__(self, registry: Registry, accounts: AccountTokens, *, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._accounts = accounts
        self._now = now

    # TokenRequest

    def default(self, body: Document) -> None:
        spec: Document = body.get("spec") or {}
        body["spec"] = spec
        _set_duration(spec)

    def check(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> None:
        """Take the name and uid of the account, and judge the duration (TokenREST in pkg/registry/core/serviceaccount/storage)."""
        metadata, spec = body["metadata"], body["spec"]
        name = metadata.get("name") or target.name
        if name != target.name:
            cause = field_errors.invalid_value(
                "metadata.name", name, "must match the service account name if specified"
            )
            raise failures.invalid(_KIND, _GROUP, target.name, [cause])
        accounts = self._registry.canonical("", "serviceaccounts")
        uid = self._registry.record(accounts, target.namespace, target.name).uid
        given = metadata.get("uid") or uid
        if given != uid:
            why = f"the UID in the token request ({given}) does not match the UID of the service account ({uid})"
            raise failures.conflict(_KIND, _GROUP, target.name, why)
        moment = timestamp(int(self._now()))
        metadata.update(name=name, namespace=target.namespace, uid=uid, creationTimestamp=moment)
        _set_duration(spec)
        spec["audiences"] = spec.get("audiences") or list(self._accounts.audiences)
        spec.setdefault("boundObjectRef", None)
        body["status"] = {"token": "", "expirationTimestamp": None}
        causes = list(_duration_causes(spec["expirationSeconds"]))
        if causes:
            raise failures.invalid(_KIND, _GROUP, "", causes)

    def act(self, call: Call, target: ResourcePath, body: Document, options: WriteOptions) -> Document | None:
        accounts = self._registry.canonical("", "serviceaccounts")
        account = accounts.tree(self._registry.record(accounts, target.namespace, target.name))
        spec: Document = body["spec"]
        bound = list(self._bound(spec.get("boundObjectRef"), account))
        return self._answer(account, body["metadata"], spec, bound)

    def _answer(self, account: Document, metadata: Document, spec: Document, bound: list[Bound]) -> Document:
        issued = int(self._now())
        seconds, asked = spec["expirationSeconds"], spec["expirationSeconds"]
        warn_after = None
        is_own = set(spec["audiences"]) <= set(self._accounts.audiences)
        if asked == _KUBELETS and is_own and any(one.kind == "pod" for one in bound):
            seconds, warn_after = _YEAR, issued + asked
        token = self._accounts.make(account, spec["audiences"], seconds, *bound, issued=issued, warn_after=warn_after)
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": metadata,
            "spec": {
                "audiences": spec["audiences"],
                "expirationSeconds": asked,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": timestamp(issued + asked)},
        }

    def _bound(self, ref: Document | None, account: Document) -> Iterator[Bound]:
        """Yield what the token is bound to: the object asked for, and a scheduled Pod's Node. Raises: APIStatusError."""
        if ref is None:
            return
        kind, name = str(ref.get("kind", "")), str(ref.get("name", ""))
        plural = _PLURALS.get(kind)
        group, version = _group_and_version(str(ref.get("apiVersion", "")))
        if plural is None or group:
            raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        if not name:
            raise BadRequest("Name parameter required.")
        metadata: Document = account["metadata"]
        found = self._registry.get("", plural, "" if kind == "Node" else metadata["namespace"], name)
        if found is None:
            raise failures.not_found(plural, "", name)
        spec: Document = found.get("spec") or {}
        if kind == "Pod" and spec.get("serviceAccountName") != metadata["name"]:
            text = f'cannot bind token for serviceaccount "{metadata["name"]}" to pod running with different serviceaccount name.'
            raise BadRequest(text)
        uid = str(found["metadata"].get("uid", ""))
        if ref.get("uid") not in {None, "", uid}:
            why = (
                f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise failures.conflict(kind, "", name, why)
        yield Bound(kind.lower(), name, uid)
        if kind == "Pod" and spec.get("nodeName"):
            node = self._registry.get("", "nodes", "", spec["nodeName"])
            # The Pod may name a Node that is not there (yet): then the token does without its uid.
            yield Bound("node", spec["nodeName"], str(node["metadata"].get("uid", "")) if node else "")

    # OpenID discovery

    def document(self, call: Call, base: str) -> web.Response:
        """Answer one of the two OpenID documents; `base` is the server's URL."""
        if call.method not in {"GET", "HEAD"}:
            raise failures.method_not_allowed()
        keys = self._accounts.keys
        written = _KEYS_TYPE if call.path == KEYS_PATH else "application/json"
        if not _accepts(call.headers.get("Accept", ""), written):
            return failure(NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {written}"))
        if call.path == KEYS_PATH:
            return _public({"keys": [key.jwk() for key in keys]}, written)
        return _public(
            {
                "issuer": self._accounts.issuer,
                "jwks_uri": f"{base}{KEYS_PATH}",
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
            },
            written,
        )


def _set_duration(spec: Document) -> None:
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _USUAL


def _group_and_version(text: str) -> tuple[str, str]:
    """Return both; of more parts nothing is known (FromAPIVersionAndKind in apimachinery's pkg/runtime/schema)."""
    group, _, version = text.rpartition("/")
    return ("", "") if "/" in group else (group, version)


def _duration_causes(seconds: int) -> Iterator[StatusCause]:
    if not _SHORTEST <= seconds <= _LONGEST:
        bound = "less than 10 minutes" if seconds < _SHORTEST else "larger than 2^32 seconds"
        yield field_errors.invalid_value("spec.expirationSeconds", seconds, f"may not specify a duration {bound}")


def _accepts(accept: str, wanted: str) -> bool:
    kinds = {part.partition(";")[0].strip() for part in accept.split(",")} if accept else {"*/*"}
    return bool(kinds & {"*/*", "application/*", wanted})


def _public(document: Document, content_type: str) -> web.Response:
    headers = headers_of()
    headers["Cache-Control"] = "public, max-age=3600"
    headers["Content-Type"] = content_type
    return web.Response(body=encode(document), headers=headers)
