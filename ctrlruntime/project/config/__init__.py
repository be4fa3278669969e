"""The kustomize tree `config/` of a project: what follows from its settings and classes, and what is written once and then a person's.

Names are those of kubebuilder's tree, so what is known about one holds for the other. No text has to be uncommented: a switch of the
settings adds or removes whole files, and patches find what they change by name.
"""

from ctrlruntime.project.config.files import derived_files, first_files
from ctrlruntime.project.config.layout import DERIVED_MARK, OWN_NAMESPACE, SERVICE
from ctrlruntime.project.config.refresh import CONFIG, made_by, refresh

__all__ = [
    "CONFIG",
    "DERIVED_MARK",
    "OWN_NAMESPACE",
    "SERVICE",
    "derived_files",
    "first_files",
    "made_by",
    "refresh",
]
