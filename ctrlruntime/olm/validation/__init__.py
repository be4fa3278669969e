"""All checks of `ctrl bundle validate`: those that always run, and the optional ones.

| module | looks at |
|---|---|
| `layout` | folders and files |
| `annotations`, `dependencies` | the files of `metadata` |
| `manifests` | every object: its kind, its metadata, and the rules of kube-apiserver |
| `definitions` | CRDs, and whether the ClusterServiceVersion owns them |
| `content` | size, accounts, images, release |
| `fields`, `csv`, `examples` | the ClusterServiceVersion |
| `installation`, `webhooks` | the objects that OLM creates from it |
| `optional/` | additional requirements of catalogs, and good practices |
| `validator` | the class of validators |
| `selection` | the list of all, and the selection |
"""

from ctrlruntime.olm.validation.selection import ALWAYS, OPTIONAL, VALIDATORS, VALUES, select, validate
from ctrlruntime.olm.validation.validator import Subject, Validator

__all__ = ["ALWAYS", "OPTIONAL", "VALIDATORS", "VALUES", "Subject", "Validator", "select", "validate"]
