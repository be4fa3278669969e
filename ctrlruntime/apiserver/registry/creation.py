"""How an object comes to be: from a client's body to the first record, in three steps between which admission is asked.

`begin` reads the body, `complete` sets what only the server sets and validates, `store` swaps the record in. None of them awaits.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from random import Random
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.encoding import timestamp
from ctrlruntime.apiserver.interfaces import API, NAMESPACES, PODS
from ctrlruntime.apiserver.registry import signing_requests
from ctrlruntime.apiserver.registry.assignment import assign, confirm_account, confirm_overhead
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.object_validation import validate_object
from ctrlruntime.apiserver.registry.pod_annotations import adopt_app_armor, merge_label_keys
from ctrlruntime.apiserver.registry.preparation import forget_empty_lists, prepare_create, restore_defaults
from ctrlruntime.apiserver.registry.reading import read, set_namespace
from ctrlruntime.apiserver.registry.records import Records
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.services import SERVICES
from ctrlruntime.apiserver.registry.strategies import strategy_of
from ctrlruntime.apiserver.registry.writes import Pending, WriteOptions, Written
from ctrlruntime.apiserver.storage import Store, Table
from ctrlruntime.schema.metadata import generated_name
from ctrlruntime.schema.trees import Document, settle_numbers

_LIMIT_RANGES: Final = ("", "limitranges")
_JOBS: Final = ("batch", "jobs")
_ALLOWED_ANYWHERE: Final = frozenset({"localsubjectaccessreviews"})
"""What tells whether there is such a namespace to those who may not know."""


class Creation:
    """The steps of a create."""

    def __init__(
        self,
        store: Store,
        api: API,
        extensions: WriteExtensions,
        records: Records,
        *,
        now: Callable[[], float],
        rng: Random,
    ) -> None:
        self._store = store
        self._api = api
        self._extensions = extensions
        self._records = records
        self._now = now
        self._rng = rng

    def begin(self, resource: Resource, namespace: str, document: Document, options: WriteOptions) -> Pending:
        """Return the write that a body asks for; the document is taken over. Raises: APIStatusError as a client would see it."""
        if resource.is_terminating:
            name = str((document.get("metadata") or {}).get("name", ""))
            why = "create not allowed while custom resource definition is terminating"
            raise failures.forbidden(resource.plural, resource.group, name, why)
        given, document = document, read(resource, document, options)
        metadata: Document = document["metadata"]
        set_namespace(resource, metadata, namespace)
        for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(key, None)
        self._extensions.track(resource, None, document, options, "")
        self.check_namespace(resource, metadata["namespace"] if resource.namespaced else "", metadata.get("name", ""))
        strategy = strategy_of(*resource.stored_as, is_custom=resource.is_custom)
        if not resource.is_custom and resource.stored_as == PODS:
            # What the built-in admission plugins set (priority, tolerations) stands when the webhooks look.
            if "ServiceAccount" in self._extensions.plugins:
                confirm_account(document, self._api)
            assign(resource.group, resource.kind, document, self._api, self._extensions.plugins)
        return Pending(resource, strategy, self._store.table(*resource.stored_as), options, document, given)

    def complete(self, pending: Pending) -> None:
        """Set what only the server sets, and validate. Raises: APIStatusError as a client would see it."""
        resource, document = pending.resource, pending.document
        self._extensions.confirm(pending)
        metadata: Document = document["metadata"]
        if not metadata.get("name"):  # mutating webhooks do not see the name yet
            if metadata.get("generateName"):
                metadata["name"] = self._free_name(pending.table, metadata)
            elif resource.stored_as == _LIMIT_RANGES:  # needs no name (pkg/registry/core/limitrange/strategy.go)
                metadata["name"] = self._uuid()
        prepare_create(resource, pending.strategy, document, uid=self._uuid(), moment=timestamp(self._now()))
        if resource.stored_as == signing_requests.REQUESTS and pending.options.user is not None:
            signing_requests.stamp(document, pending.options.user)
        is_pod = not resource.is_custom and resource.stored_as == PODS
        if is_pod:
            merge_label_keys(document)
            pending.options.warnings.extend(adopt_app_armor(document))
        restore_defaults(resource, document)
        if not resource.is_custom and not is_pod:
            assign(resource.group, resource.kind, document, self._api, self._extensions.plugins)
        if resource.stored_as == SERVICES:
            addresses, is_dry = self._extensions.addresses, pending.options.dry_run
            addresses.begin(document, pending.table.records, pending.last_steps, dry_run=is_dry)
        hook = self._extensions.hook_of(resource)
        hook.prepare(document, None)
        validate_object(pending, hook)
        if is_pod and "RuntimeClass" in self._extensions.plugins:
            confirm_overhead(document, self._api)

    def store(self, pending: Pending) -> Written:
        """Swap the record in, from the last look at the table on. Raises: AlreadyExists, and what `begin` raises of namespaces."""
        resource, document, table = pending.resource, pending.document, pending.table
        metadata: Document = document["metadata"]
        is_dry = pending.options.dry_run
        self.check_namespace(resource, metadata["namespace"] if resource.namespaced else "", metadata.get("name", ""))
        key = (metadata.get("namespace", ""), metadata["name"])
        version = str(metadata.get("resourceVersion", ""))
        if version.isdigit() and int(version) and not is_dry:  # what is not a number is passed over
            raise failures.plain_internal("resourceVersion should not be set on objects to be created")
        present = table.records.get(key)
        if present is not None:
            deleting = b'"deletionTimestamp":' in present.body
            raise failures.already_exists(
                resource.plural, resource.group, key[1], deleting=deleting, generated="generateName" in metadata
            )
        if resource.is_custom:
            settle_numbers(document)
        else:
            forget_empty_lists(resource, document)
        if resource.stored_as == _JOBS:  # as it is read again, it gets the labels that its template was given
            restore_defaults(resource, document)
        for step in pending.last_steps:
            step()
        record = self._records.write(
            table, resource, "ADDED", document, None, None, dry_run=is_dry, stored=pending.stored
        )
        if not is_dry:
            self._extensions.hook_of(resource).written(document, None)
        return Written(201, record)

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def _free_name(self, table: Table, metadata: Document) -> str:
        name = ""
        for _ in range(8):
            name = generated_name(metadata["generateName"], self._rng)
            if (metadata.get("namespace", ""), name) not in table.records:
                break
        return name

    def check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        """Refuse what is created in a namespace that is not there or ends (the plugin NamespaceLifecycle). Raises: NotFound, Forbidden."""
        if not resource.namespaced or resource.plural in _ALLOWED_ANYWHERE:
            return
        if "NamespaceLifecycle" not in self._extensions.plugins:
            return
        record = self._store.table(*NAMESPACES).records.get(("", namespace))
        if record is None:
            raise failures.not_found("namespaces", "", namespace)
        if b'"deletionTimestamp":' in record.body:
            raise failures.namespace_terminating(resource.plural, resource.group, name, namespace)
