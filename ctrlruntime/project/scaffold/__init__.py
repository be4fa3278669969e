"""The files of a project that are written once and then belong to its people: their texts, and adding them to a folder."""

from ctrlruntime.project.scaffold.adding import Added, add, begin
from ctrlruntime.project.scaffold.files import scaffold_files
from ctrlruntime.project.scaffold.imported import from_file, from_module
from ctrlruntime.project.scaffold.lookup import Addition, is_builtin
from ctrlruntime.project.scaffold.removing import Deletion, Removal, planned_deletion, without_api, without_webhook
from ctrlruntime.project.scaffold.resources import LICENSES, Container, new_project, with_api
from ctrlruntime.project.scaffold.takeover import Takeover, take_over
from ctrlruntime.project.scaffold.webhooks import with_webhook

__all__ = [
    "LICENSES",
    "Added",
    "Addition",
    "Container",
    "Deletion",
    "Removal",
    "Takeover",
    "add",
    "begin",
    "from_file",
    "from_module",
    "is_builtin",
    "new_project",
    "planned_deletion",
    "scaffold_files",
    "take_over",
    "with_api",
    "with_webhook",
    "without_api",
    "without_webhook",
]
