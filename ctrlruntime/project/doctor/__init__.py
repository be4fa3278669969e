"""What is wrong, here and in the cluster, and what to do about it: a list of checks with an answer each."""

from ctrlruntime.project.doctor.check import Check, Subject
from ctrlruntime.project.doctor.examination import cluster_checks, rendered
from ctrlruntime.project.doctor.local import local_checks

__all__ = ["Check", "Subject", "cluster_checks", "local_checks", "rendered"]
