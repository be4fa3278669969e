"""The twins of tests/peers/crdgen/cases/plain/v1/kinds.go."""

from __future__ import annotations

from typing import Annotated

from cases_validation import Plain
from pydantic import Field

import ctrlruntime as ctrl
from ctrlruntime.markers import Int32, ListMap, printcolumn


class Counts(ctrl.Model):
    """Counts are how many there are."""

    replicas: Int32 = 0
    selector: str = Field("", description="Selector finds them.")
    phase: str = ""
    ready: bool = False


class ScopeCase(Plain, scope="Cluster"):
    """ScopeCase belongs to the cluster."""


class NamesCase(Plain, plural="namelings", singular="nameling", short_names=["nl", "nls"], categories=["all", "names"]):
    """NamesCase has names of its own."""


class StatusCase(Plain):
    """StatusCase has a status."""

    spec: Counts = Field(default_factory=Counts)
    status: Counts = Field(default_factory=Counts)


class PlainStatusCase(Plain, status_subresource=False):
    """PlainStatusCase has a status that is a field like others."""

    status: Counts = Field(default_factory=Counts)


class ScaleCase(Plain, scale=ctrl.crd.ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")):
    """ScaleCase can be scaled."""

    spec: Counts
    status: Counts = Field(default_factory=Counts)


class ScaleOnlyCase(Plain, scale=ctrl.crd.ScalePaths(".spec.replicas", ".status.replicas"), status_subresource=False):
    """ScaleOnlyCase can be scaled and has no selector."""

    spec: Counts
    status: Counts = Field(default_factory=Counts)


class Mark(ctrl.Model):
    """Mark is a condition."""

    type: str
    status: str = ""


class ColumnsStatus(ctrl.Model):
    """ColumnsStatus has what columns show."""

    phase: str = ""
    ready: bool = False
    conditions: Annotated[list[Mark], ListMap("type")] = Field(default_factory=list)


@printcolumn("Phase", ".status.phase")
@printcolumn("DESIRED", ".spec.replicas", description="How many: wanted", format="int32")
@printcolumn("Ready", ".status.ready", priority=1)
@printcolumn("True", '.status.conditions[?(@.type=="Ready")].status')
@printcolumn("Label", r".metadata.labels['app\.kubernetes\.io/name']")
@printcolumn("AGE", ".metadata.creationTimestamp")
class ColumnsCase(Plain):
    """ColumnsCase has columns of every sort."""

    spec: Counts = Field(default_factory=Counts)
    status: ColumnsStatus = Field(default_factory=ColumnsStatus)


@printcolumn("N", ".spec.replicas", type="integer")
class PlainColumnsCase(Plain):
    """PlainColumnsCase has a column and no status."""

    spec: Counts = Field(default_factory=Counts)


class SelectableCase(Plain, selectable_fields=[".spec.phase", ".spec.replicas"]):
    """SelectableCase can be selected by fields."""

    spec: Counts = Field(default_factory=Counts)


class DeprecatedCase(Plain, deprecated="plain.example.com/v1 DeprecatedCase is old; use another"):
    """DeprecatedCase is old."""


class DeprecatedPlainlyCase(Plain, deprecated=True):
    """DeprecatedPlainlyCase is old, and that is all."""


class MetadataCase(
    Plain,
    labels={"tier": "web", "app.kubernetes.io/name": "x"},
    annotations={"example.com/note": "a: b", "example.com/n": "1"},
):
    """MetadataCase has labels and annotations."""
