"""One ClusterServiceVersion out of a base that a person wrote, the objects of a project, and its classes."""

from ctrlruntime.olm.csv.assembly import Assembled, Sources, assemble

__all__ = ["Assembled", "Sources", "assemble"]
