"""What makes Pods, and autoscalers of the first version, with the mistakes that upstream's validation names."""

from __future__ import annotations

from builtin_case import Case, cases, named, specs, updates

_LABELS = {"app": "a"}
_POD = {"containers": [{"name": "c", "image": "c:1"}]}
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD}
_WRONG_POD = {
    "containers": [],
    "restartPolicy": "X",
    "activeDeadlineSeconds": 0,
    "ephemeralContainers": [{"name": "e", "image": "e"}],
}


_CONTROLLER = {"template": _TEMPLATE, "replicas": 0}
_WORKLOAD = {"selector": {"matchLabels": _LABELS}, "template": _TEMPLATE}
_IDLE = {**_WORKLOAD, "replicas": 0}
_WRONG_TEMPLATE = {"metadata": {"labels": {"a b": "c"}, "annotations": {"a b": "c"}}, "spec": _WRONG_POD}
_COUNTS = {"status": {
    "replicas": -1, "readyReplicas": 3, "availableReplicas": 4, "fullyLabeledReplicas": 2, "observedGeneration": -1,
    "updatedReplicas": -2, "currentReplicas": 7, "unavailableReplicas": -1, "collisionCount": -1, "terminatingReplicas": -1}}  # fmt: skip
WORKLOADS = [
    *specs("v1/replicationcontrollers", _CONTROLLER, {
        "of an empty selector": {"selector": {}},
        "of another selector": {"selector": {"b": "c"}},
        "without a template": {"template": None, "selector": {"a": "b"}},
        "without anything": {"template": None, "replicas": None},
        "of labels of null": {"template": {"spec": _POD}, "selector": {"a": "b"}},
        "of empty labels": {"template": {"metadata": {"labels": {}}, "spec": _POD}, "selector": {"a": "b"}},
        "of a template without labels or selector": {"template": {"spec": _POD}},
        "of negative numbers": {"replicas": -1, "minReadySeconds": -2, "selector": {"b": "c"}},
        "of a wrong template": {"template": _WRONG_TEMPLATE, "selector": {"a b": "c"}},
        "of a bad selector": {"selector": {"a b": "c"}},
    }),
    *updates("v1/replicationcontrollers", named(spec=_CONTROLLER), {
        "of the selector": {"spec": {"selector": {"b": "c"}, "minReadySeconds": -1}},
        "of labels to nothing": {"spec": {"template": {"metadata": {"labels": {"app": None}}}}},
        "of labels": {"metadata": {"labels": {"b": "c"}}},
        "of the template": {"spec": {"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 5}}}},
        "to no template": {"spec": {"template": None}},
    }),
    *updates("v1/replicationcontrollers", named(spec=_CONTROLLER), {"of wrong counts": _COUNTS}, "status"),
    *updates("apps/v1/replicasets", named(spec=_IDLE), {"of wrong counts": _COUNTS}, "status"),
    *updates("apps/v1/deployments", named(spec=_IDLE), {"of wrong counts": _COUNTS}, "status"),
    *updates("apps/v1/statefulsets", named(spec={**_IDLE, "serviceName": "s"}), {"of wrong counts": {
        "status": {**_COUNTS["status"], "collisionCount": 3}}}, "status"),  # the controller writes 0 soon
    *updates("apps/v1/daemonsets", named(spec={**_WORKLOAD, "template": {
        **_TEMPLATE, "spec": {**_POD, "nodeSelector": {"no": "node"}}}}), {"of wrong counts": {"status": dict.fromkeys(("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"), -1)}}, "status"),
    *[
        case
        for path, base in {
            "apps/v1/deployments": _IDLE, "apps/v1/replicasets": _IDLE, "apps/v1/statefulsets": {**_IDLE, "serviceName": "s"},
            "apps/v1/daemonsets": {**_WORKLOAD, "template": {**_TEMPLATE, "spec": {**_POD, "nodeSelector": {"no": "node"}}}},
        }.items()
        for case in [
            *specs(path, base, {
                "of empty labels": {"template": {"metadata": {"labels": {}}, "spec": _POD}},
                "of labels of null": {"template": {"metadata": {}, "spec": _POD}},
                "of no metadata": {"template": {"spec": _POD}},
                "of an empty template": {"template": {}},
                "of a wrong template": {"template": _WRONG_TEMPLATE},
                "of an empty selector and other labels": {"selector": {"matchLabels": {}, "matchExpressions": []}},
                "of a selector with odd values": {"selector": {"matchLabels": {"app": "a b"}}},
            }),
            *updates(path, named(spec=base), {
                "of template labels to nothing": {"spec": {"template": {"metadata": {"labels": {"app": None}}}}},
                "of template labels to null": {"spec": {"template": {"metadata": {"labels": None}}}},
                "of template metadata to null": {"spec": {"template": {"metadata": None}}},
                "of the selector to nothing": {"spec": {"selector": {"matchLabels": {"app": None}}}},
                "of the selector to null": {"spec": {"selector": None}},
            }),
        ]
    ],
    *cases("v1/podtemplates", named(template=_TEMPLATE), {
        "of nothing": {"template": {}},
        "without a template": {"template": None},
        "of a wrong template": {"template": _WRONG_TEMPLATE},
        "that never restarts": {"template": {"spec": {**_POD, "restartPolicy": "Never", "activeDeadlineSeconds": 5}}},
    }),
    *updates("v1/podtemplates", named(template=_TEMPLATE), {
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "of the template": {"template": {"spec": {"containers": [{"name": "d", "image": "d:1"}]}}},
        "to a wrong template": {"template": _WRONG_TEMPLATE},
    }),
    *cases("apps/v1/controllerrevisions", named(revision=1, data={"a": 1}), {
        "without data": {"data": None},
        "of a list": {"data": [1]},
        "of a text": {"data": "a"},
        "of empty data": {"data": {}},
        "of a negative number": {"revision": -1, "data": None},
        "of zero": {"revision": 0},
        "of a bad name": {"metadata": {"name": "A_"}, "revision": -1},
    }),
    *updates("apps/v1/controllerrevisions", named(revision=1, data={"a": 1}), {
        "of data": {"data": {"a": 2}, "revision": -1},
        "of the number": {"revision": 5},
        "of the number and labels": {"revision": 0, "metadata": {"labels": {"a": "b"}}},
        "to no data": {"data": None},
    }),
    *[
        Case(f"{path.split('/')[-1]} of name {shown}", path, {**named(name), **body})
        for path, body in {
            "batch/v1/cronjobs": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": {
                "spec": {**_POD, "restartPolicy": "Never"}}}}}},
            "batch/v1/jobs": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
            "apps/v1/statefulsets": {"spec": {**_IDLE, "serviceName": "s"}},
            "apps/v1/deployments": {"spec": _IDLE},
            "v1/replicationcontrollers": {"spec": _CONTROLLER},
        }.items()
        for shown, name in {"52 letters": "a" * 52, "63 letters": "a" * 63, "64 letters": "a" * 64, "a dot": "a.b",
                            "253 letters": "a" * 253, "254 letters": "a" * 254, "capitals": "A_"}.items()
    ],
    *specs("batch/v1/cronjobs", {"schedule": "@daily", "jobTemplate": {"spec": {"template": {
        "spec": {**_POD, "restartPolicy": "Never"}}}}}, {
        "of everything wrong": {"schedule": "", "timeZone": "", "concurrencyPolicy": "", "startingDeadlineSeconds": -1,
                                "successfulJobsHistoryLimit": -1, "failedJobsHistoryLimit": -1,
                                "jobTemplate": {"spec": {"parallelism": -1, "template": {"spec": _WRONG_POD}}}},
        "of a spaced zone": {"timeZone": " Europe/Berlin"},
        "of a small zone": {"timeZone": "europe/berlin"},
        "of the zone of here": {"timeZone": "local"},
        "of a zone with dots": {"timeZone": "../Europe/Berlin"},
        "of a zone with a backslash": {"timeZone": "Europe\\Berlin"},
        "of a rooted zone": {"timeZone": "/Europe/Berlin"},
        "of a zone by its letters": {"timeZone": "EST5EDT"},
        "of a zone by distance": {"timeZone": "Etc/GMT+5"},
        "of a distance": {"timeZone": "UTC+5"},
        "of utc": {"timeZone": "UTC"},
        "of zulu": {"timeZone": "Zulu"},
        "of two zones": {"timeZone": "UTC", "schedule": "CRON_TZ=UTC @daily"},
        "of a bad zone in the schedule": {"schedule": "TZ=Nowhere 0 0 * * *"},
        "of a template with a selector": {"jobTemplate": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True,
                                                                   "template": {"spec": {**_POD, "restartPolicy": "Never"}}}}},
        "of a bad zone and schedule": {"timeZone": "X", "schedule": "* *"},
    }),
    *updates("batch/v1/cronjobs", named(spec={"schedule": "@daily", "suspend": True, "jobTemplate": {"spec": {"template": {
        "spec": {**_POD, "restartPolicy": "Never"}}}}}), {
        "of the zone": {"spec": {"timeZone": "X"}},
        "to a zone in the schedule": {"spec": {"schedule": "TZ=UTC 0 0 * * *"}},
        "of labels": {"metadata": {"labels": {"a": "b"}}},
        "of the zone to one": {"spec": {"timeZone": "Europe/Berlin"}},
    }),
]  # fmt: skip

_SHARES = (0, 1, -1, "0%", "00%", "5", "x", "101%", "-1%", "1.5%", "")
ROLLING = [
    Case(f"{path.split('/')[-1]} of {unavailable!r} and {surge!r}", path, named(spec={**base, field: {
        "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}}}))
    for path, field, base in (("apps/v1/deployments", "strategy", _IDLE), ("apps/v1/daemonsets", "updateStrategy", _WORKLOAD))
    for unavailable in _SHARES
    for surge in _SHARES
]  # fmt: skip
SETS = [
    *specs("apps/v1/statefulsets", _IDLE, {
        "of an odd service": {"serviceName": "A_"},
        "of a dotted service": {"serviceName": "a.b"},
        "of negative ordinals": {"ordinals": {"start": -1}},
        "of an empty retention": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "", "whenScaled": "X"}},
        "of half a retention": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}},
        "of an empty policy": {"podManagementPolicy": "", "updateStrategy": {"type": ""}},
        "of a partition": {"updateStrategy": {"rollingUpdate": {"partition": 5, "maxUnavailable": "x"}}},
        "of a negative partition": {"updateStrategy": {"rollingUpdate": {"partition": -5, "maxUnavailable": 0}}},
        "of a hostname": {"template": {**_TEMPLATE, "spec": {**_POD, "hostname": "H_", "subdomain": "S_"}}},
        "of claims of one name": {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}] * 2},
        "of a claim with an odd name": {"volumeClaimTemplates": [{"metadata": {"name": "A_"}, "spec": {}}]},
        "of a claim with an odd mode": {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {"accessModes": ["X"]}}]},
        "of everything wrong": {"podManagementPolicy": "X", "updateStrategy": {"type": "X"}, "replicas": -1, "minReadySeconds": -1,
                                "ordinals": {"start": -1}, "serviceName": "S_", "selector": {}, "revisionHistoryLimit": -1,
                                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "X", "whenScaled": "Y"}},
    }),
    *updates("apps/v1/statefulsets", named(spec={**_IDLE, "serviceName": "s"}), {
        "of the service and replicas": {"spec": {"serviceName": "S_", "replicas": -1}},
        "of the policy": {"spec": {"podManagementPolicy": "Parallel"}},
        "of the strategy": {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}},
        "of ordinals": {"spec": {"ordinals": {"start": 5}}},
        "of retention": {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "X"}}},
        "of claims": {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "a"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}]}},
        "of revisions": {"spec": {"revisionHistoryLimit": -1}},
    }),
    *specs("apps/v1/daemonsets", _WORKLOAD, {
        "of everything wrong": {"selector": {"matchLabels": {"a b": "c"}}, "minReadySeconds": -1, "revisionHistoryLimit": -1,
                                "updateStrategy": {"type": "X"}, "template": _WRONG_TEMPLATE},
        "on delete with shares": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": "x"}}},
    }),
    *specs("apps/v1/deployments", _IDLE, {
        "of everything wrong": {"selector": {"matchLabels": {"a b": "c"}}, "minReadySeconds": -1, "revisionHistoryLimit": -1,
                                "strategy": {"type": "X"}, "progressDeadlineSeconds": -1, "replicas": -1, "template": _WRONG_TEMPLATE},
        "of no time": {"progressDeadlineSeconds": 0},
    }),
    *specs("apps/v1/replicasets", _IDLE, {
        "of everything wrong": {"selector": {"matchLabels": {"a b": "c"}}, "minReadySeconds": -1, "replicas": -1,
                                "template": _WRONG_TEMPLATE}}),
]  # fmt: skip

_MANUAL = {"manualSelector": True, "selector": {"matchLabels": _LABELS}}
_ONCE = {**_POD, "restartPolicy": "Never"}
SETS += specs("batch/v1/jobs", _MANUAL, {
    "of empty labels": {"template": {"metadata": {"labels": {}}, "spec": _ONCE}},
    "of no labels": {"template": {"metadata": {}, "spec": _ONCE}},
    "of labels of null": {"template": {"metadata": {"labels": None}, "spec": _ONCE}},
    "of an empty selector by hand": {"selector": {"matchLabels": {}}, "template": {"metadata": {"labels": _LABELS}, "spec": _ONCE}},
    "of no selector by hand": {"selector": None, "template": {"metadata": {"labels": _LABELS}, "spec": _ONCE}},
    "of a bad selector by hand": {"selector": {"matchLabels": {"a b": "c"}}, "template": {"spec": _ONCE}},
})  # fmt: skip
_OLD_SCALED = {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
SETS += [
    Case(f"autoscaler v1 {name}", "autoscaling/v1/horizontalpodautoscalers", named(
        meta={"annotations": annotations}, spec={**_OLD_SCALED, **spec}))
    for name, annotations, spec in (
        ("of everything wrong", {}, {"minReplicas": 5, "maxReplicas": -1, "targetCPUUtilizationPercentage": 0, "scaleTargetRef": {
            "kind": "K/", "name": ""}}),
        ("of annotated metrics", {"autoscaling.alpha.kubernetes.io/metrics":
            '[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":50}}]'}, {"targetCPUUtilizationPercentage": 50}),
        ("of wrong annotated metrics", {"autoscaling.alpha.kubernetes.io/metrics": '[{"type":"X"}]'}, {}),
        ("of unreadable metrics", {"autoscaling.alpha.kubernetes.io/metrics": "["}, {}),
        ("of unreadable behavior", {"autoscaling.alpha.kubernetes.io/behavior": "x"}, {}),
        ("of unreadable conditions", {"autoscaling.alpha.kubernetes.io/conditions": "x"}, {}),
    )
]  # fmt: skip

WORKLOADS += [*ROLLING, *SETS]
