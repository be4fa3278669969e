"""A user's operator as a project: what its Python package declares, and the files that follow from it."""

from ctrlruntime.project.manifests import Choice, Manifests, crds_for_tests, manifests
from ctrlruntime.project.package import Package, load

__all__ = ["Choice", "Manifests", "Package", "crds_for_tests", "load", "manifests"]
