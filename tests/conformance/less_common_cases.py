"""Objects of the kinds that are written less often, each with the mistakes that upstream's validation names.

First a rule by itself, then several mistakes in one object, for the order of the causes; then updates and statuses.
"""

from __future__ import annotations

from typing import Any

from builtin_case import Document, cases, named, specs, updates
from less_common_admission import ADMISSION
from less_common_networks import NETWORKS
from less_common_storage import STORAGE
from less_common_workloads import WORKLOADS

_RBAC = "rbac.authorization.k8s.io"


def _limits(**item: Any) -> Document:
    return {"spec": {"limits": [item]}}


AMOUNTS = [
    *cases("v1/limitranges", named(), {
        "of nothing": {"spec": {}},
        "of no limits": {"spec": {"limits": []}},
        "of no type": _limits(),
        "of an unknown type": _limits(type="X"),
        "of a qualified type": _limits(type="a.b/C", max={"x": "1"}),
        "of an odd type": _limits(type="a b/c"),
        "of a type twice": {"spec": {"limits": [{"type": "Pod"}, {"type": "Pod"}]}},
        "of a Pod with defaults": _limits(type="Pod", default={"cpu": "1"}, defaultRequest={"cpu": "2"}, max={"cpu": "1"}),
        "of an odd resource": _limits(type="Container", max={"bogus": "1"}),
        "of an odd resource of a claim": _limits(type="PersistentVolumeClaim", max={"bogus name": "1"}),
        "of a claim without storage": _limits(type="PersistentVolumeClaim", max={"cpu": "1"}),
        "of a claim of nothing": _limits(type="PersistentVolumeClaim"),
        "of min over max": _limits(type="Container", min={"cpu": "2"}, max={"cpu": "1500m"}),
        "of min over default": _limits(type="Container", min={"cpu": "2"}, default={"cpu": "1"}),
        "of min over request": _limits(type="Container", min={"cpu": "2"}, defaultRequest={"cpu": "1"}),
        "of request over max": _limits(type="Container", max={"cpu": "1"}, defaultRequest={"cpu": "2"}),
        "of request over default": _limits(type="Container", default={"memory": "1Gi"}, defaultRequest={"memory": "2Gi"}),
        "of default over max": _limits(type="Container", max={"memory": "1.5Gi"}, default={"memory": "2Gi"}),
        "of a small ratio": _limits(type="Container", maxLimitRequestRatio={"cpu": "500m"}),
        "of a large ratio": _limits(type="Container", maxLimitRequestRatio={"cpu": "10"}, min={"cpu": "1"}, max={"cpu": "2"}),
        "of a ratio and no min": _limits(type="Container", maxLimitRequestRatio={"cpu": "10"}, min={"cpu": "0"}, max={"cpu": "2"}),
        "of everything wrong": _limits(type="Container", maxLimitRequestRatio={"cpu": "0.5"}, min={"cpu": "4"}, max={"cpu": "1"},
                                       default={"cpu": "3"}, defaultRequest={"cpu": "3.5"}),
        "of devices": _limits(type="Container", default={"a.b/c": "1"}, defaultRequest={"a.b/c": "2"}),
        "of huge pages": _limits(type="Container", default={"hugepages-2Mi": "2Mi"}, defaultRequest={"hugepages-2Mi": "4Mi"}),
        "of negative amounts": _limits(type="Container", max={"cpu": "-1"}, min={"cpu": "-2"}),
        "of storage of a container": _limits(type="Container", max={"storage": "1"}),
        "of pods": _limits(type="Pod", max={"pods": "1"}),
        "of a bad name": {**named("A_"), "spec": {"limits": [{"type": "X"}]}},
    }),
    *updates("v1/limitranges", named(spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}), {
        "to wrong": {"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}},
        "of labels": {"metadata": {"labels": {"a": "b"}}},
    }),
    *specs("v1/resourcequotas", {}, {
        **{f"of {resource} {amount}": {"hard": {resource: amount}} for resource, amount in {
            "bogus": "1", "count/pods": "1.5", "count/deployments.apps": "-1", "requests.cpu": "-1", "limits.bogus": "1",
            "requests.nvidia.com/gpu": "1", "requests.nvidia.com/mig": "1.5", "limits.nvidia.com/gpu": "1",
            "gold.storageclass.storage.k8s.io/requests.storage": "1Gi", "services.loadbalancers": "1.5", "storage": "1",
            "hugepages-2Mi": "2Mi", "requests.hugepages-2Mi": "2Mi", "limits.hugepages-2Mi": "2Mi", "requests.ephemeral-storage": "1",
            "a b/c": "1", "a/b/c": "1", "": "1", "resourcequotas": "1.0001", "secrets": "1m", "count/": "1", "replicationcontrollers": "0",
            "secrets.x": "1", "x.deviceclass.resource.k8s.io/devices": "1.5", "configmaps": "1e3"}.items()},
        "of nothing": {},
        "of an unknown scope": {"scopes": ["X"], "hard": {"pods": "1"}},
        "of scopes against each other": {"scopes": ["BestEffort", "NotBestEffort", "Terminating", "NotTerminating"]},
        "of a scope that does not fit": {"scopes": ["BestEffort"], "hard": {"cpu": "1", "secrets": "1"}},
        "of a scope that does not fit extended": {"scopes": ["BestEffort"], "hard": {"requests.a.b/c": "1"}},
        "of a scope twice": {"scopes": ["BestEffort", "BestEffort"]},
        "of scopes and a selector": {"scopes": ["X"], "scopeSelector": {"matchExpressions": [{"scopeName": "Y", "operator": "Z"}]}},
        "of an empty selector": {"scopeSelector": {}},
        "of an empty expression": {"scopeSelector": {"matchExpressions": [{}]}},
        "of a selector with values": {"scopeSelector": {"matchExpressions": [
            {"scopeName": "BestEffort", "operator": "In", "values": ["a"]}, {"scopeName": "NotBestEffort", "operator": "Exists",
                                                                             "values": ["a"]}]}, "hard": {"cpu": "1"}},
        "of classes": {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}]},
                       "hard": {"pods": "1"}},
        "of classes without values": {"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "NotIn"}, {"scopeName": "PriorityClass", "operator": "DoesNotExist", "values": ["a"]},
            {"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}, "hard": {"pods": "1"}},
        "of classes of volumes": {"scopeSelector": {"matchExpressions": [
            {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["a"]}]}, "hard": {"requests.storage": "1"}},
        "of classes of volumes and Pods": {"scopeSelector": {"matchExpressions": [
            {"scopeName": "VolumeAttributesClass", "operator": "Exists"}]}, "hard": {"pods": "1"}},
        "of affinity": {"scopes": ["CrossNamespacePodAffinity"], "hard": {"pods": "1", "requests.cpu": "1"}},
    }),
    *updates("v1/resourcequotas", named(spec={"hard": {"pods": "1"}, "scopes": ["BestEffort"]}), {
        "of scopes": {"spec": {"scopes": ["NotBestEffort"], "hard": {"cpu": "1"}}},
        "of scopes to nothing": {"spec": {"scopes": None}},
        "of scopes to a list of nothing": {"spec": {"scopes": []}},
        "to a selector": {"spec": {"scopeSelector": {"matchExpressions": [{"scopeName": "X", "operator": "Exists"}]}}},
    }),
    *updates("v1/resourcequotas", named(spec={"hard": {"pods": "1"}}), {
        "of hard": {"status": {"hard": {"bogus": "-1.5"}}},
        "of used": {"status": {"hard": {"pods": "1.5"}, "used": {"pods": "-1"}}},
    }, "status"),
    *cases("v1/serviceaccounts", named(), {
        "of odd secrets": {"secrets": [{"name": "A_"}, {}, {"kind": "K", "namespace": "n"}], "imagePullSecrets": [{}, {"name": "A_"}]},
        "of a dotted name": named("a.b"),
        "of a bad name": named("A_"),
    }),
    *updates("v1/serviceaccounts", named(), {
        "to odd secrets": {"secrets": [{"name": "A_", "kind": "K", "uid": "u"}], "automountServiceAccountToken": True},
    }),
]  # fmt: skip

_ROLE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
_SUBJECT = {"kind": "User", "name": "u", "apiGroup": _RBAC}
_REF = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "r"}
PERMISSIONS = [
    *[
        case
        for path in (f"{_RBAC}/v1/roles", f"/{_RBAC}/v1/clusterroles")
        for case in [
            *cases(path, named("less"), {
                f"of {name}": {"rules": [rule]} for name, rule in {
                    "nothing": {},
                    "no verbs": {**_ROLE, "verbs": []},
                    "empty verbs": {**_ROLE, "verbs": [""]},
                    "paths": {"verbs": ["get"], "nonResourceURLs": ["x", "/a*b", ""]},
                    "paths and groups": {"verbs": [], "nonResourceURLs": ["/x"], "apiGroups": [""]},
                    "paths and names": {"verbs": ["get"], "nonResourceURLs": ["/x"], "resourceNames": ["a"]},
                    "no groups": {"verbs": ["get"], "resources": ["pods"]},
                    "no resources": {"verbs": ["get"], "apiGroups": [""]},
                    "names only": {"verbs": ["get"], "resourceNames": ["a"]},
                    "odd names": {**_ROLE, "resources": ["a b", "*/*/*", ""], "apiGroups": ["A_"], "resourceNames": [""]},
                }.items()
            }),
            *cases(path, named("less"), {"of the name %": {"metadata": {"name": "a%b"}}, "of the name ..": {"metadata": {"name": ".."}},
                                          "of a bad name and rules": {"metadata": {"name": "a%b"}, "rules": [{}]},
                                          "of rules of null": {"rules": None}, "without rules": {}}),
            *updates(path, named("less", rules=[_ROLE]), {
                "of rules": {"rules": [{"verbs": []}]}, "of rules to null": {"rules": None}, "of labels": {"metadata": {"labels": {"a": "b"}}}}),
        ]
    ],
    *cases(f"/{_RBAC}/v1/clusterroles", named("less"), {
        "of an empty aggregation": {"aggregationRule": {}},
        "of an aggregation of nothing": {"aggregationRule": {"clusterRoleSelectors": []}, "rules": [{}]},
        "of an aggregation of all": {"aggregationRule": {"clusterRoleSelectors": [{}]}},
        "of an odd aggregation": {"aggregationRule": {"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "a", "operator": "X"}]}, {"matchLabels": {"a": "b"}}]}},
    }),
    *updates(f"/{_RBAC}/v1/clusterroles", named("less", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"less": "common"}}]}), {
        "of the aggregation": {"aggregationRule": {"clusterRoleSelectors": []}},
        "to no aggregation": {"aggregationRule": None, "rules": [{}]},
    }),
    *[
        case
        for path in (f"{_RBAC}/v1/rolebindings", f"/{_RBAC}/v1/clusterrolebindings")
        for case in [
            *cases(path, named("less", roleRef=_REF, subjects=[_SUBJECT]), {
                "of no role": {"roleRef": {}},
                "of an odd role": {"roleRef": {"apiGroup": "X", "kind": "X", "name": "a/b"}},
                "of a role of no group": {"roleRef": {"kind": "ClusterRole", "name": "r"}},
                "of a Role": {"roleRef": {**_REF, "kind": "Role"}},
                "of no subjects": {"subjects": None},
                **{f"of subject {name}": {"subjects": [subject]} for name, subject in {
                    "nothing": {},
                    "an account": {"kind": "ServiceAccount", "name": "a"},
                    "an odd account": {"kind": "ServiceAccount", "name": "A_", "namespace": "N_", "apiGroup": _RBAC},
                    "an unnamed account": {"kind": "ServiceAccount", "name": "", "namespace": ""},
                    "a user with a namespace": {"kind": "User", "name": "u", "namespace": "n"},
                    "a user of another group": {"kind": "User", "name": "", "apiGroup": "x"},
                    "a group": {"kind": "Group", "name": "g"},
                    "a group of an empty group": {"kind": "Group", "name": "g", "apiGroup": ""},
                    "an unknown kind": {"kind": "X", "name": "x", "apiGroup": "y"},
                }.items()},
                "of a bad name": {"metadata": {"name": "a%b"}, "roleRef": {}, "subjects": [{}]},
            }),
            *updates(path, named("less", roleRef=_REF, subjects=[_SUBJECT]), {
                "of the role": {"roleRef": {"name": "s"}, "subjects": [{}]},
                "of the role to nothing": {"roleRef": None},
                "of subjects to null": {"subjects": None},
                "of the kind": {"roleRef": {"kind": "X"}},
            }),
        ]
    ],
]  # fmt: skip

_SYSTEM_CLASS = "/scheduling.k8s.io/v1/priorityclasses"
_LEASES = "coordination.k8s.io/v1/leases"
_FLOW = "/flowcontrol.apiserver.k8s.io/v1"
_SCHEMA = {"priorityLevelConfiguration": {"name": "catch-all"}}
_BUDGETS = "policy/v1/poddisruptionbudgets"
_RUNTIMES = "/node.k8s.io/v1/runtimeclasses"


def _level(**limited: Any) -> Document:
    return {"limited": {"limitResponse": {"type": "Reject"}, **limited}}


def _queues(**queuing: Any) -> Document:
    return _level(limitResponse={"type": "Queue", "queuing": queuing})


def _flow(subject: Document | None = None, **rule: Any) -> Document:
    given = {"kind": "User", "user": {"name": "u"}} if subject is None else subject
    resource = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    return {"rules": [{"subjects": [given], "resourceRules": [resource], **rule}]}


def _resource(**fields: Any) -> Document:
    base = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    return _flow(resourceRules=[{**base, **fields}])


REST = [
    *cases(_SYSTEM_CLASS, named("less", value=1), {
        "of the largest value": {"value": 1_000_000_000},
        "of one more": {"value": 1_000_000_001},
        "of a negative value": {"value": -2_000_000_000},
        "of an empty policy": {"preemptionPolicy": ""},
        "of the system": named("system-less", value=2_000_000_000, preemptionPolicy="X"),
        "of a bad name": named("A_", value=2_000_000_000, preemptionPolicy="X"),
        "by default": {"globalDefault": True},
    }),
    *updates(_SYSTEM_CLASS, named("less", value=1), {
        "of the text": {"description": "x", "metadata": {"labels": {"a": "b"}}},
        "of the value": {"value": 2, "preemptionPolicy": "X", "globalDefault": True},
        "of the policy to nothing": {"preemptionPolicy": None, "description": "y"},
    }),
    *specs(_LEASES, {}, {
        "of numbers": {"leaseDurationSeconds": -1, "leaseTransitions": -1},
        "of an unknown strategy": {"strategy": "X"},
        "of a qualified strategy": {"strategy": "a.b/c"},
        "of a preferred holder": {"preferredHolder": "a"},
        "of an empty holder": {"holderIdentity": "", "preferredHolder": ""},
        "of an odd time": {"renewTime": "yesterday"},
    }),
    *updates(_LEASES, named(spec={"holderIdentity": "a"}), {
        "of numbers": {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}, "to nothing": {"spec": None}}),
    *cases(_RUNTIMES, named("less", handler="h"), {
        "of a dotted handler": {"handler": "a.b"},
        "of a long handler": {"handler": "a" * 64},
        "of an empty scheduling": {"scheduling": {}, "overhead": {}},
        "of odd labels": {"scheduling": {"nodeSelector": {"a b": "c d"}}},
        "of tolerations twice": {"scheduling": {"tolerations": [{"key": "a", "operator": "Exists"}] * 2}},
        "of tolerations twice with seconds": {"scheduling": {"tolerations": [
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 6}]}},
        "of odd tolerations": {"scheduling": {"tolerations": [{"operator": "Exists", "value": "a"}, {"key": "a b", "effect": "X"},
                                                              {"tolerationSeconds": 5, "effect": "NoSchedule", "key": "a"}]}},
        "of an odd overhead": {"overhead": {"podFixed": {"a b": "1"}}},
        "of a fractional device": {"overhead": {"podFixed": {"a.b/c": "1.5"}}},
        "of huge pages": {"overhead": {"podFixed": {"hugepages-2Mi": "1Mi"}}},
        "of everything wrong": {"handler": "", "overhead": {"podFixed": {"cpu": "-1"}}, "scheduling": {"nodeSelector": {"a b": "c"},
                                "tolerations": [{"operator": "X"}]}},
    }),
    *updates(_RUNTIMES, named("less", handler="h"), {
        "of the handler": {"handler": "A_", "overhead": {"podFixed": {"cpu": "-1"}}},
        "of the overhead": {"overhead": {"podFixed": {"cpu": "-1"}}, "scheduling": {"nodeSelector": {"a b": "c"}}},
        "of the handler to nothing": {"handler": ""},
    }),
    *specs(_BUDGETS, {"selector": {"matchLabels": {"app": "a"}}}, {
        "of both": {"minAvailable": "x", "maxUnavailable": -1},
        "of much": {"minAvailable": "101%"},
        "of a negative share": {"minAvailable": "-1%"},
        "of an odd share": {"maxUnavailable": "1.5%"},
        "of an odd selector": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}, "minAvailable": 0},
        "of an empty policy": {"unhealthyPodEvictionPolicy": "", "minAvailable": 1},
        "of no selector": {"selector": None, "minAvailable": 1},
        "of a bad name": {"minAvailable": 1, "maxUnavailable": None},
    }),
    *updates(_BUDGETS, named(spec={"minAvailable": 1}), {
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "of both": {"spec": {"maxUnavailable": "200%", "unhealthyPodEvictionPolicy": "X"}},
    }),
    *updates(_BUDGETS, named(spec={"minAvailable": 1}), {
        "of numbers": {"status": {"disruptionsAllowed": -1, "currentHealthy": -2, "desiredHealthy": -3, "expectedPods": -4}},
        "of conditions": {"status": {"conditions": [{"type": "a b", "status": "X", "reason": "r r", "lastTransitionTime": None}]}},
    }, "status"),
    *specs(f"{_FLOW}/prioritylevelconfigurations", {"type": "Limited"}, {
        "of nothing": {"type": ""},
        "of an unknown type": {"type": "X", **_level()},
        "of no limits": {},
        "of an exempt type": {"type": "Exempt"},
        "of both": {**_level(), "exempt": {}},
        "of negative shares": _level(nominalConcurrencyShares=-1, lendablePercent=101, borrowingLimitPercent=-1),
        "of no shares": _level(nominalConcurrencyShares=0, lendablePercent=-1),
        "of an unknown response": _level(limitResponse={"type": "X"}),
        "of an empty response": _level(limitResponse={}),
        "of queues without any": _level(limitResponse={"type": "Queue"}),
        "of rejected queues": _level(limitResponse={"type": "Reject", "queuing": {}}),
        "of an unknown type of queues": _level(limitResponse={"type": "X", "queuing": {"queues": -1}}),
        "of empty queues": _queues(),
        "of queues of zero": _queues(queues=0, handSize=0, queueLengthLimit=0),
        "of fewer queues than none": _queues(queues=-5, handSize=-2, queueLengthLimit=1),
        "of negative queues": _queues(queues=-1, handSize=-2, queueLengthLimit=-3),
        "of many queues": _queues(queues=10_000_001, handSize=10_000_002),
        "of a large hand": _queues(queues=64, handSize=65),
        "of much entropy": _queues(queues=512, handSize=10),
    }, "less"),
    *cases(f"{_FLOW}/prioritylevelconfigurations", named("less"), {
        "without a spec": {},
        "named exempt": named("exempt", spec={"type": "Limited", **_level()}),
        "named catch-all": named("catch-all", spec={"type": "Limited", **_queues(queues=8)}),
    }),
    *updates(f"{_FLOW}/prioritylevelconfigurations", named("less", spec={"type": "Limited", **_level()}), {
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "of the response": {"spec": {"limited": {"limitResponse": {"type": "Queue"}}}},
        "to queues": {"spec": {"limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}},
        "to exempt": {"spec": {"type": "Exempt", "limited": None}},
    }),
    *updates(f"{_FLOW}/prioritylevelconfigurations", named("less", spec={"type": "Limited", **_level()}), {
        "of conditions": {"status": {"conditions": [{"type": "a", "status": "X"}, {"type": "a", "status": "True"}]}},
        "of empty conditions": {"status": {"conditions": [{}]}},
    }, "status"),
    *specs(f"{_FLOW}/flowschemas", _SCHEMA, {
        "of no level": {"priorityLevelConfiguration": {"name": ""}},
        "of an odd level": {"priorityLevelConfiguration": {"name": "A_"}},
        "of no precedence": {"matchingPrecedence": 0},
        "of a negative precedence": {"matchingPrecedence": -1},
        "of a high precedence": {"matchingPrecedence": 10_001},
        "of the first precedence": {"matchingPrecedence": 1},
        "of an unknown method": {"distinguisherMethod": {"type": "X"}},
        "of an empty method": {"distinguisherMethod": {}},
        "of an empty rule": {"rules": [{}]},
        "of no subject": _flow({}),
        "of an unknown subject": _flow({"kind": "X", "user": {"name": ""}}),
        "of a user and a group": _flow({"kind": "User", "user": {"name": ""}, "group": {"name": "g"}, "serviceAccount": {}}),
        "of no user": _flow({"kind": "User"}),
        "of a group of no name": _flow({"kind": "Group", "group": {}}),
        "of an account of everything": _flow({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "*"}}),
        "of an odd account": _flow({"kind": "ServiceAccount", "serviceAccount": {"name": "A_", "namespace": "N_"}}),
        "of an account of nothing": _flow({"kind": "ServiceAccount", "serviceAccount": {}}),
        "of no verbs": _resource(verbs=[]),
        "of an unknown verb": _resource(verbs=["x", "get"]),
        "of all verbs and one": _resource(verbs=["*", "get"]),
        "of no groups": _resource(apiGroups=[], resources=[]),
        "of all groups and one": _resource(apiGroups=["*", "a"], resources=["*", "b"]),
        "of no namespaces": _resource(namespaces=[]),
        "of the cluster": _resource(namespaces=[], clusterScope=True),
        "of all namespaces and one": _resource(namespaces=["*", "a"]),
        "of odd namespaces": _resource(namespaces=["A_", ""]),
        "of odd paths": _flow(resourceRules=[], nonResourceRules=[{"verbs": ["get"], "nonResourceURLs": [
            "", "a", "/a b", "/a//b", "/a*", "/a/*", "/*/b", "/"]}]),
        "of no paths": _flow(resourceRules=[], nonResourceRules=[{}]),
        "of all paths and one": _flow(resourceRules=[], nonResourceRules=[{"verbs": ["*"], "nonResourceURLs": ["*", "/a"]}]),
        "of everything wrong": {"matchingPrecedence": -1, "priorityLevelConfiguration": {"name": ""}, "distinguisherMethod": {"type": "X"},
                                "rules": [{"subjects": [{"kind": "X"}]}, {"resourceRules": [{}]}]},
    }, "less"),
    *cases(f"{_FLOW}/flowschemas", named("less"), {
        "without a spec": {}, "named exempt": named("exempt", spec={**_SCHEMA, "matchingPrecedence": 5}),
        "named catch-all": named("catch-all", spec={**_SCHEMA, **_flow(), "distinguisherMethod": {"type": "ByUser"}}),
        "named with capitals": named("A_", spec=_SCHEMA)}),
    *updates(f"{_FLOW}/flowschemas", named("less", spec=_SCHEMA), {
        "of precedence": {"spec": {"matchingPrecedence": 5}},
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "to wrong": {"spec": {"matchingPrecedence": -5, "rules": [{}]}},
    }),
    *updates(f"{_FLOW}/flowschemas", named("less", spec=_SCHEMA), {
        "of conditions": {"status": {"conditions": [{"type": "a", "status": "True"}, {"type": "a", "status": ""}]}},
    }, "status"),
]  # fmt: skip

_AUTOSCALERS = "autoscaling/v2/horizontalpodautoscalers"
_SCALED = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
_SERVICES = "/apiregistration.k8s.io/v1/apiservices"
_SERVED = {
    "group": "less.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
    "insecureSkipTLSVerify": True, "service": {"name": "s", "namespace": "default"},
}  # fmt: skip


def _metric(kind: str, **fields: Any) -> Document:
    return {"metrics": [{"type": kind, **fields}]}


def _rules(**rules: Any) -> Document:
    return {"behavior": {"scaleUp": rules}}


OTHERS = [
    *specs(_AUTOSCALERS, _SCALED, {
        "of negative numbers": {"maxReplicas": -1, "minReplicas": -2},
        "of min zero and a metric": {"minReplicas": 0, **_metric("External", external={
            "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}})},
        "of an odd target": {"scaleTargetRef": {"apiVersion": "a/b/c", "kind": "K/", "name": ".."}},
        "of a target of an empty version": {"scaleTargetRef": {"apiVersion": "", "kind": "", "name": ""}},
        "of a target of the core": {"scaleTargetRef": {"apiVersion": "v1", "kind": "ReplicationController", "name": "r"}},
        "of an unknown metric": _metric("X"),
        "of an empty metric": _metric(""),
        "of an object without one": _metric("Object"),
        "of an empty object": _metric("Object", object={}),
        "of an odd object": _metric("Object", object={"describedObject": {"kind": "K/", "name": "a/b", "apiVersion": "a/b/c"},
                                                      "metric": {"name": "a/b"}, "target": {"type": "X", "value": "-1", "averageValue": "0"}}),
        "of Pods": _metric("Pods", pods={"metric": {"name": ""}, "target": {"type": "Value", "value": "1"}}),
        "of an external metric": _metric("External", external={"metric": {"name": "m"}, "target": {
            "type": "Value", "value": "1", "averageValue": "1"}}),
        "of an empty external metric": _metric("External", external={}),
        "of a container": _metric("ContainerResource", containerResource={"name": "cpu", "container": "C_", "target": {
            "type": "Utilization", "averageUtilization": 0}}),
        "of an empty container": _metric("ContainerResource", containerResource={}),
        "of an odd resource of a container": _metric("ContainerResource", containerResource={
            "name": "bogus", "container": "c", "target": {"type": "AverageValue", "averageValue": "1", "averageUtilization": 5}}),
        "of a resource": _metric("Resource", resource={"name": "bogus", "target": {"type": "Utilization", "averageUtilization": -5}}),
        "of an empty resource": _metric("Resource", resource={}),
        "of a resource of both": _metric("Resource", resource={"name": "cpu", "target": {
            "type": "Utilization", "averageUtilization": 5, "averageValue": "1"}}),
        "of two sources": _metric("Pods", pods={"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}},
                                  resource={}),
        "of another source": _metric("Pods", resource={}),
        "of a window": _rules(stabilizationWindowSeconds=-1),
        "of a long window": _rules(stabilizationWindowSeconds=3601, selectPolicy="X", policies=[]),
        "of no policies": _rules(selectPolicy="Disabled", policies=[]),
        "of an odd policy": _rules(policies=[{}, {"type": "X", "value": -1, "periodSeconds": 1801}]),
        "of a policy": _rules(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1800}]),
        "of a negative tolerance": _rules(tolerance="-0.1"),
        "of a tolerance": _rules(tolerance="0.05"),
        "of everything wrong": {"minReplicas": 5, "maxReplicas": 0, "scaleTargetRef": {"kind": "", "name": ""}, **_metric("X"),
                                "behavior": {"scaleDown": {"policies": []}, "scaleUp": {"selectPolicy": ""}}},
    }),
    *updates(_AUTOSCALERS, named(spec=_SCALED), {
        "of numbers": {"spec": {"minReplicas": 5}},
        "of the target": {"spec": {"scaleTargetRef": {"apiVersion": ""}}},
        "of labels": {"metadata": {"labels": {"a": "b"}}},
    }),
    *updates(_AUTOSCALERS, named(spec=_SCALED), {
        "of numbers": {"status": {"currentReplicas": -1, "desiredReplicas": -2}}}, "status"),
    *specs(_SERVICES, _SERVED, {
        "of no group": {"group": ""},
        "of an odd group": {"group": "A_"},
        "of an odd version": {"version": "V1"},
        "of no version": {"version": ""},
        "of no priorities": {"groupPriorityMinimum": 0, "versionPriority": 0},
        "of high priorities": {"groupPriorityMinimum": 20001, "versionPriority": 1001},
        "of an empty service": {"service": {}},
        "of a service of a high port": {"service": {"name": "A_", "namespace": "N_", "port": 70000}},
        "of a service of port zero": {"service": {"name": "s", "namespace": "n", "port": 0}},
        "of a bundle": {"caBundle": "YQ=="},
        "of no service": {"service": None},
        "of no service with a bundle": {"service": None, "caBundle": "YQ==", "insecureSkipTLSVerify": False},
        "of nothing": {"group": None, "version": None, "groupPriorityMinimum": None, "versionPriority": None},
    }, "v1.less.example.com"),
    *cases(_SERVICES, named("v1.less.example.com", spec=_SERVED), {
        "of another name": {"metadata": {"name": "x"}}, "of a bad name": {"metadata": {"name": "a%b"}}, "without a spec": {"spec": None}}),
]  # fmt: skip

LESS_COMMON = [*NETWORKS, *WORKLOADS, *AMOUNTS, *STORAGE, *PERMISSIONS, *REST, *OTHERS, *ADMISSION]
