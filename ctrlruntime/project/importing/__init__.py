"""Classes from CustomResourceDefinitions: the way back of `ctrlruntime.generate`."""

from __future__ import annotations

from ctrlruntime.project.importing.definitions import check, chosen, importable
from ctrlruntime.project.importing.meaning import differences
from ctrlruntime.project.importing.source import source_of

__all__ = ["check", "chosen", "differences", "importable", "source_of"]
