"""What others add to the steps of a write: hooks of single kinds, the webhooks, who owns which field, who may grant what.

The registry makes one set of them and hands it to the writer's parts; the server fills it as it starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ctrlruntime.apiserver.interfaces import Admission, Change, Decide, FieldTracker, Operation, allow_all
from ctrlruntime.apiserver.options import ACTING_PLUGINS
from ctrlruntime.apiserver.registry.preparation import take_omitted_lists
from ctrlruntime.apiserver.registry.resources import Resource
from ctrlruntime.apiserver.registry.services import ServiceAddresses
from ctrlruntime.apiserver.registry.writes import EscalationCheck, Hook, Pending, WriteOptions
from ctrlruntime.schema.trees import Document

_ITSELF: Final = "kube-apiserver"
"""Who owns what the server writes by itself."""
_RBAC: Final = "rbac.authorization.k8s.io"
_NO_HOOK: Final = Hook()


@dataclass(slots=True)
class WriteExtensions:
    """The parts of a write that are set from outside; without them a write is defaulted, validated and stored."""

    addresses: ServiceAddresses
    hooks: dict[tuple[str, str], Hook] = field(default_factory=dict[tuple[str, str], Hook])
    """By group and plural."""
    on_change: list[Callable[[str, str, Change], None]] = field(
        default_factory=list[Callable[[str, str, Change], None]]
    )
    """Called for every change, with group and plural."""
    admission: Admission | None = None
    decide: Decide = allow_all
    """The authorizer, for admission plugins that check permissions."""
    escalation_check: EscalationCheck | None = None
    fields: FieldTracker | None = None
    plugins: frozenset[str] = ACTING_PLUGINS
    """The admission plugins that act. The writer and `assignment` do those that `admission` does not have."""

    def hook_of(self, resource: Resource) -> Hook:
        """Return what a kind adds to the steps; for most it does nothing."""
        return self.hooks.get(resource.stored_as, _NO_HOOK)

    def admission_of(self, resource: Resource, subresource: str, operation: Operation) -> Admission | None:
        """Return the webhooks to call for such a write, or None without any."""
        admission = self.admission
        if admission is None or not admission.is_wanted(resource.group, resource.plural, subresource, operation):
            return None
        return admission

    def track(
        self, resource: Resource, live: Document | None, document: Document, options: WriteOptions, subresource: str
    ) -> None:
        """Note in the document who owns what it sets against the live object; an apply has done so by itself."""
        if options.is_apply:
            return
        if self.fields is None:
            document["metadata"].pop("managedFields", None)
            return
        omitted = take_omitted_lists(resource, document)  # nothing is known of them where owners are noted
        self.fields.track(
            resource,
            live,
            document,
            manager=options.field_manager or _ITSELF,
            subresource=subresource,
            is_cleared=options.clears_owners,
        )
        for node, name in omitted:
            node[name] = []

    def keep_times(self, document: Document, old: Document) -> None:
        """Take the old times of owners where nothing else differs."""
        if self.fields is not None:
            self.fields.keep_times(document, old)

    def confirm(self, pending: Pending) -> None:
        """Check whether the author may grant what a role or a binding grants. Raises: Forbidden."""
        resource, options = pending.resource, pending.options
        if self.escalation_check is None or options.user is None or options.is_inside or resource.group != _RBAC:
            return
        self.escalation_check.check(resource.plural, pending.document, pending.old, options.user)
