"""Patches as kube-apiserver applies them: JSON Patch, strategic merge. (The merge patch is a plain function in `ctrlruntime.patch`.)"""

from ctrlruntime.apiserver.patch import json_patch
from ctrlruntime.apiserver.patch.strategic import PatchSchema, restored, strategic_merge

__all__ = ["PatchSchema", "json_patch", "restored", "strategic_merge"]
