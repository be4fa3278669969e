"""Conflicts of an apply: fields of other managers, and their error messages."""

from __future__ import annotations

from collections.abc import Mapping

from ctrlruntime.apiserver.apply.fieldsets import FieldSet, paths
from ctrlruntime.apiserver.apply.ownership import Owner
from ctrlruntime.errors import Conflict, StatusCause


class Conflicts(Exception):  # noqa: N818 - several of them, and no failure yet: kubectl may take fields over
    """Fields that an apply would change and that others own."""

    def __init__(self, fields: Mapping[Owner, FieldSet]) -> None:
        super().__init__("others own fields of the configuration")
        self.fields = fields


def conflict(fields: Mapping[Owner, FieldSet]) -> Conflict:
    """Return the 409 that lists the fields by their owners."""
    causes: list[StatusCause] = []
    lines: list[str] = []
    for owner in sorted(fields, key=Owner.sort_key):
        lines.append(f"conflicts with {owner.shown()}:")
        for path in paths(fields[owner]):
            causes.append(StatusCause("FieldManagerConflict", f"conflict with {owner.shown()}", path))
            lines.append(f"- {path}")
    if len(causes) == 1:
        return Conflict(f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}", causes=causes)
    return Conflict(f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines), causes=causes)
