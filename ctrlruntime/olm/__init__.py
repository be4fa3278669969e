"""What an operator needs to be installed by the Operator Lifecycle Manager: a bundle, its checks, the scorecard, a catalog.

    the project's rendered objects ─┐
    its classes (descriptors)      ─┼→ csv: one ClusterServiceVersion → making: the files of a bundle → a folder
    the base                       ─┘
    a folder → bundle: its content → validation, scorecard, catalog, upgrade

| module | noun |
|---|---|
| `api` | the fields of a ClusterServiceVersion, as classes |
| `bundle` | a bundle that was read from a folder |
| `finding` | a problem of a bundle, with a stable code |
| `examples` | the examples in a ClusterServiceVersion |
| `semver` | versions, and ranges of them |
| `release` | the name, version and release of a bundle |
| `reference` | a reference to an image |
| `refusals` | webhooks that OLM rejects |
| `conversion` | CRDs as OLM installs them |
| `capabilities` | the five levels |
| `trees` | YAML values of any type |
| `csv/` | the ClusterServiceVersion, assembled |
| `making/` | the files of a bundle, and the base they start from |
| `validation/` | every check of `ctrl bundle validate` |
| `upgrade/` | what changes from one bundle to the next |
| `scorecard/` | the six tests of the scorecard that need no cluster |
| `catalog/` | file-based catalogs |
"""
