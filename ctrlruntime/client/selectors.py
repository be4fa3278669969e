"""Parses the selectors of callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ctrlruntime.selector import (
    FieldSelector,
    LabelSelector,
    from_fields,
    from_labels,
    parse_fields,
    parse_labels,
)

if TYPE_CHECKING:
    from ctrlruntime.client.interfaces import Fields, Labels


def labels_of(labels: Labels) -> LabelSelector:
    """Return the parsed selector. Raises: ValueError with the message of the server."""
    if isinstance(labels, LabelSelector):
        return labels
    if isinstance(labels, Mapping):
        return from_labels(labels)
    return parse_labels(labels)


def fields_of(fields: Fields) -> FieldSelector:
    """Return the parsed selector. Raises: ValueError with the message of the server."""
    if isinstance(fields, FieldSelector):
        return fields
    if isinstance(fields, Mapping):
        return from_fields(fields)
    return parse_fields(fields)


def fields_text(fields: Fields | None) -> str:
    return "" if fields is None else str(fields_of(fields))
