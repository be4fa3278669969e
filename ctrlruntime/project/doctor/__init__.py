"""Checks of the project and of its deployment in the cluster, each with a result and advice."""

from ctrlruntime.project.doctor.check import Check, Subject
from ctrlruntime.project.doctor.examination import cluster_checks, rendered
from ctrlruntime.project.doctor.local import local_checks

__all__ = ["Check", "Subject", "cluster_checks", "local_checks", "rendered"]
