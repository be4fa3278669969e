"""The files of a bundle, created from a project or from the objects of another tool, and the base of the ClusterServiceVersion."""

from ctrlruntime.olm.making.base import Answers, BaseFile, base_of, current_answers
from ctrlruntime.olm.making.identity import Given
from ctrlruntime.olm.making.pinning import read_digests
from ctrlruntime.olm.making.plan import Plan, Request, planned
from ctrlruntime.olm.making.presentation import unsaid
from ctrlruntime.olm.making.registry import Registries
from ctrlruntime.olm.making.sources import Material, of_folder, of_project, of_text, read_base, with_classes

__all__ = [
    "Answers",
    "BaseFile",
    "Given",
    "Material",
    "Plan",
    "Registries",
    "Request",
    "base_of",
    "current_answers",
    "of_folder",
    "of_project",
    "of_text",
    "planned",
    "read_base",
    "read_digests",
    "unsaid",
    "with_classes",
]
