"""File-based catalogs: what OLM installs from, as documents of the schemas olm.package, olm.channel and olm.bundle."""

from ctrlruntime.olm.catalog.reading import Blob, Catalog, blobs_in, read_catalog
from ctrlruntime.olm.catalog.rendering import render
from ctrlruntime.olm.catalog.rules import CHECKS
from ctrlruntime.olm.catalog.validation import validate

__all__ = ["CHECKS", "Blob", "Catalog", "blobs_in", "read_catalog", "render", "validate"]
