"""Webhooks, admission policies, signing requests and API services with the mistakes that upstream's validation names."""

from __future__ import annotations

from typing import Any

from builtin_case import Case, Document, cases, named, updates

_HOOKS = "/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_MUTATING_HOOKS = "/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_POLICIES = "/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_RULE = {"operations": ["CREATE"], "apiGroups": ["less.example.com"], "apiVersions": ["v1"], "resources": ["nothings"]}
_HOOK = {
    "name": "a.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [_RULE],
}


def _hook(**fields: Any) -> Document:
    return {"webhooks": [{**_HOOK, **fields}]}


def _client(**fields: Any) -> Document:
    return _hook(clientConfig=fields)


def _service(**fields: Any) -> Document:
    return _client(service={"name": "s", "namespace": "n", **fields})


def _ruled(**fields: Any) -> Document:
    return _hook(rules=[{**_RULE, **fields}])


_SPEC = {"matchConstraints": {"resourceRules": [_RULE]}, "validations": [{"expression": "true"}]}


def _policy(**fields: Any) -> Document:
    return {"spec": {**_SPEC, **fields}}


def _matched(**fields: Any) -> Document:
    return _policy(matchConstraints={"resourceRules": [_RULE], **fields})


ADMISSION = [
    *[
        case
        for path in (_HOOKS, _MUTATING_HOOKS)
        for case in [
            *cases(path, named("less"), {
                "of no hooks": {},
                "of an empty hook": {"webhooks": [{}]},
                "of one name twice": {"webhooks": [_HOOK, _HOOK]},
                "of an odd name": _hook(name="A_.b"),
                "of a name of two parts": _hook(name="a.b"),
                "of a long name": _hook(name="a" * 64 + ".b.c"),
                "of a name that ends with a dot": _hook(name="a.b.c."),
                "of no address": _client(url=""),
                "of a relative address": _client(url="a"),
                "of an address of no host": _client(url="https:///x"),
                "of an address with a user": _client(url="https://u:p@a/x"),
                "of an address with a query": _client(url="https://a/x?y#z"),
                "of an address and a service": _client(url="https://a", service={"name": "s", "namespace": "n"}),
                "of an empty service": _client(service={}),
                "of a service of a high port": _service(port=70000),
                "of a service of port zero": _service(port=0),
                "of a service of a relative path": _service(path="x"),
                "of a service of the root": _service(path="/"),
                "of a service of an empty path": _service(path=""),
                "of a service of odd paths": _service(path="/a//b/../c_d/ x"),
                "of a service of an odd path": _service(path="/a/B_/"),
                "of a service of two slashes": _service(path="//"),
                "of one version twice": _hook(admissionReviewVersions=["v1", "v1"]),
                "of odd versions": _hook(admissionReviewVersions=["V1", "", "v1"]),
                "of the beta version": _hook(admissionReviewVersions=["v1beta1"]),
                "of no time": _hook(timeoutSeconds=0),
                "of much time": _hook(timeoutSeconds=31),
                "of unknown side effects": _hook(sideEffects="Unknown"),
                "of odd selectors": _hook(namespaceSelector={"matchLabels": {"a b": "c"}}, objectSelector={
                    "matchExpressions": [{"key": "a", "operator": "X"}]}),
                "of empty policies": _hook(failurePolicy="", matchPolicy="", sideEffects=""),
                "of no operations": _ruled(operations=[]),
                "of all operations and one": _ruled(operations=["*", "CREATE"]),
                "of odd operations": _ruled(operations=["create", ""]),
                "of no groups": _ruled(apiGroups=[], apiVersions=[], resources=[]),
                "of all groups and one": _ruled(apiGroups=["*", "a"], apiVersions=["*", "v1"], resources=["*", "a"]),
                "of empty versions": _ruled(apiVersions=[""], resources=[""]),
                "of all of everything and one": _ruled(resources=["*/*", "a"]),
                "of parts of one": _ruled(resources=["a/*", "a/b", "a"]),
                "of a part of all": _ruled(resources=["*/b", "a/b"]),
                "of all and parts": _ruled(resources=["*", "a/b"]),
                "of all before one": _ruled(resources=["*", "a", "b/c"]),
                "of an odd scope": _ruled(scope="X"),
                "of an empty scope": _ruled(scope=""),
                "of conditions twice": _hook(matchConditions=[{"name": "a", "expression": "true"}] * 2),
                "of odd conditions": _hook(matchConditions=[{"name": "", "expression": ""}, {"name": "a b", "expression": "1"},
                                                            {"name": "b", "expression": "x."}]),
                "of many conditions": _hook(matchConditions=[{"name": f"a{number}", "expression": "true"} for number in range(65)]),
                "of everything wrong": {"webhooks": [{"name": "a", "rules": [{}], "failurePolicy": "X", "matchPolicy": "Y",
                    "sideEffects": "Z", "timeoutSeconds": -1, "clientConfig": {"url": "x"}, "admissionReviewVersions": ["v9"],
                    "namespaceSelector": {"matchLabels": {"a b": "c"}}, "matchConditions": [{"name": "", "expression": ""}]}, _HOOK]},
            }),
            *updates(path, named("less", **_hook()), {
                "of labels": {"metadata": {"labels": {"a": "b"}}},
                "of hooks": {"webhooks": [{**_HOOK, "name": "a", "admissionReviewVersions": ["v9"], "sideEffects": "X"}]},
                "to no hooks": {"webhooks": None},
            }),
        ]
    ],
    *cases(_MUTATING_HOOKS, named("less"), {
        "of an odd reinvocation": _hook(reinvocationPolicy="X"), "of an empty reinvocation": _hook(reinvocationPolicy="")}),
    *cases(_POLICIES, named("less"), {
        "of an odd failure": _policy(failurePolicy=""),
        "of an odd kind": _policy(paramKind={"apiVersion": "a/b/c", "kind": "A_"}),
        "of a kind of no version": _policy(paramKind={"apiVersion": "a.b/", "kind": "A"}),
        "of a kind of the core": _policy(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
        "of odd matches": _matched(matchPolicy="X", namespaceSelector={"matchLabels": {"a b": "c"}}, objectSelector={
            "matchExpressions": [{"key": "a", "operator": "X"}]}),
        "of names twice": _matched(resourceRules=[{**_RULE, "resourceNames": ["a", "a", ""]}]),
        "of odd excluded rules": _matched(excludeResourceRules=[{"operations": ["X"]}]),
        "of odd validations": _policy(validations=[
            {"expression": " "}, {"expression": "1"}, {"expression": "true", "message": "a\nb", "messageExpression": " "},
            {"expression": "true", "messageExpression": "1"}, {"expression": "x."}]),
        "of odd audits": _policy(auditAnnotations=[{"key": "a b", "valueExpression": "'x'"}, {"key": "", "valueExpression": " "},
                                                   {"key": "c", "valueExpression": "1"}]),
        "of odd variables": _policy(variables=[{"name": "a-b", "expression": "1"}, {"name": "a", "expression": ""},
                                               {"name": "b", "expression": "x."}, {"name": "for", "expression": "1"}]),
        "of one variable twice": _policy(variables=[{"name": "a", "expression": "1"}] * 2),
        "of odd conditions": _policy(matchConditions=[{"name": "a", "expression": "variables.a"}, {"name": "a", "expression": ""}]),
    }),
    *updates(_POLICIES, named("less", spec=_SPEC), {
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "of the spec": {"spec": {"failurePolicy": "Ignore"}},
        "to wrong": {"spec": {"failurePolicy": "X", "validations": []}},
    }),
    *cases(_BINDINGS, named("less"), {
        "of an odd policy": {"spec": {"policyName": "A_", "validationActions": ["Deny"]}},
        "of nothing": {"spec": {}},
        "of an odd reference": {"spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": {
            "namespace": "N_", "selector": {"matchLabels": {"a b": "c"}}, "parameterNotFoundAction": "X"}}},
        "of odd matches": {"spec": {"policyName": "p", "validationActions": [], "matchResources": {
            "matchPolicy": "X", "resourceRules": [{}]}}},
    }),
]  # fmt: skip

_FRESH = {"metadata": {"resourceVersion": None}}
_EVERY = {
    "v1/configmaps": {},
    "v1/endpoints": {},
    "v1/limitranges": {},
    "v1/podtemplates": {"template": {"spec": {"containers": [{"name": "c", "image": "c:1"}]}}},
    "v1/resourcequotas": {},
    "v1/serviceaccounts": {},
    "/v1/persistentvolumes": {"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"}}},
    "apps/v1/controllerrevisions": {"data": {"a": 1}},
    "autoscaling/v2/horizontalpodautoscalers": {"spec": {
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}},
    "coordination.k8s.io/v1/leases": {},
    "discovery.k8s.io/v1/endpointslices": {"addressType": "IPv4", "endpoints": []},
    "networking.k8s.io/v1/ingresses": {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}},
    "/networking.k8s.io/v1/ingressclasses": {"spec": {"controller": "a.b/c"}},
    "networking.k8s.io/v1/networkpolicies": {"spec": {}},
    "policy/v1/poddisruptionbudgets": {"spec": {"minAvailable": 1}},
    "rbac.authorization.k8s.io/v1/roles": {},
    "/rbac.authorization.k8s.io/v1/clusterroles": {},
    "/node.k8s.io/v1/runtimeclasses": {"handler": "h"},
    "/scheduling.k8s.io/v1/priorityclasses": {"value": 1},
    "/storage.k8s.io/v1/storageclasses": {"provisioner": "a.b/c"},
    "/storage.k8s.io/v1/csidrivers": {"spec": {}},
    "/storage.k8s.io/v1/csinodes": {"spec": {"drivers": []}},
    "storage.k8s.io/v1/csistoragecapacities": {"storageClassName": "s"},
    "/storage.k8s.io/v1/volumeattachments": {"spec": {
        "attacher": "a.b", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
    "/storage.k8s.io/v1/volumeattributesclasses": {"driverName": "a.b", "parameters": {"a": "b"}},
    "/flowcontrol.apiserver.k8s.io/v1/flowschemas": {"spec": {"priorityLevelConfiguration": {"name": "catch-all"}}},
    "/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": {"spec": {
        "type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}},
    _HOOKS: {"webhooks": [_HOOK]},
    _POLICIES: {"spec": _SPEC},
    _BINDINGS: {"spec": {"policyName": "p", "validationActions": ["Deny"]}},
}  # fmt: skip
"""A small object of each kind."""
ADMISSION += [
    case
    for path, body in _EVERY.items()
    for case in (
        *updates(path, named(f"fresh-{path.split('/')[-1]}", **body), {"without a version": _FRESH}),
        Case(
            f"{path.split('/')[-1]} kept, deleted",
            path,
            named(f"gone-{path.split('/')[-1]}", **body),
            is_stored=True,
            is_deleted=True,
        ),
    )
]

_NAMES = {
    "a dot": "a.b",
    "a per cent": "a%b",
    "capitals": "A_",
    "64 letters": "a" * 64,
    "254 letters": "a" * 254,
    "nothing": "",
}
ADMISSION += [
    Case(f"{path.split('/')[-1]} with the name {shown}", path, {**body, "metadata": {"name": name}})
    for path, body in _EVERY.items()
    for shown, name in _NAMES.items()
]
_MOUNTABLE = {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}}
_ODD_ADDRESS = "FD00::0001"
_OLD_LABELS = ("failure-domain.beta.kubernetes.io/zone", "beta.kubernetes.io/os", "kubernetes.io/hostname")


WARNED = [
    *cases("v1/serviceaccounts", named(), {"of mountable secrets": {"metadata": {"name": "x", **_MOUNTABLE["metadata"]}}}),
    *updates("v1/serviceaccounts", named(), {"to mountable secrets": _MOUNTABLE}),
    *updates("v1/serviceaccounts", named(meta=_MOUNTABLE["metadata"]), {"of mountable secrets": {"secrets": [{"name": "a"}]}}),
    *cases("v1/endpoints", named(), {
        "of odd addresses": {"subsets": [{"addresses": [{"ip": _ODD_ADDRESS}], "notReadyAddresses": [{"ip": _ODD_ADDRESS}],
                                          "ports": [{"port": 1}]}]},
        "of odd addresses of the controller": {"metadata": {"name": "x", "labels": {
            "endpoints.kubernetes.io/managed-by": "endpoint-controller"}}, "subsets": [
                {"addresses": [{"ip": _ODD_ADDRESS}], "ports": [{"port": 1}]}]},
    }),
    *updates("v1/endpoints", named(), {"to odd addresses": {"subsets": [{"addresses": [{"ip": _ODD_ADDRESS}], "ports": [{"port": 1}]}]}}),
    *cases("discovery.k8s.io/v1/endpointslices", named(endpoints=[], addressType="FQDN"), {
        "of domains": {"endpoints": [{"addresses": ["a.b"]}]},
        "of odd addresses of the sixth version": {"addressType": "IPv6", "endpoints": [{"addresses": ["fd00::1"]}]},
    }),
    *updates("discovery.k8s.io/v1/endpointslices", named(endpoints=[], addressType="FQDN"), {"of domains": {
        "endpoints": [{"addresses": ["a.b"]}]}}),
    *cases("networking.k8s.io/v1/networkpolicies", named(spec={"podSelector": {}}), {
        "of an odd block": {"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "FD00::/16", "except": ["FD00:1::/32"]}}]}], "egress": [
            {"to": [{"ipBlock": {"cidr": "FD00::/16"}}]}]}},
    }),
    *cases("networking.k8s.io/v1/ingresses", named(), {
        "of an annotated class": {"metadata": {"name": "x", "annotations": {"kubernetes.io/ingress.class": "a"}}, "spec": {
            "defaultBackend": {"resource": {"kind": "a", "name": "b"}}}},
    }),
    *cases("/networking.k8s.io/v1/servicecidrs", named("less"), {"of an odd range": {"spec": {"cidrs": ["FD77::/112"]}}}),
    *[
        Case(f"{kind} near {key}", path, body)
        for key in _OLD_LABELS
        for kind, path, body in (
            ("storage class", "/storage.k8s.io/v1/storageclasses", named("less", provisioner="a.b/c", allowedTopologies=[
                {"matchLabelExpressions": [{"key": key, "values": ["a"]}]}])),
            ("runtime class", "/node.k8s.io/v1/runtimeclasses", named("less", handler="h", scheduling={"nodeSelector": {key: "a"}})),
            ("capacity", "storage.k8s.io/v1/csistoragecapacities", named(storageClassName="s", nodeTopology={"matchLabels": {key: "a"}})),
            ("capacity by expression", "storage.k8s.io/v1/csistoragecapacities", named(storageClassName="s", nodeTopology={
                "matchExpressions": [{"key": key, "operator": "Exists"}]})),
            ("csi node", "/storage.k8s.io/v1/csinodes", named("less", spec={"drivers": [
                {"name": "a.b", "nodeID": "n", "topologyKeys": [key]}]})),
            ("volume", "/v1/persistentvolumes", named("less", spec={
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.b", "volumeHandle": "h"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]}}})),
            ("pod template", "v1/podtemplates", named(template={"spec": {
                "nodeSelector": {key: "a"}, "containers": [{"name": "c", "image": "c:1"}]}})),
        )
    ],
    *cases("/storage.k8s.io/v1/csidrivers", named("less.example.com"), {"of tokens": {"spec": {"tokenRequests": [{"audience": "a"}]}}}),
    *cases("policy/v1/poddisruptionbudgets", named(), {"of an empty selector": {"spec": {"minAvailable": 1, "selector": {}}}}),
    *cases("v1/replicationcontrollers", named(), {
        "that warn": {"spec": {"replicas": 0, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "terminationGracePeriodSeconds": -1, "containers": [{"name": "c", "image": "c:1", "env": [
                {"name": "a", "value": "b"}, {"name": "a", "value": "c"}]}]}}}},
        "of a dotted name": {"metadata": {"name": "a.b"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "c:1"}]}}}},
    }),
    *cases("/rbac.authorization.k8s.io/v1/clusterroles", named("less"), {"of stars": {"rules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}}),
    *cases(_HOOKS, named("less"), {"of stars": _ruled(operations=["*"], apiGroups=["*"], apiVersions=["*"], resources=["*"])}),
]  # fmt: skip
ADMISSION += WARNED
ADMISSION += [
    *cases("v1/events", named(involvedObject={"kind": "Pod", "name": "p", "namespace": "NAMESPACE"}), {
        f"with the name {shown}": {"metadata": {"name": name}} for shown, name in _NAMES.items()}),
    *cases("events.k8s.io/v1/events", named(regarding={"kind": "Pod", "name": "p", "namespace": "NAMESPACE"}), {
        f"of the group with the name {shown}": {"metadata": {"name": name}} for shown, name in _NAMES.items()}),
    *cases("policy/v1/poddisruptionbudgets", named(), {
        "with a bad name and spec": {"metadata": {"name": "a%b", "labels": {"a b": "c"}}, "spec": {"minAvailable": -1}},
        "with bad labels and annotations": {"metadata": {"name": "A_", "labels": {"a b": "c"}, "annotations": {"a b": "c"}}, "spec": {}},
    }),
    *cases("v1/events", named(), {
        "with a bad name and object": {"metadata": {"name": "a%b", "labels": {"a b": "c"}}, "involvedObject": {"namespace": "x"}},
    }),
    *cases("/v1/nodes", named(), {f"with the name {shown}": {"metadata": {"name": name}} for shown, name in _NAMES.items()}),
    *cases("v1/pods", named(), {f"with the name {shown}": {"metadata": {"name": name}, "spec": {
        "schedulerName": "x", "containers": [{"name": "c", "image": "c:1"}]}} for shown, name in _NAMES.items()}),
]  # fmt: skip

_ODD: Document = {
    "name": "odd",
    "labels": {"a b": "x"},
    "annotations": {"a b": "x"},
    "finalizers": ["a", "example.com", "a b/x", "a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s"}, {"apiVersion": "", "kind": "", "name": "", "uid": ""}],
}  # fmt: skip
ADMISSION += [
    Case(f"{path.split('/')[-1]} made with odd metadata {shown}", path, {**body, "metadata": _ODD})
    for path, full in _EVERY.items()
    for shown, body in {"alone": full, "and nothing else": {}}.items()
]
