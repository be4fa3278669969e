"""What changes between two states of a CustomResourceDefinition, and whom each change breaks."""

from ctrlruntime.project.compatibility.definition import compare
from ctrlruntime.project.compatibility.finding import RULES, Code, Described, Finding, Level, Refuses, Rule
from ctrlruntime.project.compatibility.pairs import Comparison, compare_all

__all__ = [
    "RULES",
    "Code",
    "Comparison",
    "Described",
    "Finding",
    "Level",
    "Refuses",
    "Rule",
    "compare",
    "compare_all",
]
