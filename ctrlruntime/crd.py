"""Markers for the CRD of a kind: validation, list types, printer columns, the scale subresource and OLM descriptors.

Put a marker into `Annotated[…]` of a field, or above a class as a decorator:

    @crd.printcolumn("Replicas", ".spec.replicas")
    class Website(ctrl.Object, group="web.example.com", version="v1"):
        spec: WebsiteSpec
"""

from __future__ import annotations

from ctrlruntime.api.kind import OLM, OLMAction, ScalePaths
from ctrlruntime.markers import (
    CEL,
    Default,
    EmbeddedResource,
    ExternalDocs,
    Flag,
    Format,
    Immutable,
    JSONValue,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    MapGranular,
    MaxProperties,
    MinProperties,
    NoDescriptions,
    Nullable,
    OLMDescriptor,
    PreserveUnknownFields,
    RawExtension,
    Required,
    Schemaless,
    SchemaType,
    Title,
    printcolumn,
)

__all__ = [
    "CEL",
    "OLM",
    "Default",
    "EmbeddedResource",
    "ExternalDocs",
    "Flag",
    "Format",
    "Immutable",
    "JSONValue",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "MapAtomic",
    "MapGranular",
    "MaxProperties",
    "MinProperties",
    "NoDescriptions",
    "Nullable",
    "OLMAction",
    "OLMDescriptor",
    "PreserveUnknownFields",
    "RawExtension",
    "Required",
    "ScalePaths",
    "SchemaType",
    "Schemaless",
    "Title",
    "printcolumn",
]
