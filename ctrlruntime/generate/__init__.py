"""Manifests from classes, without a server: CRDs, and their YAML as controller-gen writes it."""

from __future__ import annotations

from ctrlruntime.generate.crd import crds
from ctrlruntime.generate.options import ConversionWebhook, Document, GenerateWarning, Options
from ctrlruntime.generate.schema import SchemaWalker
from ctrlruntime.generate.text import dump, dump_all, file_name

__all__ = [
    "ConversionWebhook",
    "Document",
    "GenerateWarning",
    "Options",
    "SchemaWalker",
    "crds",
    "dump",
    "dump_all",
    "file_name",
]
