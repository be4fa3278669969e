"""A Helm chart of a project, made of the same objects as its kustomize tree."""

from ctrlruntime.project.helm.chart import chart_files, refresh

__all__ = ["chart_files", "refresh"]
