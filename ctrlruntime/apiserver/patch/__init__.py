"""Patches that need to know a kind: strategic merge. (JSON patch and merge patch are plain functions in `ctrlruntime.patch`.)"""

from ctrlruntime.apiserver.patch.strategic import PatchSchema, strategic_merge

__all__ = ["PatchSchema", "strategic_merge"]
