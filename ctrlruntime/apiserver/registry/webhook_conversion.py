"""Conversion of custom resources by their definition's webhook.

`WebhookConversion` asks the webhook and checks what comes back; resources keep one where the definition's strategy is Webhook. A
webhook changes spec, status, labels and annotations; the rest of the metadata stays the original's, whatever it answers.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.go_values import GO_TYPES
from ctrlruntime.apiserver.webhook_client import Endpoint, WebhookCallError, endpoint_of, read_review
from ctrlruntime.errors import APIStatusError
from ctrlruntime.schema.trees import Document, encode
from ctrlruntime.selector import label_key_problems, label_value_problems

_GROUP = "apiextensions.k8s.io"
_KNOWN = frozenset({f"{_GROUP}/v1", f"{_GROUP}/v1beta1"})
_TIMEOUT = 30
_EMPTY: Document = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}


class Caller(Protocol):
    """Posts a review: the webhook client."""

    async def call(self, endpoint: Endpoint, body: bytes, timeout: int) -> bytes: ...


class WebhookConversion:
    """The conversion webhook of one definition."""

    def __init__(self, caller: Caller, config: Mapping[str, Any], *, rng: Random | None = None) -> None:
        """`config` is the definition's `spec.conversion.webhook`, validated."""
        self._caller = caller
        self._endpoint = endpoint_of(config.get("clientConfig") or {})
        versions: Sequence[str] = config.get("conversionReviewVersions") or ()
        self._version = next((version for version in versions if version in {"v1", "v1beta1"}), "v1")
        self._rng = rng or Random()  # noqa: S311 - ids of reviews, not secrets
        self.lock = asyncio.Lock()
        """Held while views of stored objects are made, so that many watchers ask for each once."""

    async def convert(self, documents: Sequence[Document], api_version: str) -> list[Document]:
        """Return the objects in another version, in order; the originals stay as they are. Raises: APIStatusError (500)."""
        if not documents:
            return []
        sent = [_without_version(document) for document in documents]
        named = _named(sent[0])
        try:
            answers = await self._ask(sent, api_version)
        except WebhookCallError as error:
            raise failures.plain_internal(f"conversion webhook for {named} failed: {error}") from None
        if len(answers) != len(sent):
            raise failures.plain_internal(
                f"conversion webhook for {named} returned {len(answers)} objects, expected {len(sent)}"
            )
        return [
            _checked(original, answer, index, api_version, named)
            for index, (original, answer) in enumerate(zip(documents, answers, strict=True))
        ]

    async def _ask(self, documents: Sequence[Document], api_version: str) -> list[Any]:
        uid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{_GROUP}/{self._version}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": documents},
            "response": _EMPTY,
        }
        body = await self._caller.call(self._endpoint, encode(review), _TIMEOUT)
        response = _response(body, self._version, uid)
        result: Any = response.get("result") or {}
        if result.get("status") != "Success":
            given = result.get("status") or ""
            why = f"response.result.status was '{given}', not 'Success'"
            raise WebhookCallError(str(result.get("message") or why))
        return list(response.get("convertedObjects") or ())


def _without_version(document: Document) -> Document:
    """Return the object as it is stored: its resourceVersion is the store's."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    return {**document, "metadata": metadata}


def _named(document: Document) -> str:
    return f"{document.get('apiVersion', '')}, Kind={document.get('kind', '')}"


def _response(body: bytes, version: str, uid: str) -> Document:
    """Return the `response` of a review. Raises: WebhookCallError."""
    try:
        review = read_review(body)
    except ValueError as error:
        raise WebhookCallError(str(error)) from None
    kind, api_version = review.get("kind") or "", review.get("apiVersion") or ""
    is_named = bool(kind or api_version)
    if is_named and (kind != "ConversionReview" or api_version not in _KNOWN):
        raise WebhookCallError(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if is_named and api_version != f"{_GROUP}/{version}":
        other = api_version.removeprefix(f"{_GROUP}/")
        raise WebhookCallError(
            f"converting ({other}.ConversionReview) to ({version}.ConversionReview): unknown conversion"
        )
    response: Any = review.get("response")
    if not is_named:
        raise WebhookCallError(f"expected webhook response of {_GROUP}/{version}, Kind=ConversionReview, got /, Kind=")
    if not isinstance(response, dict):
        raise WebhookCallError("no response provided")
    found: Document = response
    if version == "v1" and found.get("uid") != uid:
        raise WebhookCallError(f'expected response.uid="{uid}", got "{found.get("uid") or ""}"')
    if version == "v1" and not is_named:
        raise WebhookCallError(f"expected webhook response of {_GROUP}/v1, Kind=ConversionReview, got /, Kind=")
    return found


def _checked(original: Document, answer: Any, index: int, api_version: str, named: str) -> Document:
    """Return the converted object under the original's metadata. Raises: APIStatusError (500)."""
    if not isinstance(answer, dict) or not answer.get("kind"):
        raise failures.plain_internal(f"Object 'Kind' is missing in '{encode(answer).decode()}'")
    found: Document = answer
    where = f"conversion webhook for {named} returned invalid object at index {index}"
    if found.get("apiVersion") != api_version:
        raise failures.plain_internal(
            f"{where}: invalid groupVersion (expected {api_version}, received {found.get('apiVersion') or ''})"
        )
    if found["kind"] != original["kind"]:
        raise failures.plain_internal(f"{where}: invalid kind (expected {original['kind']}, received {found['kind']})")
    given: Any = found.get("metadata") or {}
    before: Document = original["metadata"]
    for key, shown in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (given.get(key) or "") != (before.get(key) or ""):
            pair = f"{before.get(key) or ''} != {given.get(key) or ''}"
            raise _invalid(named, f"invalid object: must have the same {shown}: {pair}")
    return {**found, "metadata": _metadata(before, given, named)}


def _metadata(before: Document, given: Document, named: str) -> Document:
    metadata = {key: value for key, value in before.items() if key not in {"labels", "annotations"}}
    for field in ("labels", "annotations"):
        values: Any = given.get(field)
        if not values:
            continue
        if not isinstance(values, dict):
            raise _invalid(named, f"invalid metadata: metadata.{field} must be a map in converted object")
        _check_strings(values, field, named)
        metadata[field] = values
    return metadata


def _check_strings(values: Mapping[str, Any], field: str, named: str) -> None:
    for key, value in values.items():
        if not isinstance(value, str):
            kind = GO_TYPES.get(type(value), "[]interface {}")
            raise _invalid(
                named, f"invalid metadata: metadata.{field}[{key}] must be a string, but is {kind} in converted object"
            )
        problems = [(key, text) for text in label_key_problems(key)]
        if field == "labels":
            problems += [(value, text) for text in label_value_problems(value)]
        for shown, text in problems:
            raise _invalid(named, f'invalid metadata: metadata.{field}: Invalid value: "{shown}": {text}')


def _invalid(named: str, why: str) -> APIStatusError:
    return failures.plain_internal(f"conversion webhook for {named} returned {why}")


__all__ = ["Caller", "WebhookConversion"]
