"""Every check of `ctrl bundle validate`: those that always run, and those that are asked for.

| module | looks at |
|---|---|
| `layout` | folders and files |
| `annotations`, `dependencies` | the files of `metadata` |
| `manifests` | every object: its kind, its metadata, and what kube-apiserver would say |
| `definitions` | definitions, and that they are those that are owned |
| `content` | size, accounts, images, release |
| `fields`, `csv`, `examples` | the ClusterServiceVersion |
| `installation`, `webhooks` | what OLM makes out of it |
| `optional/` | what catalogs and good manners ask beyond that |
| `validator` | what a validator is |
| `selection` | all of them, and which run |
"""

from ctrlruntime.olm.validation.selection import ALWAYS, OPTIONAL, VALIDATORS, VALUES, select, validate
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["ALWAYS", "OPTIONAL", "VALIDATORS", "VALUES", "Subject", "Validator", "select", "validate"]
