"""One ClusterServiceVersion from the base, which the user edits, the objects of a project, and its classes."""

from ctrlruntime.olm.csv.assembly import Assembled, Sources, assemble

__all__ = ["Assembled", "Sources", "assemble"]
