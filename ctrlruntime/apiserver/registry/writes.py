"""What a write is asked and answers, what it has come to while it is under way, and what one kind may add to its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ctrlruntime.apiserver.interfaces import UserIdentity
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.strategies import Strategy
from ctrlruntime.apiserver.storage import Record, Table
from ctrlruntime.errors import StatusCause
from ctrlruntime.schema.trees import Document

Edit: TypeAlias = Callable[[Document | None], Document]
"""Makes the document to store from a tree of the present object that it may keep; it is asked again when another write came between.

It gets None where the object is not there and the write may create it (`WriteOptions.creates`)."""


@dataclass(slots=True)
class WriteOptions:
    """How a write is to be done; `warnings` collects what the answer's Warning headers say."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    """Who owns what is written, in managedFields; of a client that named none: the first part of its user agent."""
    user: UserIdentity | None = None
    is_inside: bool = False
    """By one of the server's own controllers: they may grant permissions that they do not have."""
    is_stored: bool = False
    """The edit returns what is stored, with another status: it need not be read again as a body is."""
    duplicates: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])
    order: Callable[[Document], Document] | None = None
    """Gives a document the order in which the fields of a patch's result are read; without it they are read in their own."""
    is_patch: bool = False
    is_apply: bool = False
    """The edit has set managedFields by itself."""
    clears_owners: bool = False
    """The client sent an empty list of managedFields: set by the writer as it reads the document."""
    creates: bool = False
    """An update of an object that is not there creates it, whatever its kind."""
    named_validation: str = ""
    """The field validation the client asked for, as webhooks see it among the options."""
    named_manager: bool = False
    """The client named its field manager, so webhooks see it among the options."""

    def document(self, kind: str) -> Document:
        """Return the options as a webhook sees them (`kind` is CreateOptions or UpdateOptions; a patch is shown as an update)."""
        options: Document = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.named_manager:
            options["fieldManager"] = self.field_manager
        if self.named_validation:
            options["fieldValidation"] = self.named_validation
        return options


@dataclass(slots=True)
class DeleteOptions:
    """How a delete is to be done, from the body or the query."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    user: UserIdentity | None = None
    is_collection: bool = False
    """One of a collection: webhooks see no name."""
    warnings: list[str] = field(default_factory=list[str])

    def document(self) -> Document:
        """Return the options as a webhook sees them."""
        options: Document = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.grace_period_seconds is not None:
            options["gracePeriodSeconds"] = self.grace_period_seconds
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        given = {key: value for key, value in preconditions.items() if value is not None}
        if given:
            options["preconditions"] = given
        if self.orphan_dependents is not None:
            options["orphanDependents"] = self.orphan_dependents
        if self.propagation_policy is not None:
            options["propagationPolicy"] = self.propagation_policy
        if self.dry_run:
            options["dryRun"] = ["All"]
        return options


@dataclass(slots=True)
class Written:
    """What a write answers: HTTP code and the object's record (of a dry run: one that is not stored)."""

    code: int
    record: Record
    status: Document | None = None
    """Set when the answer is a Status and not the object."""


@dataclass(frozen=True, slots=True)
class SubresourceView:
    """How a subresource with a kind of its own (Scale) shows a part of the object, and takes it back."""

    kind: tuple[str, str, str]
    """Group, version, kind."""
    show: Callable[[Document], Document]
    put: Callable[[Document, Document], None]
    """Write what is shown back into the object."""


@dataclass(slots=True)
class Pending:
    """A running write: its initial record (None for a create) and its current document."""

    resource: Resource
    strategy: Strategy
    table: Table
    options: WriteOptions
    document: Document
    given: Document | None = None
    """What was decoded: messages tell an empty list or map from none."""
    record: Record | None = None
    old: Document | None = None
    subresource: str = ""
    view: SubresourceView | None = None
    stored: Document | None = None
    """The document in the version it is stored in, where only a webhook can make that."""
    last_steps: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What admission does in the step that stores the object."""


class EscalationCheck(Protocol):
    """Who may grant what: asked about roles and bindings after mutating admission and before anything else."""

    def check(self, plural: str, document: Document, old: Document | None, author: UserIdentity) -> None:
        """Raises: Forbidden when the author would give away more than it holds, NotFound for a role that is not there."""
        ...


class Hook:
    """What one kind adds to the steps; every method may stay as it is."""

    def prepare(self, document: Document, old: Document | None) -> None:
        """Set what only the server sets, before validation."""

    def permit(self, pending: Pending) -> Iterable[StatusCause]:
        """Return what the write may not do; this is said with all else that is wrong."""
        return ()

    def validate(self, document: Document, old: Document | None) -> list[StatusCause]:
        return []

    def warnings(self, document: Document, old: Document | None) -> list[str]:
        return []

    def written(self, document: Document, old: Document | None) -> None:
        """Act on a stored object."""

    def deleting(self, document: Document) -> None:
        """Change the object as its deletion begins, e.g. add the finalizer that holds it."""

    def removed(self, document: Document) -> None:
        """Act on an object that is gone."""
