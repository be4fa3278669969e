"""Runs after the blocks of docs/how-to/import-crds.md, in their namespace."""

from pathlib import Path

CRONTAB = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {kind: CronTab, plural: crontabs, shortNames: [ct]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [cronSpec]
            properties:
              cronSpec: {type: string, pattern: '^[0-9*/ ]+$'}
              replicas: {type: integer, format: int32, minimum: 0, default: 1}
              from: {type: string, description: Who asked for it.}
"""

from ctrlruntime.project.importing import importable, source_of

page = Path("docs/how-to/import-crds.md").read_text()
written = source_of(importable(CRONTAB, "crontab.yaml"), external=True)
assert written.split("import Field\n")[1] in page
