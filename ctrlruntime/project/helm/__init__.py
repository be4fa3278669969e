"""A Helm chart of a project, made of the same objects as its kustomize tree."""

from ctrlruntime.project.helm.chart import chart_files
from ctrlruntime.project.helm.ownership import CHECKSUMS, Plan, planned
from ctrlruntime.project.helm.texts import CHART

__all__ = ["CHART", "CHECKSUMS", "Plan", "chart_files", "planned"]
