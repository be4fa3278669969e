"""Random sequences of writes by several managers, and what they leave: for the differential test of apply.

A sequence is made from a seed and from what the server answered before, so both servers get the same one as long as they agree.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from ctrlruntime.errors import APIStatusError
from ctrlruntime.testing.connection import Connection

Document = dict[str, Any]

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
MANAGERS = ["alpha", "beta", "gamma", "kubectl"]
GROUP = "apply.example.com"
_ALLOCATED = {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"}
"""Fields of a Service that the two servers fill with values of their own."""


def definition() -> Document:
    """A kind with every way in which fields merge, in two versions."""
    leaf = {"type": "string"}
    part = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": leaf,
            "zone": {"type": "string", "default": "here"},
            "size": {"type": "integer"},
            "tags": {"type": "array", "items": leaf, "x-kubernetes-list-type": "set"},
            "options": {"type": "object", "additionalProperties": leaf},
        },
    }
    spec = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "mode": {"type": "string", "default": "A"},
            "hint": {"type": "string", "nullable": True},
            "port": {"x-kubernetes-int-or-string": True},
            "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            "tags": {"type": "array", "items": leaf, "x-kubernetes-list-type": "set"},
            "steps": {"type": "array", "items": leaf},
            "parts": {
                "type": "array",
                "items": part,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "zone"],
            },
            "whole": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"a": leaf, "b": leaf},
            },
            "options": {"type": "object", "additionalProperties": leaf},
            "groups": {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"a": leaf, "b": leaf}},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "template": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
    status = {
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": leaf, "status": leaf, "reason": leaf},
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    subresources = {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
            "selectableFields": [{"jsonPath": f".spec.{name}"} for name in ("mode", "replicas", "whole.a")],
        }
        for name in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "gizmos", "kind": "Gizmo"},
            "versions": versions,
        },
    }


class Maker:
    """Random pieces of objects."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def some(self, **pieces: Callable[[], Any]) -> Document:
        """A few of the fields, in random order."""
        names = [name for name in pieces if self.random.random() < 0.45]
        self.random.shuffle(names)
        return {name.replace("_", "/") if "_" in name else name: pieces[name]() for name in names}

    def word(self) -> str:
        return self.random.choice(["x", "y", "z"])

    def number(self) -> int:
        return self.random.randrange(1, 4)

    def words(self) -> Document:
        return {key: self.word() for key in self.random.sample(["a", "b", "c"], self.random.randrange(0, 3))}

    def subset(self, values: list[Any], most: int = 3) -> list[Any]:
        return self.random.sample(values, self.random.randrange(0, min(most, len(values)) + 1))

    def metadata(self) -> Document:
        return self.some(
            labels=self.words,
            annotations=self.words,
            finalizers=lambda: self.subset(["a.example.com/x", "b.example.com/y"], 2),
        )


def config_map(make: Maker) -> Document:
    return {"metadata": make.metadata(), **make.some(data=make.words, binaryData=lambda: {"k": "aGk="})}


def deployment(make: Maker) -> Document:
    def container(name: str) -> Document:
        return {
            "name": name,
            **make.some(
                image=make.word,
                imagePullPolicy=lambda: make.random.choice(["Always", "Never"]),
                command=lambda: make.subset(["x", "y"]),
                env=lambda: [{"name": name, **make.some(value=make.word)} for name in make.subset(["A", "B", "C"])],
                ports=lambda: [
                    {"containerPort": port, **make.some(protocol=lambda: "UDP", name=make.word)}
                    for port in make.subset([80, 443, 8080])
                ],
                resources=lambda: make.some(limits=lambda: {"cpu": make.random.choice(["1", "0.5", "500m"])}),
                volumeMounts=lambda: [{"mountPath": path, "name": "v"} for path in make.subset(["/a", "/b"])],
                securityContext=lambda: make.some(runAsUser=make.number, privileged=lambda: False),
            ),
        }

    def template() -> Document:
        spec = make.some(
            containers=lambda: [container(name) for name in make.subset(["main", "side", "extra"])],
            volumes=lambda: [{"name": "v", "emptyDir": {}}, *make.subset([{"name": "w", "emptyDir": {}}])],
            nodeSelector=make.words,
            tolerations=lambda: [{"key": make.word(), "operator": "Exists"}],
            terminationGracePeriodSeconds=make.number,
            imagePullSecrets=lambda: [{"name": name} for name in make.subset(["s", "t"])],
            hostAliases=lambda: [{"ip": "1.1.1.1", "hostnames": make.subset(["x", "y"])}],
        )
        return {**({"spec": spec} if spec else {}), **make.some(metadata=lambda: make.some(annotations=make.words))}

    return {
        "metadata": make.metadata(),
        "spec": make.some(
            replicas=make.number,
            minReadySeconds=make.number,
            paused=lambda: make.random.random() < 0.5,
            template=template,
            strategy=lambda: make.random.choice(
                [{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": make.number()}}, {"type": "RollingUpdate"}]
            ),
        ),
    }


def service(make: Maker) -> Document:
    return {
        "metadata": make.metadata(),
        "spec": make.some(
            selector=make.words,
            ports=lambda: [
                {"port": port, **make.some(protocol=lambda: "UDP", targetPort=make.number), "name": f"p{port}"}
                for port in make.subset([80, 443, 8080])
            ],
            externalIPs=lambda: make.subset(["1.1.1.1", "2.2.2.2"]),
            publishNotReadyAddresses=lambda: True,
            sessionAffinity=lambda: make.random.choice(["ClientIP", "None"]),
            sessionAffinityConfig=lambda: {"clientIP": {"timeoutSeconds": make.number()}},
        ),
    }


def service_status(make: Maker) -> Document:
    return make.some(
        conditions=lambda: [_condition(make, name) for name in make.subset(["A", "B"])],
        loadBalancer=lambda: make.random.choice([{}, {}, {"ingress": [{"ip": "1.2.3.4"}]}]),
    )


def _condition(make: Maker, name: str) -> Document:
    moment = "2026-01-01T00:00:00Z"
    return {"type": name, "status": "True", "reason": make.word(), "message": "", "lastTransitionTime": moment}


def autoscaler(make: Maker) -> Document:
    """What v1 and v2 both have."""
    return {
        "metadata": make.metadata(),
        "spec": make.some(minReplicas=make.number, maxReplicas=lambda: 3 + make.number()),
    }


def autoscaler_status(make: Maker) -> Document:
    return {"currentReplicas": make.number(), "desiredReplicas": make.number()}


def gizmo(make: Maker) -> Document:
    def part(name: str, zone: str) -> Document:
        return {
            "name": name,
            **({"zone": zone} if zone else {}),
            **make.some(size=make.number, tags=lambda: make.subset(["x", "y", "<z>"]), options=make.words),
        }

    def parts() -> list[Document]:
        return [part(name, make.random.choice(["", "here", "there"])) for name in make.subset(["p", "q", "r"])]

    def free() -> Document:
        return make.some(a=make.word, b=lambda: [1, {"c": 2}], c=lambda: {"d": make.words()}, e=dict, f=lambda: None)

    return {
        "metadata": make.metadata(),
        "spec": make.some(
            replicas=make.number,
            mode=make.word,
            hint=lambda: make.random.choice([None, "x", ""]),
            port=lambda: make.random.choice([80, "http"]),
            numbers=lambda: make.subset([1, 2, 3]),
            tags=lambda: make.subset(["x", "y", "z", "<&>"]),
            steps=lambda: make.subset(["x", "y", "z"]),
            parts=parts,
            whole=lambda: make.some(a=make.word, b=make.word),
            options=make.words,
            groups=lambda: {key: make.some(a=make.word, b=make.word) for key in make.subset(["g", "h"])},
            free=free,
            template=lambda: {
                "apiVersion": "v1",
                "kind": "X",
                **make.some(
                    spec=free,
                    metadata=lambda: make.some(name=make.word, labels=make.words, finalizers=list, odd=make.word),
                ),
            },
        ),
    }


def pod(make: Maker) -> Document:
    return {
        "metadata": make.metadata(),
        "spec": make.some(
            containers=lambda: [{"name": "main", **make.some(image=make.word)}],
            activeDeadlineSeconds=lambda: 3,
            tolerations=lambda: [
                {"key": key, "operator": "Exists", **make.some(effect=lambda: "NoExecute")}
                for key in make.subset(["a", "node.kubernetes.io/not-ready"])
            ],
        ),
    }


def pod_status(make: Maker) -> Document:
    conditions = [{"type": name, "status": make.random.choice(["True", "False"])} for name in make.subset(["A", "B"])]
    return {
        "message": make.word(),
        **make.some(
            conditions=lambda: conditions,
            phase=lambda: make.random.choice(["Running", None]),
            podIP=lambda: make.random.choice(["1.1.1.1", "2.2.2.2", None]),
            podIPs=lambda: [{"ip": ip} for ip in make.subset(["1.1.1.1", "2.2.2.2"], 1)],
        ),
    }


def ingress(make: Maker) -> Document:
    def path(text: str) -> Document:
        return {
            "path": text,
            "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": make.number()}}},
        }

    return {
        "metadata": make.metadata(),
        "spec": make.some(
            ingressClassName=make.word,
            rules=lambda: [
                {"host": host, "http": {"paths": [path(text) for text in ["/", *make.subset(["/a"])]]}}
                for host in make.subset(["x.io", "y.io", ""])
            ],
            tls=lambda: [{"hosts": ["x.io"], "secretName": make.word()}],
        ),
    }


def role(make: Maker) -> Document:
    rule = {"apiGroups": [""], "resources": ["pods"]}
    return {
        "metadata": make.metadata(),
        **make.some(rules=lambda: [{**rule, "verbs": [verb]} for verb in make.subset(["get", "list"])]),
    }


def deployment_status(make: Maker) -> Document:
    return make.some(
        observedGeneration=make.number,
        conditions=lambda: [
            {"type": name, "status": make.random.choice(["True", "False"])} for name in make.subset(["A", "B"])
        ],
    )


def gizmo_status(make: Maker) -> Document:
    return make.some(
        replicas=make.number,
        conditions=lambda: [{"type": name, **make.some(status=make.word)} for name in make.subset(["A", "B"])],
    )


def nulled(random: Random, value: Any) -> Any:
    """Return the value with some of its fields null."""
    if isinstance(value, list):
        return [nulled(random, item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: None if random.random() < 0.08 else nulled(random, inner) for key, inner in value.items()}


class Kind:
    """A kind that takes part: its path, the object it begins with, and how parts of it are made."""

    def __init__(
        self,
        name: str,
        api_version: str,
        plural: str,
        make: Callable[[Maker], Document],
        *,
        base: Document | None = None,
        status: Callable[[Maker], Document] | None = None,
        scales: bool = False,
        versions: tuple[str, ...] = (),
    ) -> None:
        self.name, self.api_version, self.plural, self.make = name, api_version, plural, make
        self.label = name
        self.base = base or {}
        self.status, self.scales = status, scales
        self.versions = versions or (api_version,)
        self.is_custom = api_version.startswith(GROUP)

    def with_nulls(self) -> Kind:
        """Return the kind with parts that have nulls where there are values."""

        def made(make: Callable[[Maker], Document]) -> Callable[[Maker], Document]:
            return lambda maker: {key: nulled(maker.random, value) for key, value in make(maker).items()}

        kind = copy.copy(self)
        kind.make, kind.status = made(self.make), self.status and made(self.status)
        kind.label = f"{self.name}-nulls"
        return kind

    def path(self, namespace: str, api_version: str) -> str:
        root = "/apis" if "/" in api_version else "/api"
        return f"{root}/{api_version}/namespaces/{namespace}/{self.plural}"


KINDS = [
    Kind("ConfigMap", "v1", "configmaps", config_map),
    Kind(
        "Deployment",
        "apps/v1",
        "deployments",
        deployment,
        base={
            "spec": {
                "selector": {"matchLabels": {"app": "a"}},
                "template": {
                    "metadata": {"labels": {"app": "a"}},
                    "spec": {"containers": [{"name": "main", "image": "x"}]},
                },
            }
        },
        status=deployment_status,
        scales=True,
    ),
    Kind("Service", "v1", "services", service, base={"spec": {"ports": [{"port": 80}]}}, status=service_status),
    Kind(
        "HorizontalPodAutoscaler",
        "autoscaling/v2",
        "horizontalpodautoscalers",
        autoscaler,
        base={"spec": {"maxReplicas": 4, "scaleTargetRef": {"kind": "X", "name": "x"}}},
        status=autoscaler_status,
        versions=("autoscaling/v1", "autoscaling/v2"),
    ),
    Kind(
        "Pod",
        "v1",
        "pods",
        pod,
        base={"spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}},
        status=pod_status,
    ),
    Kind(
        "Ingress",
        "networking.k8s.io/v1",
        "ingresses",
        ingress,
        base={"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}},
    ),
    Kind("Role", "rbac.authorization.k8s.io/v1", "roles", role),
    Kind(
        "Gizmo",
        f"{GROUP}/v1",
        "gizmos",
        gizmo,
        status=gizmo_status,
        scales=True,
        versions=(f"{GROUP}/v1", f"{GROUP}/v2"),
    ),
]


def merged(base: Any, over: Any) -> Any:
    """Lay one tree over another; lists of named items by their name."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}
    if isinstance(base, list) and isinstance(over, list) and base and isinstance(base[0], dict) and "name" in base[0]:
        named = {item.get("name"): item for item in base}
        return [*(item for item in base if item["name"] not in [o.get("name") for o in over]),
                *(merged(named.get(item.get("name"), {}), item) for item in over)]  # fmt: skip
    return over


Request = tuple[str, str, Any, str]
"""(method, path, body, content type)."""


class Sequence:
    """Writes to one object."""

    def __init__(self, kind: Kind, seed: int, namespace: str) -> None:
        self.kind = kind
        self.random = Random(f"{kind.label}-{seed}")
        self.make = Maker(self.random)
        self.namespace = namespace
        self.name = f"{kind.label.lower()}-{seed}"

    def steps(self, length: int) -> Iterator[Callable[[Document | None], Request]]:
        yield self.first()
        for _ in range(length):
            yield self.random.choice(self.choices())

    def choices(self) -> list[Callable[[Document | None], Request]]:
        found: list[Callable[[Document | None], Request]] = [
            *[self.apply] * 6,
            *[self.update] * 2,
            *[self.merge_patch] * 2,
            self.apply_again,
            self.remove_owner,
            self.json_patch,
        ]
        if self.kind.status:
            found += [self.status_apply, self.status_patch, self.status_update, self.status_json_patch]
        if self.kind.scales:
            found += [self.scale_update, self.scale_apply, self.scale_patch]
        if not self.kind.is_custom:
            found.append(self.strategic_patch)
        return found

    def path(self, subresource: str = "", **query: str) -> str:
        at = self.random.choice(self.kind.versions)
        self.version = at
        manager = query.pop("manager", None) or self.random.choice(MANAGERS)
        query["fieldManager"] = manager
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return f"{self.kind.path(self.namespace, at)}/{self.name}{'/' + subresource if subresource else ''}?{text}"

    def headed(self, body: Document) -> Document:
        head = {"apiVersion": self.version, "kind": self.kind.name}
        return {**head, **body, "metadata": {**body.get("metadata", {}), "name": self.name}}

    def first(self) -> Callable[[Document | None], Request]:
        body = merged(self.kind.base, self.kind.make(self.make))
        if self.random.random() < 0.4:
            return lambda _: ("PATCH", self.path(manager="alpha"), self.headed(body), APPLY)
        path = f"{self.kind.path(self.namespace, self.kind.api_version)}?fieldManager={self.random.choice(MANAGERS)}"
        self.version = self.kind.api_version
        full = self.headed(body)
        if self.random.random() < 0.3:
            text = json.dumps(full, separators=(",", ":"))
            annotations = {
                **(full["metadata"].get("annotations") or {}),
                "kubectl.kubernetes.io/last-applied-configuration": text,
            }
            full = {**full, "metadata": {**full["metadata"], "annotations": annotations}}
        return lambda _: ("POST", path, full, "")

    def force(self) -> dict[str, str]:
        return self.random.choice([{}, {}, {"force": "true"}])

    def apply(self, _: Document | None) -> Request:
        body = self.kind.make(self.make)
        if self.random.random() < 0.3:
            body = merged(self.kind.base, body)
        path = self.path(**self.force())
        return "PATCH", path, self.headed(body), APPLY

    def apply_again(self, present: Document | None) -> Request:
        """Apply what is there already, or a part of it."""
        body = {key: value for key, value in (present or {}).items() if key in {"spec", "data"}}
        spec = body.get("spec")
        if isinstance(spec, dict):
            kept = [key for key in sorted(spec) if self.random.random() < 0.5]
            body["spec"] = {key: spec[key] for key in kept if key not in _ALLOCATED}
        path = self.path()
        return "PATCH", path, self.headed(body), APPLY

    def update(self, present: Document | None) -> Request:
        changed = merged(present or self.kind.base, self.kind.make(self.make))
        if self.random.random() < 0.2 and "spec" in changed:
            changed["spec"] = {**changed["spec"]}
            names = sorted(changed["spec"].keys() - _ALLOCATED)
            for key in self.random.sample(names, min(1, len(names))):
                changed["spec"].pop(key)
        if self.random.random() < 0.3:
            changed["metadata"].pop("managedFields", None)
        path = self.path()
        return "PUT", path, {**changed, "apiVersion": self.version, "kind": self.kind.name}, ""

    def merge_patch(self, _: Document | None) -> Request:
        return "PATCH", self.path(), self.kind.make(self.make), MERGE

    def strategic_patch(self, _: Document | None) -> Request:
        return "PATCH", self.path(), self.kind.make(self.make), STRATEGIC

    def json_patch(self, _: Document | None) -> Request:
        """Set some fields as a whole, and take one away that may not be there."""
        made = self.kind.make(self.make)
        operations: list[Document] = [
            {"op": "add", "path": f"/{part}/{key}", "value": value}
            for part in ("spec", "data")
            for key, value in made.get(part, {}).items()
            if "/" not in key
        ]
        if self.random.random() < 0.2:
            operations.append({"op": "remove", "path": "/metadata/labels"})
        return "PATCH", self.path(), operations, JSON_PATCH

    def status_json_patch(self, _: Document | None) -> Request:
        return (
            "PATCH",
            self.path("status"),
            [{"op": "add", "path": "/status", "value": self.status_body()["status"]}],
            JSON_PATCH,
        )

    def scale_patch(self, _: Document | None) -> Request:
        return "PATCH", self.path("scale"), {"spec": {"replicas": self.make.number()}}, MERGE

    def remove_owner(self, present: Document | None) -> Request:
        """Edit managedFields as a client may: one entry less, or none at all."""
        entries = ((present or {}).get("metadata") or {}).get("managedFields") or []
        if self.random.random() < 0.2 or not entries:
            left: list[Document] = self.random.choice([[], [{}]])
        else:
            left = [entry for entry in _stable(entries) if entry != _stable(entries)[0]]
        return "PATCH", self.path(), {"metadata": {"managedFields": left}}, MERGE

    def status_body(self) -> Document:
        assert self.kind.status is not None
        return {"status": self.kind.status(self.make), **self.random.choice([{}, self.kind.make(self.make)])}

    def status_apply(self, _: Document | None) -> Request:
        path = self.path("status", **self.force())
        return "PATCH", path, self.headed(self.status_body()), APPLY

    def status_patch(self, _: Document | None) -> Request:
        return "PATCH", self.path("status"), self.status_body(), MERGE

    def status_update(self, present: Document | None) -> Request:
        path = self.path("status")
        changed = merged(present or self.kind.base, self.status_body())
        return "PUT", path, {**changed, "apiVersion": self.version, "kind": self.kind.name}, ""

    def scaled(self) -> Document:
        return {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"replicas": self.make.number()},
        }

    def scale_update(self, _: Document | None) -> Request:
        return "PUT", self.path("scale"), self.scaled(), ""

    def scale_apply(self, _: Document | None) -> Request:
        return "PATCH", self.path("scale", **self.force()), self.scaled(), APPLY


def _stable(entries: list[Document]) -> list[Document]:
    """Entries in an order that does not depend on the second in which something was set."""
    return sorted(
        entries,
        key=lambda e: (
            e["operation"],
            e["manager"],
            e["apiVersion"],
            e.get("subresource", ""),
            json.dumps(e["fieldsV1"], sort_keys=True),
        ),
    )


def normal(document: Document) -> Document:
    """The object without what differs between any two servers."""
    metadata = {
        key: value
        for key, value in document["metadata"].items()
        if key not in {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
    }
    entries = document["metadata"].get("managedFields") or []
    timeless = [{**entry, "time": "time" in entry} for entry in entries]
    spec = document.get("spec")
    if isinstance(spec, dict) and "clusterIP" in spec:
        spec = {key: value for key, value in spec.items() if key not in _ALLOCATED}
    result = {**document, "metadata": {**metadata, "owners": _stable(timeless)}}
    return result if spec is None else {**result, "spec": spec}


def send(connection: Connection, request: Request) -> tuple[int, Document]:
    method, path, body, content_type = request
    try:
        return 200, connection.request(method, path, body, content_type=content_type)
    except APIStatusError as error:
        return error.code, {
            "reason": error.status.get("reason", ""),
            "message": str(error.status.get("message", "")) if error.code != 422 else "",
            "causes": sorted((c.field, c.message) for c in error.causes) if error.code == 409 else [],
        }
