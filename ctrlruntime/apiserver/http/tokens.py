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
from ctrlruntime.apiserver.http.answers import document_answer, failure, headers_of
from ctrlruntime.apiserver.http.bodies import read_fitted
from ctrlruntime.apiserver.http.calls import Call, ResourcePath
from ctrlruntime.apiserver.http.options import write_options
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
_REQUESTS: Final = Resource(_GROUP, "v1", "tokenrequests", "tokenrequest", _KIND, namespaced=True, verbs=("create",))
"""A resource that no path names: by it the bodies are read."""
_PLURALS: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class Tokens:
    """Handlers of serviceaccounts/token and of the two OpenID documents."""

    def __init__(self, registry: Registry, accounts: AccountTokens, *, now: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._accounts = accounts
        self._now = now

    # TokenRequest

    async def request(self, call: Call, resource: Resource, target: ResourcePath) -> web.Response:
        """Answer a TokenRequest with a token. Raises: APIStatusError as the real server."""
        options = write_options(call, "CreateOptions")
        request = read_fitted(call, _REQUESTS, options)
        self._complete(request, target, options)
        request = await self._admit(resource, target, request["metadata"], request["spec"], options)
        metadata, spec = request["metadata"], request.get("spec") or {}
        _set_duration(spec)
        spec["audiences"] = spec.get("audiences") or list(self._accounts.audiences)
        account = resource.tree(self._registry.record(resource, target.namespace, target.name))
        causes = list(_duration_causes(spec["expirationSeconds"]))
        if causes:
            raise failures.invalid(_KIND, _GROUP, "", causes)
        bound = list(self._bound(spec.get("boundObjectRef"), account))
        return document_answer(call, self._answer(account, metadata, spec, bound), 201)

    def _complete(self, request: Document, target: ResourcePath, options: WriteOptions) -> None:
        """Fill in what the client left open, and who set what. Raises: BadRequest, NotFound, Invalid."""
        metadata: Document = request.get("metadata") or {}
        spec: Document = request.get("spec") or {}
        request["metadata"], request["spec"] = metadata, spec
        if metadata.pop("namespace", target.namespace) != target.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        if self._registry.get("", "namespaces", "", target.namespace) is None:
            raise failures.not_found("namespaces", "", target.namespace)
        name = metadata.pop("name", target.name)
        if name != target.name:
            cause = field_errors.invalid_value(
                "metadata.name", name, "must match the service account name if specified"
            )
            raise failures.invalid(_KIND, _GROUP, target.name, [cause])
        for key in ("uid", "creationTimestamp", "selfLink", "managedFields"):
            metadata.pop(key, None)
        _set_duration(spec)
        tracker = self._registry.extensions.fields
        if tracker is not None:
            tracker.track(_REQUESTS, None, request, manager=options.field_manager, subresource="token")

    async def _admit(
        self, resource: Resource, target: ResourcePath, metadata: Document, spec: Document, options: WriteOptions
    ) -> Document:
        """Return the request as the webhooks left it. Raises: APIStatusError of a denial."""
        request = {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                "name": target.name,
                "namespace": target.namespace,
                "uid": self._uid_of(resource, target),
                "creationTimestamp": timestamp(int(self._now())),
                **metadata,
            },
            "spec": {**spec, "boundObjectRef": spec.get("boundObjectRef")},
            "status": {"token": "", "expirationTimestamp": None},
        }
        return await self._registry.writer.admit(
            resource, target.namespace, target.name, request, options, subresource="token"
        )

    def _uid_of(self, resource: Resource, target: ResourcePath) -> str:
        return self._registry.record(resource, target.namespace, target.name).uid

    def _answer(self, account: Document, metadata: Document, spec: Document, bound: list[Bound]) -> Document:
        issued = int(self._now())
        seconds, asked = spec["expirationSeconds"], spec["expirationSeconds"]
        warn_after = None
        is_own = set(spec["audiences"]) <= set(self._accounts.audiences)
        if asked == _KUBELETS and is_own and any(one.kind == "pod" for one in bound):
            seconds, warn_after = _YEAR, issued + asked
        token = self._accounts.make(account, spec["audiences"], seconds, *bound, issued=issued, warn_after=warn_after)
        mine: Document = account["metadata"]
        kept = {key: metadata[key] for key in ("labels", "annotations", "managedFields") if key in metadata}
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {
                "name": mine["name"],
                "namespace": mine["namespace"],
                "uid": mine.get("uid", ""),
                "creationTimestamp": timestamp(issued),
                **kept,
            },
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
        group, _, version = str(ref.get("apiVersion", "")).rpartition("/")
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
