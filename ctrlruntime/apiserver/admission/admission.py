"""`WebhookAdmission`: calls the webhooks a write matches; mutating ones one after the other, validating ones at once.

The writer hands in `AdmissionAttributes` and gets the changed object or the failure of a denial. Below are the registered webhooks
(`webhooks`), matching, reviews and the client that calls.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Literal, Protocol, TypeAlias

import anyio

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.matching import Matcher, has_own_kind, names_of
from ctrlruntime.apiserver.admission.reviews import (
    Answer,
    ReviewError,
    encode_review,
    internal,
    make_request,
    no_object,
    read_answer,
    read_patch,
)
from ctrlruntime.apiserver.admission.webhooks import Webhook, Webhooks
from ctrlruntime.apiserver.encoding import copy_tree, encode
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Document, Operation, UserIdentity
from ctrlruntime.apiserver.patch import json_patch
from ctrlruntime.apiserver.registry.defaults import default
from ctrlruntime.apiserver.registry.expressions import ExpressionError, all_hold
from ctrlruntime.apiserver.registry.resources import Resource, built_in
from ctrlruntime.apiserver.schema import Misfit
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.apiserver.webhook_client import WebhookCallError, WebhookClient
from ctrlruntime.errors import APIStatusError, BadRequest, PatchError, StatusCause
from ctrlruntime.log import get_logger

_log = get_logger("apiserver")

Decide: TypeAlias = Callable[[UserIdentity | None, Mapping[str, str]], tuple[bool, str]]
"""What authorization says to a question of `expressions.May`; None is the server itself."""


class Kinds(Protocol):
    """Which versions a kind is served in: the registry."""

    @property
    def store(self) -> Store: ...

    def equivalents(self, resource: Resource) -> Sequence[Resource]:
        """Return every served version of the objects that `resource` serves, itself included."""
        ...

    def served_together(self, group: str, plural: str) -> Sequence[tuple[str, str]]:
        """Return the (group, plural) pairs under which the same objects are served."""
        ...


@dataclass(slots=True)
class _Shown:
    """The object of a request on its way from webhook to webhook, in the version the last one saw."""

    resource: Resource
    object: Document | None
    is_changed: bool = False
    called: set[Webhook] = field(default_factory=set[Webhook])
    """Who was called and wants to hear of later changes (reinvocationPolicy IfNeeded)."""
    again: set[Webhook] = field(default_factory=set[Webhook])
    """Of those, who has to: somebody changed the object after them."""


class WebhookAdmission:
    """Admission by webhooks; implements `Admission`. `follow` before the first request, the client is closed by its owner."""

    def __init__(
        self,
        kinds: Kinds,
        client: WebhookClient,
        *,
        mutates: bool = True,
        validates: bool = True,
        decide: Decide | None = None,
        rng: Random | None = None,
    ) -> None:
        """`mutates` and `validates` say which of the two kinds of configuration have an effect.

        `decide` responds to conditions that check permissions; without it everything is allowed.
        """
        self._kinds = kinds
        self._client = client
        self._decide = decide or (lambda _user, _asked: (True, ""))
        self._rng = rng or Random()  # noqa: S311 - ids of reviews, not secrets
        self._webhooks = Webhooks(kinds.served_together, mutates=mutates, validates=validates)
        self._matcher = Matcher(kinds.store, kinds.equivalents)

    def follow(self) -> None:
        """Act on the configurations in the store, and on each change of them from now on."""
        self._webhooks.follow(self._kinds.store)

    def is_wanted(self, group: str, plural: str, subresource: str, operation: Operation) -> bool:
        return self._webhooks.wants(group, plural, subresource, operation)

    # Mutating

    async def mutate(self, attributes: AdmissionAttributes) -> Document | None:
        """Return the changed object, or None when it stays as it is. Raises: APIStatusError."""
        if not self._webhooks.mutating:
            return None
        shown = _Shown(attributes.resource, attributes.object)
        webhooks = self._webhooks.mutating
        for webhook in webhooks:
            await self._mutate_in_turn(webhook, attributes, shown)
        if shown.again:  # one second round, as upstream
            for webhook in webhooks:
                if webhook in shown.again:
                    await self._mutate_in_turn(webhook, attributes, shown)
        if not shown.is_changed or shown.object is None:
            return None
        if shown.resource is not attributes.resource and not has_own_kind(attributes):
            shown.object = await shown.resource.convert(shown.object, attributes.resource)
        _check_identity(attributes, shown.object)
        _restore_fields(attributes, shown.object)
        return shown.object

    async def _mutate_in_turn(self, webhook: Webhook, attributes: AdmissionAttributes, shown: _Shown) -> None:
        seen = replace(attributes, object=shown.object) if shown.is_changed else attributes
        resource = self._matcher.match(webhook.match, seen)
        if resource is None:
            return
        if await self._mutate_by(webhook, resource, seen, shown):
            shown.again |= shown.called
            shown.called.clear()
        if webhook.is_called_again:
            shown.called.add(webhook)

    async def _mutate_by(
        self, webhook: Webhook, resource: Resource, attributes: AdmissionAttributes, shown: _Shown
    ) -> bool:
        """Call one webhook and apply its patch; tell whether the object changed."""
        if not has_own_kind(attributes):
            await self._show_as(shown, resource)
        else:
            shown.resource = resource
        old = await self._old_as(attributes, resource)
        if not self._conditions_hold(webhook, attributes, resource, shown.object, old):
            return False
        try:
            answer = await self._ask(webhook, attributes, resource, shown.object, old, "mutating")
            operations = read_patch(answer.patch) if answer.is_allowed and answer.patch else []
            if operations and answer.patch_type not in {"", "JSONPatch"}:
                raise ReviewError(f'unsupported patch type "{answer.patch_type}"')
        except ReviewError as error:
            return self._tolerate(webhook, error)
        attributes.warnings.extend(answer.warnings)
        if not answer.is_allowed:
            raise answer.denial(webhook.name)
        if not operations:
            return False
        if shown.object is None:
            text = f'admission webhook "{webhook.name}" attempted to modify the object'
            raise internal(f"{text}, which is not supported for this operation")
        changed = _patched(shown.object, operations, None if has_own_kind(attributes) else resource)
        if changed == shown.object:
            return False
        shown.object, shown.is_changed = changed, True
        return True

    async def _show_as(self, shown: _Shown, resource: Resource) -> None:
        if shown.resource is not resource and shown.object is not None:
            shown.object = await shown.resource.convert(shown.object, resource)
        shown.resource = resource

    # Validating

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Raises: APIStatusError of the first denial to come."""
        if not self._webhooks.validating:
            return
        matching = [
            (webhook, resource)
            for webhook in self._webhooks.validating
            if (resource := self._matcher.match(webhook.match, attributes)) is not None
        ]
        if len(matching) == 1:
            await self._validate_by(*matching[0], attributes)
            return
        refusals: list[APIStatusError] = []

        async def run(webhook: Webhook, resource: Resource) -> None:
            try:
                await self._validate_by(webhook, resource, attributes)
            except APIStatusError as error:
                refusals.append(error)

        async with anyio.create_task_group() as tasks:
            for webhook, resource in matching:
                tasks.start_soon(run, webhook, resource)
        if refusals:
            raise refusals[0]

    async def _validate_by(self, webhook: Webhook, resource: Resource, attributes: AdmissionAttributes) -> None:
        document = attributes.object
        asked: Resource = attributes.resource
        if document is not None and resource is not asked and not has_own_kind(attributes):
            document = await asked.convert(document, resource)
        old = await self._old_as(attributes, resource)
        if not self._conditions_hold(webhook, attributes, resource, document, old):
            return
        try:
            answer = await self._ask(webhook, attributes, resource, document, old, "validating")
        except ReviewError as error:
            self._tolerate(webhook, error)
            return
        attributes.warnings.extend(answer.warnings)
        if not answer.is_allowed:
            raise answer.denial(webhook.name)

    # One webhook

    async def _old_as(self, attributes: AdmissionAttributes, resource: Resource) -> Document | None:
        asked: Resource = attributes.resource
        if attributes.old is None or resource is asked or has_own_kind(attributes):
            return attributes.old
        return await asked.convert(attributes.old, resource)

    async def _ask(
        self,
        webhook: Webhook,
        attributes: AdmissionAttributes,
        resource: Resource,
        document: Document | None,
        old: Document | None,
        side: Literal["mutating", "validating"],
    ) -> Answer:
        uid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        request = make_request(attributes, names_of(resource, attributes), uid, document, old)
        try:
            body = await self._client.call(
                webhook.endpoint, encode_review(request, webhook.review_version), webhook.timeout
            )
        except WebhookCallError as error:
            raise ReviewError.uncalled(str(error)) from error
        return read_answer(body, webhook.review_version, uid, side)

    @staticmethod
    def _tolerate(webhook: Webhook, error: ReviewError) -> bool:
        """Let a failure pass where the webhook's policy says so. Raises: InternalError."""
        if webhook.may_fail:
            _log.warning("webhook failed, ignored by its failurePolicy", webhook=webhook.name, error=str(error))
            return False
        raise internal(f'failed calling webhook "{webhook.name}": {error}')

    def _conditions_hold(
        self,
        webhook: Webhook,
        attributes: AdmissionAttributes,
        resource: Resource,
        document: Document | None,
        old: Document | None,
    ) -> bool:
        if not webhook.conditions:
            return True
        request = make_request(attributes, names_of(resource, attributes), "", None, None)
        bindings: Document = {"object": document, "oldObject": old, "request": request, "namespaceObject": {}}
        expressions = [expression for _, expression in webhook.conditions]
        try:
            return all_hold(expressions, bindings, partial(self._decide, attributes.user))
        except ExpressionError as error:
            if webhook.may_fail:
                return False
            asked: Resource = attributes.resource
            raise failures.forbidden(asked.plural, asked.group, attributes.name, str(error)) from None


def _patched(document: Document, operations: list[Document], resource: Resource | None) -> Document:
    """Return the object with the patch applied, read again as its kind. Raises: APIStatusError."""
    try:
        changed = json_patch.apply(copy_tree(document), operations)
    except PatchError as error:
        raise internal(str(error)) from None
    if not isinstance(changed, dict):
        raise internal(no_object(changed))
    return changed if resource is None else _read(resource, changed)


def _read(resource: Resource, document: Document) -> Document:
    if resource.is_custom:
        return _read_custom(resource, document)
    kind = document.pop("kind", None) or resource.kind
    version = document.pop("apiVersion", None) or resource.api_version
    if (kind, version) != (resource.kind, resource.api_version):
        if version == resource.api_version and any(
            (one.group, one.version, one.kind) == (resource.group, resource.version, kind) for one in built_in()
        ):
            internal_group = resource.group.partition(".")[0] or "core"
            raise failures.plain_internal(
                f"converting ({resource.version}.{kind}) to ({internal_group}.{resource.kind}): unknown conversion"
            )
        raise internal(f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"')
    head = {"kind": resource.kind, "apiVersion": resource.api_version}
    shape = resource.shape
    try:
        found = head | (document if shape is None else shape.read(document, "", []))
    except Misfit as misfit:
        raise internal(str(misfit)) from None
    default(resource.group, resource.kind, found)
    return found


def _read_custom(resource: Resource, document: Document) -> Document:
    kind = document.get("kind") or ""
    if not kind:
        raise internal(f"Object 'Kind' is missing in '{encode(document).decode()}'")
    if kind != resource.kind:
        name = str((document.get("metadata") or {}).get("name", ""))
        cause = StatusCause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
        raise failures.invalid(str(kind), resource.group, name, [cause])
    document["apiVersion"] = resource.api_version
    if resource.schema is not None:
        resource.schema.fit(document, "", [], is_root=True)
    return document


def _check_identity(attributes: AdmissionAttributes, document: Document) -> None:
    """Refuse what a webhook may not change, as the steps after it do upstream."""
    resource: Resource = attributes.resource
    metadata: Document = document.get("metadata") or {}
    if resource.namespaced and metadata.get("namespace", "") not in {"", attributes.namespace}:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    version = str(metadata.get("resourceVersion") or "")
    if attributes.operation == "CREATE" and version:
        raise failures.plain_internal("resourceVersion should not be set on objects to be created")
    before: Document = (attributes.old or {}).get("metadata") or {}
    if attributes.operation != "UPDATE" or has_own_kind(attributes):
        return
    if version and version != before.get("resourceVersion"):
        raise failures.conflict(resource.plural, resource.group, attributes.name)
    causes = [
        failures.invalid_value(f"metadata.{key}", metadata[key], "field is immutable")
        for key in ("name", "uid")
        if metadata.get(key) and metadata[key] != before.get(key)
    ]
    if causes:
        raise failures.invalid(resource.kind, resource.group, str(metadata.get("name", "")), [*causes, *causes])


def _restore_fields(attributes: AdmissionAttributes, document: Document) -> None:
    """Bring back the managedFields as they were before the webhooks, when these left what cannot be read."""
    metadata: Document = document.get("metadata") or {}
    entries = metadata.get("managedFields") or ()
    problem = next((text for entry in entries if (text := _entry_problem(entry))), "")
    if not problem:
        return
    before: Document = (attributes.object or {}).get("metadata") or {}
    metadata["managedFields"] = before.get("managedFields") or []
    attributes.warnings.append(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission "
        f"controller; please fix your requests: {problem}"
    )


def _entry_problem(entry: Document) -> str:
    if entry.get("operation") not in {"Apply", "Update"}:
        return "operation must be `Apply` or `Update`"
    if entry.get("fieldsType") != "FieldsV1":
        return "fieldsType must be `FieldsV1`"
    return "" if isinstance(entry.get("fieldsV1", {}), dict) else "fieldsV1 must be an object"


__all__ = ["Kinds", "WebhookAdmission"]
