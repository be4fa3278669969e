"""`WebhookAdmission`: calls the webhooks a write matches; mutating ones one after the other, validating ones at once.

The writer hands in `AdmissionAttributes` and gets the changed object or the failure of a denial. Below are the registered webhooks
(`webhooks`), matching, reviews and the client that calls.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from random import Random
from typing import Literal

import anyio

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.admission.changes import Shown, shown_as
from ctrlruntime.apiserver.admission.matching import Kinds, Matcher, names_of
from ctrlruntime.apiserver.admission.reviews import (
    Answer,
    ReviewError,
    encode_review,
    internal,
    make_request,
    read_answer,
    read_patch,
)
from ctrlruntime.apiserver.admission.webhooks import Webhook, Webhooks
from ctrlruntime.apiserver.interfaces import AdmissionAttributes, Decide, Operation, Turns, allow_all
from ctrlruntime.apiserver.registry.expressions import ExpressionError, all_hold
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.webhook_client import WebhookCallError, WebhookClient
from ctrlruntime.errors import APIStatusError, PatchError
from ctrlruntime.log import get_logger
from ctrlruntime.schema.trees import Document

_log = get_logger("apiserver")


class WebhookAdmission:
    """Admission by webhooks; implements `Admission`. `follow` before the first request, the client is closed by its owner."""

    def __init__(
        self,
        kinds: Kinds,
        client: WebhookClient,
        *,
        mutates: bool = True,
        validates: bool = True,
        decide: Decide = allow_all,
        rng: Random | None = None,
    ) -> None:
        """`mutates` and `validates` say which of the two kinds of configuration have an effect.

        `decide` responds to conditions that check permissions.
        """
        self._kinds = kinds
        self._client = client
        self._decide = decide
        self._rng = rng or Random()  # noqa: S311 - ids of reviews, not secrets
        self._webhooks = Webhooks(kinds.served_together, mutates=mutates, validates=validates)
        self._matcher = Matcher(kinds)

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
        rounds = attributes.reinvocation
        shown, turns = Shown(attributes), rounds.begin(self, attributes.object)
        for webhook in self._webhooks.mutating:
            if not rounds.is_second or webhook in turns.due:
                await self._mutate_in_turn(webhook, attributes, shown, turns)
        found = await shown.finished()
        turns.end(attributes.object if found is None else found)
        return found

    async def _mutate_in_turn(
        self, webhook: Webhook, attributes: AdmissionAttributes, shown: Shown, turns: Turns
    ) -> None:
        seen = replace(attributes, object=shown.object) if shown.is_changed else attributes
        resource = self._matcher.match(webhook.match, seen)
        if resource is None:
            return
        await shown.show_as(resource)
        old = await shown_as(seen, seen.old, resource)
        if not self._conditions_hold(webhook, seen, resource, shown.object, old):
            return
        if await self._mutate_by(webhook, resource, seen, shown, old):
            turns.changed()
            attributes.reinvocation.is_needed = True
        if webhook.is_called_again:
            turns.called.add(webhook)

    async def _mutate_by(
        self,
        webhook: Webhook,
        resource: Resource,
        attributes: AdmissionAttributes,
        shown: Shown,
        old: Document | None,
    ) -> bool:
        """Call one webhook and apply its patch; tell whether the object changed."""
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
        try:
            return shown.patch(operations)
        except PatchError as error:
            raise internal(str(error)) from None

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
        document = await shown_as(attributes, attributes.object, resource)
        old = await shown_as(attributes, attributes.old, resource)
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


__all__ = ["WebhookAdmission"]
