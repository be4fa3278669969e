"""Kustomizations rendered in Python: the subset that operator projects use, with the results of `kubectl kustomize`."""

from ctrlruntime.generate.documents import read_documents, written
from ctrlruntime.project.kustomize.comparison import differences
from ctrlruntime.project.kustomize.rendering import render

__all__ = ["differences", "read_documents", "render", "written"]
