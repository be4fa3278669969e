"""Server-side apply: who owns which field of an object (`metadata.managedFields`), and configurations applied to it."""

from ctrlruntime.apiserver.apply.configuration import read_configuration
from ctrlruntime.apiserver.apply.fieldsets import FieldSet
from ctrlruntime.apiserver.apply.manager import FieldManager
from ctrlruntime.apiserver.apply.tracker import ManagedFieldsTracker
from ctrlruntime.apiserver.apply.types import Compiler, Type, Versions

__all__ = ["Compiler", "FieldManager", "FieldSet", "ManagedFieldsTracker", "Type", "Versions", "read_configuration"]
