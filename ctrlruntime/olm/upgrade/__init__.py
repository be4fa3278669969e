"""Upgrades by OLM from one release to the next: the changes, and the effects of each change."""

from ctrlruntime.olm.upgrade.change import RULES, Change, Code
from ctrlruntime.olm.upgrade.comparison import Comparison, compare, stored_versions
from ctrlruntime.olm.upgrade.objects import given_objects

__all__ = ["RULES", "Change", "Code", "Comparison", "compare", "given_objects", "stored_versions"]
