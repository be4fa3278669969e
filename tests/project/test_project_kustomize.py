"""Kustomizations rendered here and by `kubectl kustomize`: the same objects, in the same order, and the same refusals."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import kubectl_agreed
import pytest

from ctrlruntime.errors import ConfigError
from ctrlruntime.project.kustomize import differences, read_documents, render, written

OPERATOR = Path(__file__).parent / "operator_tree/config/default"

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: system, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers:
      - name: web
        image: web:1
        args: [a, b]
        ports: [{containerPort: 80, name: http}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        envFrom: [{configMapRef: {name: settings}}]
      - {name: side, image: "registry.example.com:5000/side@sha256:abc"}
      volumes: [{name: keys, secret: {secretName: keys}}]
"""
ACCOUNT = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, namespace: system}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: system}
spec: {selector: {app: web}, ports: [{port: 443}]}
"""
CUSTOM = """
apiVersion: shop.example.com/v1
kind: Cart
metadata: {name: cart}
spec: {items: [{name: a, count: 1}, {name: b, count: 2}], owner: nobody}
"""
KINDS = """
apiVersion: v1
kind: Namespace
metadata: {name: system}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: night}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: web:1}]}}}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {serviceName: web, template: {metadata: {}}, volumeClaimTemplates: [{metadata: {name: data}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db}
spec: {selector: {matchLabels: {app: db}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db}
spec: {podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: web}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [keys], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: web}
subjects: [{kind: ServiceAccount, name: web, namespace: system}, {kind: ServiceAccount, name: default, namespace: x}, {kind: User, name: eve}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.shop.example.com}
spec: {service: {name: web, namespace: system}}
"""
ALL = {"a.yaml": DEPLOYMENT, "b.yaml": ACCOUNT, "c.yaml": SERVICE, "d.yaml": CUSTOM, "e.yaml": KINDS}
RESOURCES = "resources: [a.yaml, b.yaml, c.yaml, d.yaml, e.yaml]\n"
WITH_FILES = {
    **ALL,
    "keys.txt": "key",
    "raw": "x\n",
    "some.env": "# a comment\nA=1\n\nB=two words \n",
    "p.json": '[{"op": "remove", "path": "/spec/owner"}]',
}

SAME = {
    "files alone": "",
    "a namespace": "namespace: shop",
    "a prefix and a suffix": "namePrefix: my-\nnameSuffix: -x",
    "namespace and prefix": "namespace: shop\nnamePrefix: my-",
    "labels": "labels: [{pairs: {a: b, c: d}}]",
    "labels in templates": "labels: [{pairs: {a: b}, includeTemplates: true}]",
    "labels in selectors": "labels: [{pairs: {a: b}, includeSelectors: true}, {pairs: {c: d}}]",
    "labels in own fields": "labels: [{pairs: {a: b}, fields: [{path: spec/labels, kind: Cart, create: true}]}]",
    "common labels": "commonLabels: {a: b, app: other}",
    "common annotations": "commonAnnotations: {a.example.com/b: c}",
    "images by tag": "images: [{name: web, newTag: '2'}]",
    "images by name": "images: [{name: web, newName: other/web}, {name: registry.example.com:5000/side, newName: side}]",
    "images by digest": "images: [{name: web, digest: 'sha256:12'}, {name: registry.example.com:5000/side, newTag: v1}]",
    "images by tag and digest": "images: [{name: web, newName: q, newTag: v2, digest: 'sha256:12'}]",
    "images nobody has": "images: [{name: we, newTag: v2}]",
    "replicas": "replicas: [{name: web, count: 3}]",
    "replicas after a prefix": "namePrefix: my-\nreplicas: [{name: web, count: 3}]",
    "a config map": "configMapGenerator: [{name: settings, namespace: system, literals: [a=b, 'c=\"d\"', e=, 'f=<&>é']}]",
    "a config map of files": "configMapGenerator: [{name: s, files: [keys.txt, other=raw], envs: [some.env]}]",
    "a config map without hash": "configMapGenerator: [{name: s, literals: [a=b], options: {disableNameSuffixHash: true, labels: {x: z}, immutable: true}}]",
    "an empty config map": "configMapGenerator: [{name: s}]",
    "a secret": "secretGenerator: [{name: keys, namespace: system, type: example.com/t, literals: [a=b], files: [keys.txt]}]",
    "a long secret": f"secretGenerator: [{{name: keys, literals: ['a={'x' * 105}', 'b={'y' * 52}']}}]",
    "generators with options": "generatorOptions: {labels: {a: b}, annotations: {c: d}}\nconfigMapGenerator: [{name: s, literals: [a=b]}]\nsecretGenerator: [{name: s, literals: [a=b]}]",
    "a generated name that is referred to": "namePrefix: my-\nconfigMapGenerator: [{name: settings, namespace: system, literals: [a=b]}]\nsecretGenerator: [{name: keys, namespace: system, literals: [a=b]}]",
    "generated names in a namespace": "namespace: shop\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\nsecretGenerator: [{name: keys, literals: [a=b]}]",
    "a merge patch": "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: system}, spec: {replicas: 2, template: {spec: {containers: [{name: new, image: n}, {name: web, args: [z], env: [{name: B, value: x}, {name: C, value: y}]}]}}}}'}]",
    "a merge patch that deletes": "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: system, labels: null}, spec: {template: {spec: {serviceAccountName: null, containers: [{name: web, $patch: delete}], volumes: [{$patch: replace}]}}}}'}]",
    "a merge patch that deletes an object": "patches: [{patch: '{$patch: delete, apiVersion: v1, kind: Service, metadata: {name: web, namespace: system}}'}]",
    "a merge patch that replaces a map": "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: system}, spec: {template: {$patch: replace, spec: {}}}}'}]",
    "a merge patch with ports": "patches: [{patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: system}, spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: h2}, {containerPort: 90}]}]}}}}'}]",
    "a merge patch for a custom kind": "patches: [{patch: '{apiVersion: shop.example.com/v1, kind: Cart, metadata: {name: cart}, spec: {items: [{name: b}], owner: null, new: {a: null, b: 1}}}'}]",
    "a merge patch with a target": "patches: [{patch: '{apiVersion: v1, kind: X, metadata: {name: any, annotations: {a: b}}}', target: {kind: 'Dep.*|Cart'}}]",
    "a merge patch that renames": "patches: [{patch: '{apiVersion: v1, kind: ServiceAccount, metadata: {name: new}}', target: {kind: ServiceAccount}, options: {allowNameChange: true}}]",
    "a merge patch that changes the kind": "patches: [{patch: '{apiVersion: shop.example.com/v1, kind: Basket, metadata: {name: cart}}', target: {kind: Cart}, options: {allowKindChange: true}}]",
    "targets by regular expression": "patches: [{path: p.json, target: {group: shop.*, version: v., name: c.rt}}]",
    "targets are anchored": "patches: [{path: p.json, target: {name: car}}]",
    "targets by namespace": "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"a\": \"b\"}}]', target: {namespace: sys.*}}]",
    "targets by label": "patches: [{patch: '[{\"op\": \"replace\", \"path\": \"/spec/paused\", \"value\": true}]', target: {labelSelector: 'app in (x)'}}, {patch: '[{\"op\": \"add\", \"path\": \"/spec/paused\", \"value\": true}]', target: {labelSelector: app=web}}]",
    "targets by annotation": "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/paused\", \"value\": true}]', target: {annotationSelector: a=b}}]",
    "a target nobody is": "patches: [{path: p.json, target: {kind: Nothing}}]",
    "JSON operations": "patches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/items/-\", \"value\": {\"name\": \"c\"}}, {\"op\": \"remove\", \"path\": \"/spec/items/0\"}, {\"op\": \"copy\", \"from\": \"/spec/owner\", \"path\": \"/spec/a~1b\"}, {\"op\": \"test\", \"path\": \"/spec/owner\", \"value\": \"nobody\"}]', target: {kind: Cart}}]",
    "deprecated merges": "patchesStrategicMerge:\n- |-\n  apiVersion: shop.example.com/v1\n  kind: Cart\n  metadata: {name: cart}\n  spec: {owner: me}",
    "deprecated JSON patches": "patchesJson6902: [{path: p.json, target: {group: shop.example.com, version: v1, kind: Cart, name: cart}}]",
    "a patch, then a prefix": "namePrefix: my-\npatches: [{path: p.json, target: {kind: Cart, name: cart}}]",
    "a replacement": "replacements: [{source: {kind: Cart, fieldPath: spec.owner}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.[name=web].env.[name=A].value', spec.template.metadata.labels.app]}]}]",
    "a replacement of all items": "replacements: [{source: {kind: Cart, fieldPath: spec.owner}, targets: [{select: {kind: Deployment}, fieldPaths: ['spec.template.spec.containers.*.image']}]}]",
    "a replacement that creates": "replacements: [{source: {kind: Cart, fieldPath: spec.items.1.count}, targets: [{select: {kind: Service}, fieldPaths: ['metadata.annotations.[a.example.com/b]', spec.new.deep], options: {create: true}}]}]",
    "a replacement with delimiters": "replacements: [{source: {kind: Deployment, fieldPath: 'spec.template.spec.containers.0.image', options: {delimiter: ':', index: 0}}, targets: [{select: {kind: Cart}, fieldPaths: [spec.owner], options: {delimiter: '/', index: 1}}, {select: {kind: Service}, fieldPaths: [spec.selector.app], options: {delimiter: '/', index: -1}}]}]",
    "a replacement with rejects": "replacements: [{source: {kind: Cart, fieldPath: metadata.name}, targets: [{select: {name: web}, reject: [{kind: Service}, {kind: APIService}], fieldPaths: [metadata.labels.from], options: {create: true}}]}]",
    "a replacement of a map": "replacements: [{source: {kind: Cart, fieldPath: spec.items}, targets: [{select: {kind: Service}, fieldPaths: [spec.ports]}]}]",
    "a replacement after a prefix": "namePrefix: my-\nreplacements: [{source: {kind: Service, name: web}, targets: [{select: {kind: Cart, name: cart}, fieldPaths: [spec.owner]}]}]",
    "a replacement in a number": "replacements: [{source: {kind: Cart, fieldPath: spec.items.1.count}, targets: [{select: {kind: Service}, fieldPaths: [spec.ports.0.port]}]}]",
    "first in, first out": "sortOptions: {order: fifo}",
    "the old order": "sortOptions: {order: legacy}",
    "an order of one's own": "sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Cart, Service], orderLast: [Namespace]}}",
    "metadata of the kustomization": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}",
}  # fmt: skip

TREES = {
    "a base and an overlay": {
        "kustomization.yaml": "namespace: test\nnamePrefix: test-\nresources: [base]\nconfigMapGenerator: [{name: settings, behavior: merge, literals: [a=c, d=e]}]",
        "base/kustomization.yml": "namePrefix: web-\nresources: [a.yaml, b.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b, x=z]}]",
        "base/a.yaml": DEPLOYMENT, "base/b.yaml": ACCOUNT,
    },
    "a generator that replaces": {
        "kustomization.yaml": "resources: [base]\nconfigMapGenerator: [{name: settings, behavior: replace, literals: [d=e]}]",
        "base/Kustomization": "configMapGenerator: [{name: settings, literals: [a=b], options: {labels: {a: b}}}]",
    },
    "a component": {
        "kustomization.yaml": "resources: [a.yaml]\ncomponents: [extra]\nnamePrefix: p-",
        "a.yaml": DEPLOYMENT,
        "extra/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [b.yaml]\npatches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": 4}]', target: {kind: Deployment}}]",
        "extra/b.yaml": ACCOUNT,
    },
    "two overlays of one base": {
        "kustomization.yaml": "resources: [one, two]",
        "one/kustomization.yaml": "namePrefix: one-\nresources: [../base]", "two/kustomization.yaml": "namePrefix: two-\nresources: [../base]",
        "base/kustomization.yaml": "resources: [a.yaml, b.yaml]", "base/a.yaml": DEPLOYMENT, "base/b.yaml": ACCOUNT,
    },
    "a list, empty documents and local settings": {
        "kustomization.yaml": "resources: [a.yaml]",
        "a.yaml": "---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {config.kubernetes.io/local-config: 'true'}}}\n---\n# nothing\n",
    },
    "plain scalars": {
        "kustomization.yaml": "resources: [a.yaml]",
        "a.yaml": CUSTOM + "x: {a: yes, b: 0644, c: 1e3, d: 1.50, e: ~, f: 2020-01-01, g: 0x1f, h: 12:30, i: '1', j: .5, k: True, l: on, m: 1_000, n: 12345678901234567890, o: \"a\\tb\", p: '', q: [], r: {}, s: 1.0, t: 0o17}\nlong: " + "word " * 40 + "\ntext: |\n  two\n  lines\n",
    },
    "annotations and labels that are not texts": {
        "kustomization.yaml": "resources: [a.yaml]\nlabels: [{pairs: {d: e}}]",
        "a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a, labels: {b: 1}, annotations: {b: 1, c: true}}",
    },
    "operations in YAML": {
        "kustomization.yaml": "resources: [d.yaml]\npatches:\n- target: {kind: Cart}\n  patch: |-\n    - op: replace\n      path: /spec/owner\n      value: me\n    - {op: move, from: /spec/items/0, path: /spec/first}\n",
        "d.yaml": CUSTOM,
    },
    "anchors": {"kustomization.yaml": "resources: [a.yaml]", "a.yaml": CUSTOM + "x: &x {a: 1}\ny: *x\nz: {<<: *x, b: 2}\n"},
    "settings of old layouts": {
        "kustomization.yaml": "namePrefix: p-\nnamespace: shop\nresources: [c.yaml, d.yaml]\nconfigurations: [config.yaml]",
        "c.yaml": SERVICE, "d.yaml": CUSTOM.replace("nobody", "web"),
        "config.yaml": "nameReference: [{kind: Service, version: v1, fieldSpecs: [{kind: Cart, path: spec/owner}]}]\nnamespace: [{kind: Cart, path: spec/ns, create: true}]\ncommonLabels: [{path: spec/labels, create: true, kind: Cart}]\nvarReference: [{path: metadata/annotations}]",
    },
    "replacements as a transformer, after the prefixes of two folders": {
        "kustomization.yaml": "namePrefix: z-\nnamespace: other\nresources: [in]\ntransformers: [names]\n",
        "in/kustomization.yaml": "namePrefix: y-\nnamespace: shop\nresources: [c.yaml, d.yaml]\ntransformers: [../names]\n",
        "in/c.yaml": SERVICE, "in/d.yaml": CUSTOM,
        "names/kustomization.yaml": "resources: [r.yaml, none.yaml]\n",
        "names/r.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: r}\nreplacements:\n- source: {kind: Service, name: web, fieldPath: metadata.namespace}\n  targets:\n  - select: {kind: Cart, name: cart}\n    fieldPaths: [spec.owner]\n",
        "names/none.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: none}\nreplacements: []\n",
    },
    "replacements from a file": {
        "kustomization.yaml": "resources: [c.yaml, d.yaml]\nreplacements: [{path: r.yaml}]", "c.yaml": SERVICE, "d.yaml": CUSTOM,
        "r.yaml": "source: {kind: Service}\ntargets: [{select: {kind: Cart}, fieldPaths: [spec.owner]}]",
    },
    "accounts of one name": {
        "kustomization.yaml": "resources: [a.yaml]\nnameSuffix: -z",
        "a.yaml": ACCOUNT + "---" + ACCOUNT.replace("system", "other") + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: third}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: web, namespace: other}]\n",
    },
    "a binding that is moved away from its account": {
        "kustomization.yaml": "namespace: shop\nnamePrefix: my-\nresources: [a.yaml]\nreplacements: [{source: {kind: RoleBinding, name: b, fieldPath: roleRef.name}, targets: [{select: {kind: RoleBinding, name: b}, fieldPaths: [metadata.namespace]}]}]\n",
        "a.yaml": ACCOUNT + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: system}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: web, namespace: system}]\n",
    },
    "names of overlays between": {
        "kustomization.yaml": "namePrefix: z-\nresources: [in]\nreplacements: [{source: {kind: Cart, name: x-cart}, targets: [{select: {kind: Cart, name: y-x-cart}, fieldPaths: [spec.owner]}]}]",
        "in/kustomization.yaml": "namePrefix: y-\nresources: [base]\npatches: [{patch: '{apiVersion: shop.example.com/v1, kind: Cart, metadata: {name: x-cart}, spec: {a: 1}}'}, {target: {name: cart}, patch: '{apiVersion: v1, kind: Z, metadata: {name: z}, spec: {b: 1}}'}]",
        "in/base/kustomization.yaml": "namePrefix: x-\nresources: [d.yaml]", "in/base/d.yaml": CUSTOM,
    },
    "merges of many lists": {
        "kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]",
        "a.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v, finalizers: [a/b, c/d], ownerReferences: [{uid: a}]}\nwebhooks: [{name: a, rules: [{apiGroups: [x]}]}, {name: b}]\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}, {port: 443}], selector: {}}\n",
        "p.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v, finalizers: [e/f, a/b], ownerReferences: [{uid: b}]}\nwebhooks: [{name: b, rules: [{apiGroups: [z]}], timeoutSeconds: null}, {name: c}]\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 443, name: n}, {port: 1, nodePort: null}], selector: null}\n",
    },
    "paths with dots, and texts that are numbers": {
        "kustomization.yaml": "resources: [a.yaml, c.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: data.port}\n  targets:\n  - select: {kind: Service}\n    fieldPaths: [spec.ports.0.port, spec.new, 'spec.ports.1.port', metadata.labels.x, 'spec.list.0', 'spec.m.[name=q].v']\n    options: {create: true}\n- source: {kind: ConfigMap, fieldPath: 'data.a\\.b'}\n  targets:\n  - select: {kind: Service}\n    fieldPaths: ['metadata.annotations.x\\.y/z', 'metadata.annotations.[q.r/s]']\n    options: {create: true}\n",
        "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {port: '8080', a.b: hi}\n", "c.yaml": SERVICE,
    },
    "images everywhere": {
        "kustomization.yaml": "resources: [a.yaml]\nimages: [{name: a, newTag: '1'}, {name: 'r:5000/b', newName: c}, {name: e, newName: f, newTag: v3}, {name: g, newTag: v3}]\n",
        "a.yaml": "apiVersion: q.com/v1\nkind: Z\nmetadata: {name: d}\nspec: {deep: {containers: [{image: a}, {image: a:3@sha256:ff}, {image: r:5000/b:9}], image: a, initContainers: [{image: 'e@sha256:12'}, {image: g:1@sha256:12}, {image: ga}]}}\n",
    },
    "empty places for labels": {
        "kustomization.yaml": "resources: [a.yaml]\ncommonLabels: {q: r}\ncommonAnnotations: {s: t}",
        "a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {}}, template: {metadata: null, spec: {topologySpreadConstraints: [{labelSelector: {matchLabels: {a: b}}}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {labelSelector: {matchLabels: {a: b}}}}]}}}}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: e}\n",
    },
    "texts of annotations": {
        "kustomization.yaml": "resources: [a.yaml, b.yaml]\nreplacements: [{source: {kind: ConfigMap, name: a, fieldPath: metadata.annotations.a}, targets: [{select: {kind: ConfigMap, name: b}, fieldPaths: [data.a]}]}]\npatches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {w: 1.20, x: yes}}}'\n- target: {name: b}\n  patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations/q\", \"value\": null}]'\n",
        "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {a: 1.10, b: 2024-01-01, c: 010, d: ~, e: true, f: 0x10, g: 1e3, h: 1_000, i: .5, j: null, l: on, m: '1', n: !!str 5}\n  labels: {a: 1.10}\ndata: {a: 1.10, b: 2024-01-01}\n",
        "b.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b, annotations: {a: on}}\n  data: {a: x}\n",
    },
    "annotations that are nothing": {
        "kustomization.yaml": "resources: [a.yaml]",
        "a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: null, labels: {}}\n---\napiVersion: v1\nkind: A\nmetadata: {name: b, annotations: {}, labels: null}\n",
    },
    "generators that change objects of files": {
        "kustomization.yaml": "resources: [a.yaml, b]\nconfigMapGenerator:\n- {name: a, behavior: merge, literals: [c=d], options: {immutable: true, labels: {e: f}}}\n- {name: b, behavior: replace, literals: [c=d]}\n- {name: c, behavior: merge, literals: [c=d]}\n- {name: d, behavior: merge, literals: [c=d], options: {disableNameSuffixHash: true}}\n",
        "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {g: h}}\ndata: {a: b}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {a: b}\n",
        "b/kustomization.yaml": "configMapGenerator: [{name: c, options: {disableNameSuffixHash: true}}, {name: d, literals: [a=b]}]",
    },
    "generators of nothing, and lines without a sign": {
        "kustomization.yaml": "secretGenerator: [{name: a}, {name: b, options: {disableNameSuffixHash: yes}}]\nconfigMapGenerator: [{name: c, envs: [e]}]", "e": "A\n  B=x y \n#C=1\n",
    },
    "configurations of the namespace": {
        "kustomization.yaml": "namespace: shop\nresources: [a.yaml]\nconfigurations: [c.yaml]",
        "a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: s}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\nroleRef: {name: x, kind: Role, apiGroup: rbac.authorization.k8s.io}\nsubjects: [{kind: ServiceAccount, name: a, namespace: y}, {kind: ServiceAccount, name: default, namespace: y}]\n",
        "c.yaml": "namespace: [{path: metadata/namespace, kind: Namespace, create: true}, {path: subjects/namespace, kind: RoleBinding}]",
    },
    "references of newer kinds": {
        "kustomization.yaml": "namePrefix: my-\nresources: [a.yaml, c.yaml]", "c.yaml": SERVICE,
        "a.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: p}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: system}\nspec: {rules: [{backendRefs: [{name: web}]}]}\n",
    },
    "older versions of kinds without a namespace": {
        "kustomization.yaml": "namespace: shop\nresources: [a.yaml]",
        "a.yaml": "".join(f"---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n" for version, kind in (("policy/v1beta1", "PodSecurityPolicy"), ("rbac.authorization.k8s.io/v1beta1", "ClusterRole"), ("storage.k8s.io/v1beta1", "StorageClass"), ("apps/v1beta1", "Deployment"))),
    },
    "images by regular expression": {
        "kustomization.yaml": "resources: [a.yaml]\nimages: [{name: 'r[.]io/(a|b)', newTag: v2}, {name: 'x.z', newName: other}, {name: 'q|s', newTag: v4}]\n",
        "a.yaml": "apiVersion: q.com/v1\nkind: Z\nmetadata: {name: d}\nspec: {containers: [{image: r.io/a}, {image: r.io/b:1}, {image: rxio/b:1}, {image: xyz}, {image: quite}, {image: less}, {image: 's:2'}]}\n",
    },
    "lists with several keys": {
        "kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]",
        "a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 1, protocol: TCP}, {port: 2, protocol: TCP}, {port: 2, protocol: UDP}, {port: 3, protocol: TCP}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {topologySpreadConstraints: [{topologyKey: a, whenUnsatisfiable: X}, {topologyKey: b, whenUnsatisfiable: X}]}\n",
        "p.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 2, protocol: UDP, name: u}, {port: 9, protocol: TCP}, {port: 1, protocol: TCP, $patch: delete}]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {topologySpreadConstraints: [{topologyKey: c, whenUnsatisfiable: X}, {topologyKey: b, whenUnsatisfiable: X, maxSkew: 2}]}\n",
    },
    "operations that add": {
        "kustomization.yaml": "resources: [a.yaml, d.yaml]\npatches:\n- {target: {kind: Deployment}, path: p.json}\n- {target: {kind: Cart}, path: p.yaml}\n", "a.yaml": DEPLOYMENT, "d.yaml": CUSTOM,
        "p.json": '[{"op": "replace", "path": "/spec/replicas", "value": 3}, {"op": "add", "path": "/spec/paused"}]',
        "p.yaml": "- op: replace\n  path: /spec/items/0/x\n  value: {a: 1.10, b: yes, c: 2024-01-01, d: 010, e: 12:30, f: n, y: on}\n",
    },
    "webhooks": {
        "kustomization.yaml": "namePrefix: p-\nnamespace: shop\nresources: [c.yaml, d.yaml]", "c.yaml": SERVICE,
        "d.yaml": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: v}\nwebhooks: [{name: a, clientConfig: {service: {name: web, namespace: system}}}, {name: b, clientConfig: {service: {name: other, namespace: system}}}]",
    },
}  # fmt: skip

REFUSED = {
    "a name that is a map": ({"bad.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: {a: b}}"}, "resources: [bad.yaml]", "no metadata.name"),
    "a text for a list": ({}, "resources: ''\nnamePrefix: a", "resources must be a list"),
    "a map for a list": ({}, RESOURCES + "patches: {}", "patches must be a list"),
    "a kind that is not text": ({"bad.yaml": "apiVersion: v1\nkind: [A]\nmetadata: {name: a}"}, "resources: [bad.yaml]", "has no kind"),
    "a deprecated JSON patch without a name": ({}, RESOURCES + "patchesJson6902: [{path: p.json, target: {kind: Cart, version: v1}}]", "requires a name"),
    "JSON without quotes": ({}, RESOURCES + "patches: [{patch: '[{op: remove, path: /spec}]', target: {kind: Cart}}]", "must be valid JSON"),
    "a suffix that is a number": ({}, "resources: [d.yaml]\nnameSuffix: -1", "nameSuffix must be a string"),
    "a missing file": ({}, "resources: [gone.yaml]", "gone.yaml does not exist"),
    "an object twice": ({}, "resources: [d.yaml, a.yaml, ./d.yaml]", "Include it only once"),
    "a cycle": ({"x/kustomization.yaml": "resources: [..]"}, "resources: [x]", "cycle"),
    "an unknown field": ({}, "resources: [a.yaml]\nnamePrefx: a", "unknown field 'namePrefx'"),
    "an unknown field of a patch": ({}, "resources: [a.yaml]\npatches: [{paht: x}]", "unknown field 'paht'"),
    "a patch for nobody": ({}, RESOURCES + "patches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: no}}'}]", "but matches no object"),
    "a patch of nothing": ({}, RESOURCES + "patches: [{target: {kind: Cart}}]", "has neither"),
    "a JSON patch without a target": ({}, RESOURCES + "patches: [{path: p.json}]", "requires a target"),
    "a JSON patch that does not apply": ({}, RESOURCES + "patches: [{path: p.json, target: {kind: Deployment}}]", "/spec/owner"),
    "a patch that is neither": ({}, RESOURCES + "patches: [{patch: 'a: b', target: {kind: Cart}}]", "must be a list of JSON patch operations, or an object"),
    "a missing patch file": ({}, RESOURCES + "patches: [{path: no.yaml}]", "no.yaml does not exist"),
    "replicas of nobody": ({}, RESOURCES + "replicas: [{name: none, count: 1}]", "no object 'none'"),
    "a transformer that does not exist": ({}, RESOURCES + "transformers: [gone.yaml]", "transformers: gone.yaml does not exist"),
    "a transformer without its source": ({"t.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: t}\nreplacements: [{source: {kind: No}, targets: [{select: {kind: Cart}}]}]"}, RESOURCES + "transformers: [t.yaml]", "must be one object, but 0 match"),
    "a replacement without its source": ({}, RESOURCES + "replacements: [{source: {kind: None}, targets: [{select: {kind: Cart}}]}]", "must be one object, but 0 match"),
    "a replacement of several sources": ({}, RESOURCES + "replacements: [{source: {name: web}, targets: [{select: {kind: Cart}}]}]", "must be one object, but 5 match"),
    "a replacement without its field": ({}, RESOURCES + "replacements: [{source: {kind: Cart}, targets: [{select: {kind: Service}, fieldPaths: [spec.no]}]}]", "has no field spec.no"),
    "merging into nothing": ({}, "configMapGenerator: [{name: s, behavior: merge, literals: [a=b]}]", "requires one object of that name, but matches no object"),
    "generating twice": ({}, "configMapGenerator: [{name: s}, {name: s}]", "already exists. Add `behavior: merge`"),
    "a literal without a sign": ({}, "configMapGenerator: [{name: s, literals: [a]}]", "must be KEY=VALUE"),
    "no YAML": ({"bad.yaml": "a: [b"}, "resources: [bad.yaml]", "bad.yaml"),
    "a key twice": ({"bad.yaml": "apiVersion: v1\nkind: A\nkind: B\nmetadata: {name: a}"}, "resources: [bad.yaml]", "duplicate key"),
    "an object without a kind": ({"bad.yaml": "metadata: {name: a}"}, "resources: [bad.yaml]", "has no kind"),
    "an object without a name": ({"bad.yaml": "apiVersion: v1\nkind: A"}, "resources: [bad.yaml]", "no metadata.name"),
    "a folder without a kustomization": ({"x/a.yaml": CUSTOM}, "resources: [x]", "has no kustomization.yaml"),
    "a component among the resources": ({"x/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component"}, "resources: [x]", "under components"),
    "two kustomizations in a folder": ({"kustomization.yml": "resources: [a.yaml]"}, "resources: [a.yaml]", "several of"),
    "an empty kustomization": ({}, "", "is empty"),
    "a namespace that makes two objects one": ({"x.yaml": CUSTOM.replace("name: cart", "name: cart, namespace: b")}, "namespace: c\nresources: [d.yaml, x.yaml]", "the identity"),
    "a word that YAML takes for true": ({}, RESOURCES + "commonLabels: {x: y}", "commonLabels must be a map of strings. Quote numbers, and words such as"),
    "a name that YAML takes for false": ({}, RESOURCES + "namePrefix: no", "namePrefix must be a string. Quote it: YAML takes yes, no, on and off for true or false"),
    "one field with and without create": ({"c.yaml": "commonLabels: [{path: metadata/labels}]"}, "resources: [d.yaml]\nconfigurations: [c.yaml]", "with and without `create`"),
    "a namespace in the place of a map": ({"c.yaml": "namespace: [{path: spec/items, kind: Cart}]"}, "namespace: a\nresources: [d.yaml]\nconfigurations: [c.yaml]", "must be a text"),
    "the wrong version": ({}, "apiVersion: v1\nkind: Kustomization\nresources: [a.yaml]", "must be kustomize.config.k8s.io/v1beta1"),
}  # fmt: skip

ELSEWHERE = {
    "openapi": "openapi: {path: x.json}",
    "helm charts": "helmCharts: [{name: x}]",
    "other transformers": "transformers: [x.yaml]",
    "validators": "validators: [x.yaml]",
    "generators": "generators: [x.yaml]",
    "vars": "vars: [{name: X}]",
    "remote resources": "resources: ['https://github.com/example/project/config?ref=v1']",
    "remote folders": "resources: [github.com/example/project]",
}


@pytest.fixture(scope="session")
def kubectl():
    def kustomize(folder: Path) -> subprocess.CompletedProcess[str]:
        found = shutil.which("kubectl")
        if found is None:
            if os.environ.get("CI") == "true":
                pytest.fail("kubectl is missing")
            pytest.skip("kubectl is not on the PATH")
        return subprocess.run(
            [found, "kustomize", str(folder)], capture_output=True, text=True, timeout=120, check=False
        )

    return kustomize


@pytest.fixture(scope="session")
def known(pytestconfig) -> frozenset[str]:
    """The renderings that kubectl need not be asked about (`kubectl_agreed.py`)."""
    return frozenset() if pytestconfig.getoption("--all") else kubectl_agreed.agreed()


def make(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def assert_same(folder: Path, kubectl, known: frozenset[str], files: Path | None = None) -> None:
    """`files` is the folder of all files that are read, if it is not the one that is rendered."""
    ours = written(render(folder))

    digest = kubectl_agreed.digest(files or folder, ours)
    if digest in known:
        return
    theirs = kubectl(folder)
    assert theirs.returncode == 0, theirs.stderr
    assert ours == theirs.stdout
    kubectl_agreed.note(digest)


@pytest.mark.parametrize("name", SAME)
def test_a_field_means_what_it_means_to_kubectl(name, tmp_path, kubectl, known):
    folder = make(tmp_path, {**WITH_FILES, "kustomization.yaml": f"{RESOURCES}{SAME[name]}\n"})

    assert_same(folder, kubectl, known)


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_what_it_is_to_kubectl(name, tmp_path, kubectl, known):
    assert_same(make(tmp_path, TREES[name]), kubectl, known)


def test_the_tree_of_an_operator_is_what_it_is_to_kubectl(kubectl, known):
    assert_same(OPERATOR, kubectl, known, files=OPERATOR.parent)


def test_the_references_of_an_operator_follow_its_names():
    objects = {(each["kind"], each["metadata"]["name"]): each for each in render(OPERATOR)}

    assert ("Namespace", "shop-system") in objects
    webhook = objects["ValidatingWebhookConfiguration", "shop-validating-webhook-configuration"]
    assert webhook["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "shop-system/shop-serving-cert"}
    assert webhook["webhooks"][0]["clientConfig"]["service"] == {
        "name": "shop-webhook-service", "namespace": "shop-system", "path": "/validate-cart",
    }  # fmt: skip
    definition = objects["CustomResourceDefinition", "carts.shop.example.com"]
    assert definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"] == "shop-webhook-service"
    certificate = objects["Certificate", "shop-serving-cert"]
    assert certificate["spec"]["dnsNames"][0] == "shop-webhook-service.shop-system.svc"
    assert certificate["spec"]["issuerRef"]["name"] == "shop-selfsigned-issuer"


@pytest.mark.parametrize("name", REFUSED)
def test_what_kubectl_refuses_is_refused_in_one_line(name, tmp_path, kubectl, known):
    files, text, says = REFUSED[name]
    folder = make(tmp_path, {**WITH_FILES, **files, "kustomization.yaml": text})

    with pytest.raises(ConfigError) as refused:
        render(folder)

    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    digest = kubectl_agreed.digest(folder, "refused")
    if digest not in known:
        assert kubectl(folder).returncode != 0
        kubectl_agreed.note(digest)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_left_to_kubectl_is_said(name, tmp_path):
    transformer = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: a-\n"
    folder = make(tmp_path, {"kustomization.yaml": ELSEWHERE[name], "x.yaml": transformer})

    with pytest.raises(ConfigError, match=r"Use `kubectl kustomize`$"):
        render(folder)


def test_a_file_outside_of_the_folder_is_refused(tmp_path, kubectl):
    folder = make(tmp_path, {"a.yaml": CUSTOM, "in/kustomization.yaml": "resources: [../a.yaml]"}) / "in"

    with pytest.raises(ConfigError, match="is outside"):
        render(folder)

    assert kubectl(folder).returncode != 0


def test_a_port_that_may_be_another_is_refused(tmp_path):
    patch = DEPLOYMENT.replace("{containerPort: 80, name: http}", "{containerPort: 80, name: h2, protocol: TCP}")
    text = "resources: [a.yaml]\npatches: [{path: p.yaml}]"
    folder = make(tmp_path, {"a.yaml": DEPLOYMENT, "p.yaml": patch, "kustomization.yaml": text})

    with pytest.raises(ConfigError, match=r"Set protocol in both, or in neither$"):
        render(folder)


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is not a folder"):
        render(tmp_path / "gone")


def test_rendering_leaves_the_files_alone(tmp_path):
    folder = make(tmp_path, {**WITH_FILES, "kustomization.yaml": f"{RESOURCES}namePrefix: a-\n"})
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert render(folder) == render(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_order_of_objects_is_no_difference():
    objects = render(OPERATOR)

    assert list(differences(objects[::-1], read_documents(written(objects), "x"), given_name="x")) == []


def test_a_difference_names_the_object():
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}
    other = {**one, "data": {"a": 1}}

    lines = list(differences([one], [other], given_name="x"))

    assert lines[:2] == ["--- v1 ConfigMap a (x)\n", "+++ v1 ConfigMap a (rendered)\n"]
    assert [line for line in lines[2:] if line[0] in "+-"] == ['-  a: "1"\n', "+  a: 1\n"]
