"""What an operator needs to be installed by the Operator Lifecycle Manager: a bundle, its checks, the scorecard, a catalog.

    the project's rendered objects ─┐
    its classes (descriptors)      ─┼→ csv: one ClusterServiceVersion → making: the files of a bundle → a folder
    the base a person wrote        ─┘
    a folder → bundle: what is in it → validation, scorecard, catalog, upgrade

| module | noun |
|---|---|
| `api` | the fields of a ClusterServiceVersion, as classes |
| `bundle` | a bundle that was read from a folder |
| `finding` | what is wrong with one, by a stable code |
| `examples` | the examples a ClusterServiceVersion brings |
| `semver` | versions, and ranges of them |
| `release` | what a bundle is known by: its name, version and release |
| `reference` | a reference to an image |
| `refusals` | what OLM refuses of webhooks |
| `conversion` | definitions as OLM installs them |
| `capabilities` | the five levels |
| `trees` | values of YAML that may be anything |
| `csv/` | the ClusterServiceVersion, assembled |
| `making/` | the files of a bundle, and the base they start from |
| `validation/` | every check of `ctrl bundle validate` |
| `upgrade/` | what changes from one bundle to the next |
| `scorecard/` | the six tests of the scorecard that need no cluster |
| `catalog/` | file-based catalogs |
"""
