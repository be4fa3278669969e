"""All checks of `ctrl bundle validate`: those that always run, and the optional ones.

| module | content |
|---|---|
| `checks` | the tables of all validators and checks, with their codes |
| `subject` | the input of validators, and how they make findings |
| `selection` | the selection of optional validators, and the run |
| `files` | folders, files and annotations |
| `dependencies` | the file of dependencies |
| `manifests` | every object: its kind, its metadata, the rules of kube-apiserver; CRDs, and whether they are owned |
| `content` | size, accounts, images, release |
| `fields`, `csv`, `examples` | the ClusterServiceVersion |
| `installation` | the objects that OLM creates from it |
| `hub` | optional: fields, icon and annotations that catalogs show |
| `removed` | optional: APIs that Kubernetes no longer serves |
| `practices` | optional: good practices, and objects that disturb a cluster |
| `multiarch`, `platforms` | optional: labels, images and placement by platform |
| `rules` | RBAC rules with their places |
"""

from ctrlruntime.olm.validation.checks import ALWAYS, CHECKS, OPTIONAL, VALIDATORS, Validator
from ctrlruntime.olm.validation.selection import RUNS, VALUES, select, validate
from ctrlruntime.olm.validation.subject import Subject

__all__ = ["ALWAYS", "CHECKS", "OPTIONAL", "RUNS", "VALIDATORS", "VALUES", "Subject", "Validator", "select", "validate"]
