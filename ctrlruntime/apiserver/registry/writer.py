"""Every write: create, update, delete, in the order of steps that kube-apiserver takes.

A write reads the present record, makes the new object (edit, who owns which field, mutating admission, what only the server sets,
validation, validating admission) and replaces one record in the table. Only admission and conversion await, and only with webhooks
for them; when another write came in between, the steps are taken again on its result. From the last look at the table to the swap
nothing awaits, so a write is atomic on the loop. The steps themselves are in `creation`, `update` and `deletion`; what others add to
them is in `extensions`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from ctrlruntime.apiserver import failures
from ctrlruntime.apiserver.interfaces import API, Operation
from ctrlruntime.apiserver.registry import admission
from ctrlruntime.apiserver.registry.creation import Creation
from ctrlruntime.apiserver.registry.deletion import Deletion
from ctrlruntime.apiserver.registry.extensions import WriteExtensions
from ctrlruntime.apiserver.registry.records import Records, convert
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.update import Update, document_to_create
from ctrlruntime.apiserver.registry.writes import DeleteOptions, Edit, SubresourceView, WriteOptions, Written
from ctrlruntime.apiserver.storage import Store
from ctrlruntime.schema.trees import Document, is_same

_TRIES: Final = 10
"""How often a write starts again because another one came between; kube-apiserver gives up after five of a patch."""


def _accept(_: Document) -> None:
    """Check nothing."""


class Writer:
    """The only writer of the store."""

    def __init__(
        self, store: Store, api: API, extensions: WriteExtensions, *, now: Callable[[], float], rng: Random
    ) -> None:
        records = Records(store, extensions)
        self._store = store
        self._extensions = extensions
        self._records = records
        self._creation = Creation(store, api, extensions, records, now=now, rng=rng)
        self._update = Update(api, extensions, records, now=now)
        self._deletion = Deletion(extensions, records, now=now)

    # Create

    async def create(self, resource: Resource, namespace: str, document: Document, options: WriteOptions) -> Written:
        """Store a new object; the document is taken over. Raises: APIStatusError as a client would see it."""
        pending = self._creation.begin(resource, namespace, document, options)
        asked = self._extensions.admission_of(resource, "", "CREATE")
        if asked is not None:
            await admission.mutate(asked, pending)
        self._creation.complete(pending)
        if asked is not None:
            await admission.validate(asked, pending)
        if resource.conversion is not None:
            await convert(pending)
        return self._creation.store(pending)

    def create_directly(self, resource: Resource, namespace: str, document: Document, options: WriteOptions) -> Written:
        """Create without asking admission: for the server's own objects."""
        pending = self._creation.begin(resource, namespace, document, options)
        self._creation.complete(pending)
        return self._creation.store(pending)

    # Update

    async def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        edit: Edit,
        options: WriteOptions,
        subresource: str = "",
        view: SubresourceView | None = None,
    ) -> Written:
        """Store a new state of an object (or of the part a subresource owns). Raises: APIStatusError as a client would see it."""
        table = self._store.table(*resource.stored_as)
        warned = len(options.warnings)
        for _ in range(_TRIES):
            del options.warnings[warned:]
            record = table.records.get((namespace, name))
            if record is None:
                document = document_to_create(resource, namespace, name, edit, options, subresource)
                return await self.create(resource, namespace, document, options)
            if resource.conversion is not None:
                await resource.prepare((record,))
            pending = self._update.begin(resource, table, record, edit, options, subresource, view)
            asked = self._extensions.admission_of(resource, subresource, "UPDATE")
            if asked is not None:
                await admission.mutate(asked, pending)
            self._update.complete(pending)
            if asked is not None:
                await admission.validate(asked, pending)
            if resource.conversion is not None:
                await convert(pending)
            if table.records.get((namespace, name)) is record:
                return self._update.store(pending)
        raise failures.conflict(resource.plural, resource.group, name)

    def update_directly(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        edit: Edit,
        options: WriteOptions,
        subresource: str = "",
    ) -> Written:
        """Update without asking admission: for what the server itself does to objects."""
        table = self._store.table(*resource.stored_as)
        record = table.records.get((namespace, name))
        if record is None:
            raise failures.not_found(resource.plural, resource.group, name)
        pending = self._update.begin(resource, table, record, edit, options, subresource, None)
        self._update.complete(pending)
        return self._update.store(pending)

    def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        edit: Callable[[Document], Document],
        *,
        dry_run: bool = False,
    ) -> Document:
        """Change an object below all rules of its kind, as upstream's storage does (GuaranteedUpdate); return it.

        No field comes to be owned and nothing is validated. Raises: NotFound, what the edit raises.
        """
        table = self._store.table(*resource.stored_as)
        record = table.records.get((namespace, name))
        if record is None:
            raise failures.not_found(resource.plural, resource.group, name)
        old, document = resource.tree(record), edit(resource.tree(record))
        if is_same(document, old):
            return document
        written = self._records.write(table, resource, "MODIFIED", document, record, old, dry_run=dry_run)
        if not dry_run:
            self._extensions.hook_of(resource).written(document, old)
        return resource.tree(written)

    # Delete

    async def delete(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Written:
        """Delete an object, or mark it when finalizers or a grace period hold it. Raises: APIStatusError as a client would see it."""
        table = self._store.table(*resource.stored_as)
        warned = len(options.warnings)
        for _ in range(_TRIES):
            del options.warnings[warned:]
            record = self._deletion.begin(table, resource, namespace, name, options)
            if resource.conversion is not None:
                await resource.prepare((record,), is_fresh=True)
            asked = self._extensions.admission_of(resource, "", "DELETE")
            if asked is not None:
                await admission.review_delete(asked, resource, record, options)
            if table.records.get((namespace, name)) is record:
                return self._deletion.store(table, resource, record, options)
        raise failures.conflict(resource.plural, resource.group, name)

    def delete_directly(self, resource: Resource, namespace: str, name: str, options: DeleteOptions) -> Written:
        """Delete without asking admission: for what the server itself does to objects."""
        table = self._store.table(*resource.stored_as)
        record = self._deletion.begin(table, resource, namespace, name, options)
        return self._deletion.store(table, resource, record, options)

    # What is not stored

    async def admit(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        document: Document,
        options: WriteOptions,
        *,
        subresource: str = "",
        operation: Operation = "CREATE",
        check: Callable[[Document], None] = _accept,
    ) -> Document:
        """Ask admission about a body that is acted on and not stored (Binding, Eviction, reviews …); return it as the webhooks left it.

        `check` looks at it, and completes it, between mutating and validating admission. Raises: APIStatusError of a denial.
        """
        if operation == "CREATE":
            self._creation.check_namespace(resource, namespace, name)
        asked = self._extensions.admission_of(resource, subresource, operation)
        if asked is None:
            check(document)
            return document
        return await admission.review_body(
            asked, resource, namespace, name, document, options, check, subresource=subresource, operation=operation
        )
