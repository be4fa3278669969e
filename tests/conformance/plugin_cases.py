"""Cases for the admission plugins: what is in a namespace, and the requests whose answers are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]
Request: TypeAlias = tuple[str, str, Body | None]
"""Method, path below the namespace (or from the root, if it starts with a slash), and body."""


@dataclass(frozen=True)
class Case:
    """What is stored first, with the labels of the namespace; then the requests.

    A request for a dry run is repeated until both servers answer alike, for kube-apiserver's plugins hear of an object a little later.
    """

    requests: list[Request]
    stored: list[Request] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)


def dry(method: str, path: str, body: Body) -> Request:
    return method, f"{path}?dryRun=All", body


def container(name: str = "c", **fields: Any) -> Body:
    return {"name": name, "image": "i", **fields}


def asking(name: str = "c", *, requests: Body | None = None, limits: Body | None = None, **fields: Any) -> Body:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value is not None}
    return container(name, resources=resources, **fields)


def pod(*containers: Body, name: str = "p", metadata: Body | None = None, **spec: Any) -> Body:
    return {
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def claim(name: str = "c", size: str = "1Gi", metadata: Body | None = None, **spec: Any) -> Body:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": name, **(metadata or {})}, "spec": wanted}


def limit_range(*limits: Body, name: str = "limits") -> Request:
    return "POST", "v1/limitranges", {"metadata": {"name": name}, "spec": {"limits": list(limits)}}


def of_containers(**fields: Any) -> Body:
    return {"type": "Container", **fields}


CPU = {"cpu": "100m"}
UNNAMED = {"name": "", "generateName": "generated-"}
PODS, CLAIMS, DEPLOYMENTS = "v1/pods", "v1/persistentvolumeclaims", "apps/v1/deployments"
CLASSES, INGRESS_CLASSES = "/apis/storage.k8s.io/v1/storageclasses", "/apis/networking.k8s.io/v1/ingressclasses"
DEFAULT = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"


def storage_class(name: str, *, annotations: Body | None = None, **fields: Any) -> Request:
    metadata = {"name": name, "annotations": annotations or {}}
    return "POST", CLASSES, {"metadata": metadata, "provisioner": "example.com/none", **fields}


def ingress_class(name: str, *, annotations: Body | None = None) -> Request:
    metadata = {"name": name, "annotations": annotations or {}}
    return "POST", INGRESS_CLASSES, {"metadata": metadata, "spec": {"controller": "example.com/none"}}


def ingress(name: str = "i", *, annotations: Body | None = None, **spec: Any) -> Body:
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    return {
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"defaultBackend": backend, **spec},
    }


BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
DEFAULTED: dict[str, Case] = {
    "claims without a default class": Case([dry("POST", CLAIMS, claim())]),
    "claims": Case(
        [
            dry("POST", CLAIMS, claim()),
            dry("POST", CLAIMS, claim(storageClassName="")),
            dry("POST", CLAIMS, claim(storageClassName="other")),
            dry("POST", CLAIMS, claim(metadata={"annotations": {BETA_CLASS: "beta"}})),
            dry("POST", CLAIMS, claim(metadata={"annotations": {BETA_CLASS: ""}})),
            dry("POST", CLAIMS, claim(metadata={"finalizers": ["a.io/b"]})),
            dry("POST", CLAIMS, claim(metadata={"finalizers": ["kubernetes.io/pvc-protection"]})),
        ],
        [
            storage_class("b-default", annotations={DEFAULT: "true"}),
            storage_class("a-default", annotations={"storageclass.beta.kubernetes.io/is-default-class": "true"}),
            storage_class("a-other", annotations={DEFAULT: "True"}),
        ],
    ),
    "ingresses without a default class": Case([dry("POST", "networking.k8s.io/v1/ingresses", ingress())]),
    "ingresses": Case(
        [
            dry("POST", "networking.k8s.io/v1/ingresses", ingress()),
            dry("POST", "networking.k8s.io/v1/ingresses", ingress(ingressClassName="other")),
            dry("POST", "networking.k8s.io/v1/ingresses", ingress(annotations={"kubernetes.io/ingress.class": "o"})),
        ],
        [
            ingress_class("b-default", annotations={DEFAULT_INGRESS: "true"}),
            ingress_class("a-default", annotations={DEFAULT_INGRESS: "true"}),
            ingress_class("a-other"),
        ],
    ),
    "volumes": Case(
        [
            dry(
                "POST",
                "/api/v1/persistentvolumes",
                {
                    "metadata": {"name": "v"},
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "capacity": {"storage": "1Gi"},
                        "hostPath": {"path": "/x"},
                    },
                },
            ),
            dry(
                "POST",
                "/apis/storage.k8s.io/v1/volumeattributesclasses",
                {"metadata": {"name": "v", "finalizers": ["a.io/b"]}, "driverName": "d", "parameters": {"a": "b"}},
            ),
        ]
    ),
}
"""In this order: what a case stores outside of its namespace stays for those after it."""


def bound(name: str) -> Request:
    return "PATCH", f"{CLAIMS}/{name}/status", {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}


def grown(name: str, size: str, **spec: Any) -> Request:
    return dry("PATCH", f"{CLAIMS}/{name}", {"spec": {"resources": {"requests": {"storage": size}}, **spec}})


RESIZED: dict[str, Case] = {
    "resized claims": Case(
        [
            grown("pending", "2Gi"),
            grown("fixed", "2Gi"),
            grown("fixed", "512Mi"),
            grown("fixed", "1024Mi"),
            grown("growing", "2Gi"),
            grown("growing", "512Mi"),
            grown("unclassed", "2Gi"),
            grown("lost", "2Gi"),
            dry("PATCH", f"{CLAIMS}/growing", {"metadata": {"labels": {"a": "b"}}}),
        ],
        [
            storage_class("resize-fixed"),
            storage_class("resize-growing", allowVolumeExpansion=True),
            ("POST", CLAIMS, claim("pending", storageClassName="resize-growing")),
            ("POST", CLAIMS, claim("fixed", storageClassName="resize-fixed")),
            ("POST", CLAIMS, claim("growing", storageClassName="resize-growing")),
            ("POST", CLAIMS, claim("unclassed", storageClassName="")),
            ("POST", CLAIMS, claim("lost", storageClassName="resize-none")),
            *(bound(name) for name in ("fixed", "growing", "unclassed", "lost")),
        ],
    )
}
INIT = {"initContainers": [asking("i", requests={"cpu": "1"}), asking("s", requests=CPU, restartPolicy="Always")]}
POLICIES = "/apis/admissionregistration.k8s.io/v1/"
SIDECAR = "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: 's'}}]"
LARGE = ("1", "9e15", "9007199254740993", "9.3e15", "1e16", "1e17", "9e18", "1e19", "1e30", "1e999")
LIMITED: dict[str, Case] = {
    "default limits": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(container("a"), container("b"), initContainers=[container("i")])),
            dry("POST", PODS, pod(asking(limits={"cpu": "300m"}))),
            dry("POST", PODS, pod(asking(requests={"cpu": "200m", "memory": "1M"}))),
            dry("POST", PODS, pod(asking(requests={"cpu": "2"}))),
            dry("POST", PODS, pod(metadata={"annotations": {"kubernetes.io/limit-ranger": "x", "a": "b"}})),
        ],
        [limit_range(of_containers(default={"cpu": "1", "memory": "2Mi"}, defaultRequest=CPU))],
    ),
    "two limit ranges": Case(
        [dry("POST", PODS, pod()), dry("POST", PODS, pod(asking(requests={"cpu": "1m"})))],
        [
            limit_range(of_containers(default={"cpu": "1", "memory": "1Gi"}), name="a"),
            limit_range(of_containers(default={"cpu": "2"}, defaultRequest={"ephemeral-storage": "1Gi"}), name="b"),
        ],
    ),
    "limits of containers": Case(
        [
            dry("POST", PODS, pod(asking(requests=amounts, limits=limits), **more))
            for amounts, limits, more in [
                ({"cpu": "99m"}, {"cpu": "1"}, {}),
                (CPU, {"cpu": "1001m"}, {}),
                ({"cpu": "0.5"}, {"cpu": "1"}, {}),
                ({"cpu": "0.25"}, {"cpu": "1"}, {}),
                ({"cpu": "0"}, {"cpu": "1"}, {}),
                ({"cpu": "1.5"}, {"cpu": "2"}, {}),
                ({"cpu": "0.9999"}, {"cpu": "1"}, {}),
                ({"cpu": "500m"}, {"cpu": "1"}, INIT),
                ({"cpu": "500m"}, {"cpu": "1"}, {"initContainers": [asking("i", limits={"cpu": "50m"})]}),
            ]
        ]
        + [
            dry("POST", PODS, pod(asking(limits={"cpu": "9"}), metadata=UNNAMED)),
            dry("POST", DEPLOYMENTS, {"metadata": {"name": "d"}}),
        ],
        [limit_range(of_containers(min=CPU, max={"cpu": "1"}, maxLimitRequestRatio={"cpu": "3"}))],
    ),
    "limits without defaults": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(asking(requests={"memory": "1Gi"}))),
            dry("POST", PODS, pod(asking(limits={"memory": "1Gi"}))),
            dry("POST", PODS, pod(asking(requests={"memory": "1"}, limits={"memory": "1Gi"}))),
            dry("POST", PODS, pod(asking(requests={"memory": "100Mi"}, limits={"memory": "1Gi"}))),
            dry("POST", PODS, pod(asking("a"), asking("b", limits={"memory": "9Ti"}), asking("c", requests=CPU))),
        ],
        [
            limit_range(of_containers(maxLimitRequestRatio={"memory": "1.5"}), name="a"),
            limit_range(of_containers(min={"memory": "1Mi"}), name="b"),
        ],
    ),
    "limits of pods": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(asking(requests=CPU, limits={"cpu": "1"}))),
            dry("POST", PODS, pod(asking("a", limits={"cpu": "1"}), asking("b", limits={"cpu": "1"}))),
            dry("POST", PODS, pod(asking(limits={"cpu": "1"}), **INIT)),
            dry("POST", PODS, pod(asking(limits={"cpu": "1"}), initContainers=[asking("i", limits={"cpu": "3"})])),
            dry("POST", PODS, pod(resources={"requests": {"cpu": "1"}, "limits": {"cpu": "3"}})),
            dry("POST", PODS, pod(resources={"limits": {"cpu": "1"}})),
            dry("POST", PODS, pod(asking(limits={"cpu": "2"}, requests={"cpu": "2m"}))),
        ],
        [limit_range({"type": "Pod", "min": {"cpu": "2m"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "4"}})],
    ),
    "limits of large amounts": Case(
        [
            *(dry("POST", PODS, pod(asking(requests={"cpu": amount}, limits={"cpu": "1e30"}))) for amount in LARGE),
            *(dry("POST", PODS, pod(asking(limits={"cpu": amount}))) for amount in LARGE),
        ],
        [limit_range(of_containers(min=CPU, max={"cpu": "9e15"}, maxLimitRequestRatio={"cpu": "3"}))],
    ),
    "limits of what a policy adds": Case(
        [dry("POST", PODS, pod(metadata={"labels": {"policy": "sidecar"}}))],
        [
            limit_range(of_containers(default={"cpu": "1"})),
            (
                "POST",
                f"{POLICIES}mutatingadmissionpolicies",
                {
                    "metadata": {"name": "sidecar"},
                    "spec": {
                        "reinvocationPolicy": "Never",
                        "matchConstraints": {
                            "resourceRules": [
                                {
                                    "apiGroups": [""],
                                    "apiVersions": ["v1"],
                                    "operations": ["CREATE"],
                                    "resources": ["pods"],
                                }
                            ],
                            "objectSelector": {"matchLabels": {"policy": "sidecar"}},
                        },
                        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": SIDECAR}}],
                    },
                },
            ),
            (
                "POST",
                f"{POLICIES}mutatingadmissionpolicybindings",
                {"metadata": {"name": "sidecar"}, "spec": {"policyName": "sidecar"}},
            ),
        ],
    ),
    "limits of claims": Case(
        [
            *(dry("POST", CLAIMS, claim(size=size)) for size in ("1Mi", "1Gi", "10Gi", "2.5Gi")),
            grown("stored", "10Gi"),
            dry("PATCH", f"{CLAIMS}/stored", {"metadata": {"labels": {"a": "b"}}}),
        ],
        [
            ("POST", CLAIMS, claim("stored", size="20Gi")),
            limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}),
        ],
    ),
    "limits of what is there": Case(
        [
            dry("PATCH", f"{PODS}/stored", {"metadata": {"labels": {"a": "b"}}}),
            dry("PATCH", f"{PODS}/stored/resize", {"spec": {"containers": [asking(limits={"cpu": "3"})]}}),
            dry("PATCH", f"{PODS}/stored/resize", {"spec": {"containers": [asking(requests={"cpu": "3"})]}}),
            dry("PATCH", f"{PODS}/stored/resize", {"spec": {"containers": [asking(requests={"cpu": "900m"})]}}),
        ],
        [
            ("POST", PODS, pod(asking(requests={"cpu": "2"}), name="stored")),
            limit_range(of_containers(max={"cpu": "1"})),
        ],
    ),
}


def quota(name: str, hard: Body, used: Body | None = None, **spec: Any) -> list[Request]:
    """A quota, with the status that a controller would write."""
    status = {"hard": hard, "used": used if used is not None else dict.fromkeys(hard, "0")}
    return [
        ("POST", "v1/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}),
        ("PATCH", f"v1/resourcequotas/{name}/status", {"status": status}),
    ]


def used(name: str) -> Request:
    return "GET", f"v1/resourcequotas/{name}", None


def counted(name: str, **spec: Any) -> Body:
    return {"metadata": {"name": name}, **spec}


def service(kind: str, name: str = "s", ports: int = 1, **spec: Any) -> Body:
    listed = [{"name": f"p{number}", "port": 80 + number} for number in range(ports)]
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": listed, **spec}}


ASKED = {"cpu": "250m", "memory": "64Mi"}
FULL = asking(requests=ASKED, limits={"cpu": "500m", "memory": "128Mi"})
CONFIG_MAPS, SERVICES, QUOTAS = "v1/configmaps", "v1/services", "v1/resourcequotas"
BY_CLASS = "gold.storageclass.storage.k8s.io"


def scope(name: str, operator: str, *values: str) -> Body:
    return {"scopeName": name, "operator": operator, **({"values": list(values)} if values else {})}


def affinity(sort: str, **term: Any) -> Body:
    whole = {"topologyKey": "zone", "labelSelector": {}, **term}
    return {"affinity": {sort: {"requiredDuringSchedulingIgnoredDuringExecution": [whole]}}}


LIMITED_TIME = {"activeDeadlineSeconds": 9}


def workload(name: str = "d", metadata: Body | None = None, **spec: Any) -> Body:
    template = {"metadata": {"labels": {"a": "b"}, **(metadata or {})}, "spec": pod(**spec)["spec"]}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}


QUOTED: dict[str, Case] = {
    "a quota of counts": Case(
        [
            dry("POST", CONFIG_MAPS, counted("a")),
            ("POST", CONFIG_MAPS, counted("a")),
            used("counts"),
            dry("POST", CONFIG_MAPS, counted("b")),
            ("POST", CONFIG_MAPS, counted("b")),
            used("counts"),
            dry("POST", CONFIG_MAPS, counted("c")),
            dry("PATCH", f"{CONFIG_MAPS}/b", {"data": {"a": "b"}}),
            dry("POST", DEPLOYMENTS, workload()),
            dry("POST", "v1/secrets", counted("s")),
            dry("POST", "v1/events", {**counted("e"), "involvedObject": {"namespace": "a-quota-of-counts"}}),
            dry("POST", QUOTAS, counted("q")),
            dry("POST", "v1/serviceaccounts", counted("free")),
        ],
        [
            *quota(
                "counts",
                {
                    "configmaps": "3",
                    "count/configmaps": "2",
                    "count/deployments.apps": "0",
                    "secrets": "0",
                    "count/secrets": "0",
                    "count/events": "0",
                    "resourcequotas": "1",
                },
                {
                    "configmaps": "0",
                    "count/configmaps": "0",
                    "count/deployments.apps": "0",
                    "secrets": "0",
                    "count/secrets": "0",
                    "resourcequotas": "1",
                },
            ),
        ],
    ),
    "a quota of pods": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(asking(requests=ASKED))),
            dry("POST", PODS, pod(FULL, asking("d", requests={"cpu": "1"}), initContainers=[container("i")])),
            dry("POST", PODS, pod(resources={"requests": ASKED})),
            dry("POST", PODS, pod(FULL)),
            ("POST", PODS, pod(FULL, name="one")),
            used("pods"),
            dry("POST", PODS, pod(FULL, asking("d", requests=ASKED, limits=ASKED))),
            dry("POST", PODS, pod(asking(requests={"cpu": "751m", "memory": "1"}, limits={"cpu": "1", "memory": "1"}))),
            dry("POST", PODS, pod(asking(requests=ASKED, limits={"cpu": "2", "memory": "2Gi"}))),
            dry("PATCH", f"{PODS}/one", {"metadata": {"labels": {"a": "b"}}}),
            dry("PATCH", f"{PODS}/one/resize", {"spec": {"containers": [asking(limits={"cpu": "5"})]}}),
            ("POST", PODS, pod(FULL, name="two")),
            used("pods"),
            dry("POST", PODS, pod(FULL)),
            dry("POST", PODS, pod(FULL, metadata=UNNAMED)),
        ],
        quota(
            "pods",
            {
                "pods": "2",
                "count/pods": "9",
                "cpu": "1",
                "requests.memory": "1Gi",
                "limits.cpu": "2",
                "limits.memory": "1Gi",
            },
        ),
    ),
    "a quota of more resources": Case(
        [
            dry("POST", PODS, pod(asking(requests=requests, limits=limits)))
            for requests, limits in [
                ({"ephemeral-storage": "1Gi"}, {"ephemeral-storage": "2Gi"}),
                ({"ephemeral-storage": "3Gi"}, {"ephemeral-storage": "9Gi"}),
                ({"example.com/gpu": "1"}, {"example.com/gpu": "1"}),
                ({"example.com/gpu": "2"}, {"example.com/gpu": "2"}),
                ({"cpu": "1", "hugepages-2Mi": "4Mi"}, {"cpu": "1", "hugepages-2Mi": "4Mi"}),
                ({"cpu": "1", "hugepages-2Mi": "2Mi"}, {"cpu": "1", "hugepages-2Mi": "2Mi"}),
                ({"cpu": "0.1"}, None),
            ]
        ],
        quota(
            "more",
            {
                "requests.ephemeral-storage": "2Gi",
                "limits.ephemeral-storage": "4Gi",
                "requests.example.com/gpu": "1",
                "requests.hugepages-2Mi": "2Mi",
            },
        ),
    ),
    "a quota of large amounts": Case(
        [
            *(dry("POST", PODS, pod(asking(requests={"cpu": one, "memory": one}))) for one in LARGE),
            *(
                dry("POST", PODS, pod(asking(requests=both, limits=both)))
                for one in LARGE
                for both in [{"example.com/gpu": one}]
            ),
            *(dry("POST", CLAIMS, claim(size=one)) for one in LARGE),
        ],
        quota(
            "large", {"cpu": "1e18", "memory": "1e30", "requests.example.com/gpu": "1e17", "requests.storage": "9e15"}
        ),
    ),
    "a quota without a status": Case(
        [dry("POST", CONFIG_MAPS, counted("a")), dry("POST", PODS, pod())],
        [
            ("POST", QUOTAS, {"metadata": {"name": "new"}, "spec": {"hard": {"configmaps": "0", "pods": "0"}}}),
            ("PATCH", f"{QUOTAS}/new/status", {"status": {"hard": {"pods": "1", "count/pods": "1"}}}),
        ],
    ),
    "a quota of services": Case(
        [
            *(
                dry("POST", SERVICES, service(kind, **spec))
                for kind, spec in [
                    ("ClusterIP", {}),
                    ("NodePort", {}),
                    ("NodePort", {"ports": 2}),
                    ("LoadBalancer", {}),
                    ("LoadBalancer", {"allocateLoadBalancerNodePorts": False}),
                    ("LoadBalancer", {"ports": 2, "allocateLoadBalancerNodePorts": False}),
                ]
            ),
            ("POST", SERVICES, service("ClusterIP", "one")),
            used("services"),
            dry("PATCH", f"{SERVICES}/one", {"spec": {"type": "NodePort"}}),
            dry("PATCH", f"{SERVICES}/one", {"spec": {"type": "LoadBalancer"}}),
            ("PATCH", f"{SERVICES}/one", {"spec": {"type": "NodePort"}}),
            used("services"),
            ("PATCH", f"{SERVICES}/one", {"spec": {"type": "ClusterIP"}}),
            used("services"),
            dry("POST", SERVICES, service("NodePort")),
        ],
        quota("services", {"services": "2", "services.nodeports": "1", "services.loadbalancers": "0"}),
    ),
    "a quota of claims": Case(
        [
            dry("POST", CLAIMS, claim(size="3Gi")),
            dry("POST", CLAIMS, claim(size="1Gi", storageClassName="gold")),
            dry("POST", CLAIMS, claim(size="512Mi", storageClassName="gold")),
            dry("POST", CLAIMS, claim(size="100m", metadata={"annotations": {BETA_CLASS: "gold"}})),
            ("POST", CLAIMS, claim("one", size="512Mi", storageClassName="gold")),
            used("claims"),
            dry("POST", CLAIMS, claim(size="1", storageClassName="gold")),
            dry("PATCH", f"{CLAIMS}/one/status", {"status": {"phase": "Bound"}}),
        ],
        quota(
            "claims",
            {
                "persistentvolumeclaims": "2",
                "requests.storage": "2Gi",
                f"{BY_CLASS}/persistentvolumeclaims": "1",
                f"{BY_CLASS}/requests.storage": "600Mi",
            },
        ),
    ),
    "quotas with scopes": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(FULL)),
            dry("POST", PODS, pod(FULL, **LIMITED_TIME)),
            dry("POST", PODS, pod(FULL, priorityClassName="system-node-critical")),
            dry("POST", PODS, pod(FULL, priorityClassName="system-cluster-critical")),
            dry("POST", PODS, pod(FULL, **affinity("podAffinity", namespaces=["a"]))),
            dry("POST", PODS, pod(FULL, **affinity("podAntiAffinity", namespaceSelector={}))),
            dry("POST", PODS, pod(FULL, **affinity("podAntiAffinity"))),
            dry("PATCH", f"{PODS}/stored", {"spec": LIMITED_TIME}),
            dry("POST", SERVICES, service("ClusterIP")),
        ],
        [
            ("POST", PODS, pod(FULL, name="stored")),
            *quota("a-best-effort", {"pods": "0"}, scopes=["BestEffort"]),
            *quota("b-timed", {"pods": "0", "count/pods": "0"}, scopes=["Terminating", "NotBestEffort"]),
            *quota(
                "c-node",
                {"pods": "0"},
                scopeSelector={"matchExpressions": [scope("PriorityClass", "In", "system-node-critical")]},
            ),
            *quota(
                "d-priority", {"cpu": "100m"}, scopeSelector={"matchExpressions": [scope("PriorityClass", "Exists")]}
            ),
            *quota("e-cross", {"pods": "0"}, scopes=["CrossNamespacePodAffinity"]),
            *quota("f-untimed", {"pods": "9"}, {"pods": "1"}, scopes=["NotTerminating"]),
        ],
    ),
    "quotas of other priorities": Case(
        [
            dry("POST", PODS, pod()),
            dry("POST", PODS, pod(priorityClassName="system-node-critical")),
            dry("POST", PODS, pod(priorityClassName="system-cluster-critical")),
        ],
        [
            *quota(
                "a-not-node",
                {"pods": "0"},
                scopeSelector={"matchExpressions": [scope("PriorityClass", "NotIn", "system-node-critical")]},
            ),
            *quota(
                "b-none",
                {"count/pods": "0"},
                scopeSelector={"matchExpressions": [scope("PriorityClass", "DoesNotExist")]},
            ),
        ],
    ),
}


def secured(name: str = "c", **context: Any) -> Body:
    return container(name, securityContext=context)


SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
HTTP_HOST = {"httpGet": {"port": 80, "host": "h"}}
PODS_TO_JUDGE: list[Body] = [
    pod(),
    pod(secured(**SAFE)),
    pod(secured("a", **SAFE), container("b"), secured("d"), initContainers=[container("i"), secured("j", **SAFE)]),
    pod(securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}}),
    pod(hostNetwork=True, hostPID=True, hostIPC=True),
    pod(secured(privileged=True), secured("d", privileged=True)),
    pod(
        secured(capabilities={"add": ["NET_ADMIN", "CHOWN"], "drop": ["ALL"]}),
        secured("d", capabilities={"add": ["BPF"]}),
    ),
    pod(secured(capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["CHOWN"]})),
    pod(container(ports=[{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 801}])),
    pod(
        container(ports=[{"containerPort": 80, "hostPort": 80}]),
        container("d", ports=[{"containerPort": 80, "hostPort": 80, "protocol": "UDP"}]),
    ),
    pod(
        container(livenessProbe={"tcpSocket": {"port": 80, "host": "g"}}, readinessProbe=HTTP_HOST),
        container(
            "b", lifecycle={"postStart": HTTP_HOST, "preStop": {"httpGet": {"port": 80}}}, startupProbe=HTTP_HOST
        ),
    ),
    pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}]),
    pod(
        volumes=[
            {"name": "a", "hostPath": {"path": "/"}},
            {"name": "b", "hostPath": {"path": "/b"}},
            {"name": "e", "emptyDir": {}},
            {"name": "n", "nfs": {"server": "s", "path": "/"}},
            {"name": "p", "projected": {"sources": []}},
        ]
    ),
    pod(secured(procMount="Unmasked"), hostUsers=False),
    pod(secured(runAsUser=0, runAsNonRoot=False), hostUsers=False),
    pod(secured(runAsUser=0), secured("d", runAsUser=0), securityContext={"runAsUser": 0}),
    pod(secured(runAsUser=1), securityContext={"runAsNonRoot": True}),
    pod(secured(runAsNonRoot=False), container("d"), securityContext={"runAsNonRoot": True}),
    pod(securityContext={"runAsNonRoot": False}),
    pod(
        secured(seLinuxOptions={"type": "spc_t", "user": "u", "role": "r"}),
        securityContext={"seLinuxOptions": {"user": "u"}},
    ),
    pod(
        secured(seLinuxOptions={"type": "container_engine_t", "level": "l"}),
        securityContext={"seLinuxOptions": {"type": "t"}},
    ),
    pod(secured(seccompProfile={"type": "Unconfined"}), securityContext={"seccompProfile": {"type": "Unconfined"}}),
    pod(secured(seccompProfile={"type": "RuntimeDefault"}), container("d")),
    pod(secured(appArmorProfile={"type": "Unconfined"}), securityContext={"appArmorProfile": {"type": "Unconfined"}}),
    pod(metadata={"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}),
    pod(metadata={"annotations": {"container.apparmor.security.beta.kubernetes.io/c": "localhost/p"}}),
    pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in ("kernel.msgmax", "net.ipv4.tcp_rmem")]}),
    pod(securityContext={"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]}),
    pod(
        secured(windowsOptions={"hostProcess": True}),
        os={"name": "windows"},
        hostNetwork=True,
        securityContext={"windowsOptions": {"hostProcess": True}},
    ),
    pod(os={"name": "windows"}),
    pod(metadata={"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}),
]
LABEL = "pod-security.kubernetes.io/"
JUDGED = [
    *(dry("POST", PODS, one) for one in PODS_TO_JUDGE),
    dry("POST", PODS, pod(metadata=UNNAMED)),
    dry("POST", DEPLOYMENTS, workload(hostPID=True)),
]


def labels(**given: str) -> dict[str, str]:
    return {f"{LABEL}{mode.replace('_', '-')}": value for mode, value in given.items()}


def labelled(name: str, **given: str) -> Request:
    return dry("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels(**given)}})


def relabelled(**given: str | None) -> Request:
    changed = {f"{LABEL}{mode.replace('_', '-')}": value for mode, value in given.items()}
    return dry("PATCH", "/api/v1/namespaces/NAMESPACE", {"metadata": {"labels": changed}})


def owned(name: str, uid: str, **spec: Any) -> Request:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": uid, "controller": True}
    return "POST", PODS, pod(name=name, metadata={"ownerReferences": [owner]}, **spec)


CRON_JOB = {
    "metadata": {"name": "c"},
    "spec": {
        "schedule": "* * * * *",
        "jobTemplate": {"spec": {"template": {"spec": {"containers": [container()], "restartPolicy": "Never"}}}},
    },
}
SECURED: dict[str, Case] = {
    "baseline and a restricted warning": Case(JUDGED, labels=labels(enforce="baseline", warn="restricted")),
    "restricted": Case(JUDGED, labels=labels(enforce="restricted", warn_version="v1.20")),
    "restricted in 24": Case(
        JUDGED, labels=labels(enforce="baseline", enforce_version="v1.18", warn="restricted", warn_version="v1.24")
    ),
    "restricted in 7": Case(JUDGED, labels=labels(enforce="restricted", enforce_version="v1.7")),
    "restricted in the future": Case(
        JUDGED[:3], labels=labels(warn="restricted", warn_version="v1.99", audit="baseline")
    ),
    "baseline in 30": Case(JUDGED, labels=labels(enforce="baseline", enforce_version="v1.30", warn="privileged")),
    "workloads": Case(
        [
            dry("POST", DEPLOYMENTS, workload(hostNetwork=True)),
            dry("POST", "batch/v1/cronjobs", CRON_JOB),
            dry("POST", "v1/replicationcontrollers", counted("r", spec={"replicas": 1})),
            dry("POST", "v1/podtemplates", counted("t", template={"metadata": {"labels": {"a": "b"}}, **pod()})),
            ("POST", DEPLOYMENTS, workload("stored")),
            dry("PATCH", f"{DEPLOYMENTS}/stored", {"spec": {"replicas": 2}}),
            dry("PATCH", f"{DEPLOYMENTS}/stored/scale", {"spec": {"replicas": 2}}),
        ],
        labels=labels(enforce="restricted"),
    ),
    "pods that change": Case(
        [
            relabelled(enforce="restricted", enforce_version="v1.30"),
            ("PATCH", "/api/v1/namespaces/NAMESPACE", {"metadata": {"labels": labels(enforce="restricted")}}),
            dry("POST", PODS, pod()),
            dry("PATCH", f"{PODS}/stored", {"metadata": {"labels": {"a": "b"}}}),
            dry("PATCH", f"{PODS}/stored", {"spec": {"containers": [{"name": "c", "image": "j"}]}}),
            dry("PATCH", f"{PODS}/stored/status", {"status": {"message": "m"}}),
            dry("PATCH", f"{PODS}/stored/ephemeralcontainers", {"spec": {"ephemeralContainers": [container("e")]}}),
        ],
        [("POST", PODS, pod(name="stored"))],
    ),
    "labels of namespaces": Case(
        [
            labelled("good", enforce="baseline", warn="restricted", audit="privileged", audit_version="v1.0"),
            labelled("bad", enforce="Baseline"),
            dry("POST", "/api/v1/namespaces", {"metadata": {**UNNAMED, "labels": labels(enforce="x")}}),
            labelled(
                "bad", enforce="x", audit="", warn="y", enforce_version="1.2", audit_version="v1", warn_version="v1.02"
            ),
            relabelled(enforce="restricted"),
            relabelled(enforce="baseline"),
            relabelled(enforce="baseline", enforce_version="v1.20"),
            relabelled(enforce="privileged"),
            relabelled(warn="restricted"),
            relabelled(enforce="nothing"),
            relabelled(other="x"),
        ],
        [
            ("POST", PODS, pod(name="z", hostPID=True)),
            ("POST", PODS, pod(name="b", hostPID=True)),
            ("POST", PODS, pod(name="good")),
            owned("o1", "1", hostNetwork=True),
            owned("o2", "1", hostNetwork=True),
            owned("a3", "1", hostNetwork=True),
            owned("q", "2", hostIPC=True),
        ],
    ),
    "a stricter level": Case(
        [
            relabelled(enforce="restricted"),
            relabelled(enforce="baseline"),
            relabelled(enforce="privileged"),
            relabelled(enforce=None),
        ],
        [("POST", PODS, pod())],
        labels(enforce="baseline", enforce_version="v1.20"),
    ),
}


def hard(*names: str, amount: str = "1", **spec: Any) -> Request:
    wanted = {"metadata": {"name": "q"}, "spec": {"hard": dict.fromkeys(names, amount), **spec}}
    return dry("POST", QUOTAS, wanted)


def selected(*expressions: Body, resource: str = "pods") -> Request:
    return hard(resource, scopeSelector={"matchExpressions": list(expressions)})


def limited(kind: str, **amounts: Body) -> Request:
    limits = [{"type": kind, **amounts}]
    return dry("POST", "v1/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": limits}})


QUOTA_NAMES = (
    "hugepages-2Mi requests.hugepages-1Gi requests.storage storage requests.pods limits.gpu requests.example.com/gpu example.com/gpu "
    "count/widgets.example.com gold.storageclass.storage.k8s.io/requests.storage services.other -bad bad/-name"
)
VALIDATED: dict[str, Case] = {
    "quotas that may not be": Case(
        [
            *(hard(name) for name in QUOTA_NAMES.split()),
            *(hard(name, amount="1500m") for name in ("pods", "cpu", "count/pods", "requests.example.com/gpu")),
            hard("example.com/gpu", amount="0.1"),
            *(
                hard(name, amount=amount)
                for name in ("pods", "cpu")
                for amount in ("1e30", "1e999", "1.5e30", "123456789e-3")
            ),
            hard("cpu", amount="-1"),
            hard("pods", amount="-1.5"),
            hard("pods", "cpu", scopes=["BestEffort"]),
            hard("pods", "requests.storage", scopes=["NotBestEffort", "Terminating"]),
            hard("pods", scopes=["Other"]),
            hard("pods", scopes=["BestEffort", "NotBestEffort"]),
            hard("pods", scopes=["Terminating", "PriorityClass", "NotTerminating"]),
            hard("pods", scopes=["VolumeAttributesClass"]),
            hard("count/pods", "requests.storage", scopes=["VolumeAttributesClass"]),
            hard("ephemeral-storage", scopes=["Terminating"]),
            selected(scope("Other", "Exists")),
            selected(scope("Terminating", "In", "x")),
            selected(scope("PriorityClass", "In")),
            selected(scope("PriorityClass", "Exists", "x")),
            selected(scope("PriorityClass", "Odd")),
            selected(scope("BestEffort", "Exists"), scope("NotBestEffort", "Exists")),
            selected(scope("PriorityClass", "In", "x"), resource="services"),
            selected(scope("VolumeAttributesClass", "NotIn", "x"), resource="requests.storage"),
            dry("PATCH", f"{QUOTAS}/stored", {"spec": {"scopes": ["Terminating"]}}),
            dry("PATCH", f"{QUOTAS}/stored", {"spec": {"hard": {"pods": "2"}}}),
            dry("PATCH", f"{QUOTAS}/stored/status", {"status": {"hard": {"bogus": "1"}}}),
            dry("PATCH", f"{QUOTAS}/stored/status", {"status": {"used": {"pods": "-1"}}}),
        ],
        [("POST", QUOTAS, {"metadata": {"name": "stored"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}})],
    ),
    "limit ranges that may not be": Case(
        [
            limited("Other", max=CPU),
            limited("example.com/other", max=CPU),
            limited("-bad", max=CPU),
            limited("Pod", default=CPU),
            limited("Pod", defaultRequest=CPU),
            limited("Container", max={"pods": "1"}),
            limited("Container", default={"storage": "1"}),
            limited("Container", maxLimitRequestRatio={"bogus": "2"}),
            limited("Container", maxLimitRequestRatio={"cpu": "0.5"}),
            limited("Container", maxLimitRequestRatio={"cpu": "3"}, min={"cpu": "1"}, max={"cpu": "2"}),
            limited("Container", maxLimitRequestRatio={"cpu": "2"}, min={"cpu": "1"}, max={"cpu": "2"}),
            limited("Pod", maxLimitRequestRatio={"cpu": "1.5"}, min={"cpu": "750m"}, max={"cpu": "1"}),
            *(
                limited("Container", maxLimitRequestRatio={"cpu": one}, min={"cpu": "1"}, max={"cpu": "9e16"})
                for one in LARGE
            ),
            *(
                limited("Container", maxLimitRequestRatio={"cpu": "2"}, min={"cpu": "1"}, max={"cpu": one})
                for one in LARGE
            ),
            *(limited("Container", min={"cpu": one}, max={"cpu": "1e30"}) for one in LARGE),
            limited("Container", min={"cpu": "2"}, max={"cpu": "1"}, default={"cpu": "2"}, defaultRequest={"cpu": "2"}),
            limited("Container", default={"cpu": "2"}, max={"cpu": "1"}),
            limited("Container", defaultRequest={"cpu": "2"}, default={"cpu": "1"}),
            limited("Container", default={"example.com/a": "2"}, defaultRequest={"example.com/a": "1"}),
            limited("Container", default={"hugepages-2Mi": "2Mi"}, defaultRequest={"hugepages-2Mi": "4Mi"}),
            limited("PersistentVolumeClaim", max=CPU),
            limited("PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "1Gi"}),
            limited("PersistentVolumeClaim", max={"storage": "1Gi"}, default={"storage": "2Gi"}),
        ]
    ),
}
