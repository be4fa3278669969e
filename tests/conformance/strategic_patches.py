"""Random strategic merge patches of built-in kinds: for the differential test of strategic merge."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

Document = dict[str, Any]

MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumes": "name",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
    "conditions": "type",
    "secrets": "name",
}
PRIMITIVES = {"finalizers"}


def owner(number: int) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"o{number}", "uid": f"uid-{number}"}


def container(name: str) -> Document:
    return {
        "name": name,
        "image": "x",
        "command": ["a", "b"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "name": "two", "protocol": "UDP"}],
        "volumeMounts": [{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "w"}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3},
    }


METADATA = {
    "labels": {"app": "a", "x": "1"},
    "annotations": {"a": "1", "b": "2", "c": "3"},
    "finalizers": ["x.io/a", "x.io/b", "x.io/c"],
    "ownerReferences": [owner(1), owner(2), owner(3)],
}
POD: Document = {
    "schedulerName": "nobody",
    "containers": [container("main"), container("side"), container("third")],
    "initContainers": [{"name": "first", "image": "x"}],
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "configMap": {"name": "w", "optional": True}},
        {"name": "u", "secret": {"secretName": "u", "items": [{"key": "a", "path": "a"}]}},
    ],
    "nodeSelector": {"a": "1", "b": "2"},
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "s"}, {"name": "t"}],
    "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["x", "y"]}, {"ip": "2.2.2.2", "hostnames": ["z"]}],
    "topologySpreadConstraints": [
        {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "a"}},
        },
        {"topologyKey": "node", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
    ],
    "securityContext": {"runAsUser": 1, "supplementalGroups": [1, 2]},
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}},
}
BASES: list[tuple[str, str, Document]] = [
    (
        "apps/v1",
        "deployments",
        {
            "kind": "Deployment",
            "metadata": METADATA,
            "spec": {
                "replicas": 0,
                "paused": True,
                "selector": {"matchLabels": {"app": "a"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "25%"}},
                "template": {"metadata": {"labels": {"app": "a"}, "annotations": {"t": "1"}}, "spec": POD},
            },
        },
    ),
    ("v1", "pods", {"kind": "Pod", "metadata": METADATA, "spec": POD}),
    (
        "v1",
        "services",
        {
            "kind": "Service",
            "metadata": METADATA,
            "spec": {
                "clusterIP": "None",
                "selector": {"app": "a"},
                "ports": [
                    {"port": 80, "name": "a", "targetPort": 1},
                    {"port": 81, "name": "b", "targetPort": "x"},
                    {"port": 80, "name": "c", "protocol": "UDP"},
                ],
                "externalIPs": ["1.1.1.1", "2.2.2.2"],
            },
        },
    ),
    (
        "v1",
        "serviceaccounts",
        {
            "kind": "ServiceAccount",
            "metadata": METADATA,
            "secrets": [{"name": "a"}, {"name": "b", "kind": "Secret"}],
            "automountServiceAccountToken": True,
        },
    ),
    (
        "v1",
        "configmaps",
        {"kind": "ConfigMap", "metadata": METADATA, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "aGk="}},
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "roles",
        {
            "kind": "Role",
            "metadata": METADATA,
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "get"]},
            ],
        },
    ),
]


class PatchMaker:
    """Makes patches of one object: each is a random change of what is there, with directives, and now and then a wrong one."""

    def __init__(self, base: Document, random: Random, *, wrong: float) -> None:
        self.base, self.random, self.wrong = base, random, wrong

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def patch(self) -> Document:
        parts = [name for name in self.base if name not in {"kind", "apiVersion"}]
        found: Document = {}
        for name in self.random.sample(parts, self.random.choice([1, 1, 2])) if len(parts) > 1 else parts:
            self.put(found, name, self.base[name], depth=0)
            if name == "metadata" and found[name] is None:
                found[name] = {}
            if name == "metadata" and isinstance(found[name], dict):
                for directive in ("$patch", "$retainKeys"):  # without its name the object is not an object
                    found[name].pop(directive, None)
        return found

    def put(self, patch: Document, name: str, value: Any, *, depth: int) -> None:
        """Say something of a field that holds `value`."""
        if self.chance(self.wrong):
            patch[name] = self.random.choice(
                [None, "text", 1, True, [], {}, ["text"], [1], {"a": "b"}, [None], [{}], {"$patch": "odd"}]
            )
        elif self.chance(0.08):
            patch[name] = None
        elif isinstance(value, dict):
            patch[name] = self.changed_map(value, depth + 1)
        elif name in PRIMITIVES:
            self.put_primitives(patch, name, value)
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            self.put_items(patch, name, value, depth + 1)
        elif isinstance(value, list):
            patch[name] = self.random.sample([*value, *value], self.random.randrange(0, len(value) + 1))
            if self.chance(0.1):
                patch[f"$setElementOrder/{name}"] = self.shuffled(value)
            if self.chance(0.1):
                patch[f"$deleteFromPrimitiveList/{name}"] = self.random.sample(value, 1)
        else:
            patch[name] = self.scalar(value)

    def scalar(self, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return self.random.choice([value, value + 1, 0])
        return self.random.choice([value, f"{value}x", ""])

    def shuffled(self, values: list[Any]) -> list[Any]:
        return self.random.sample(values, self.random.randrange(0, len(values) + 1))

    def changed_map(self, value: Document, depth: int) -> Document:
        patch: Document = {}
        if self.chance(0.05):
            patch["$patch"] = self.random.choice(["replace", "delete", "merge"])
        names = [name for name in value if self.chance(0.5 if depth < 2 else 0.3)]
        self.random.shuffle(names)
        for name in names:
            self.put(patch, name, value[name], depth=depth)
        if self.chance(0.1) and all(isinstance(each, str) for each in value.values()):
            patch["new"] = "n"
        if self.chance(0.05):
            patch["$retainKeys"] = self.random.choice(
                [list(patch), list(value)[:1], [*patch, *value], [], list(value)[1:]]
            )
        return patch

    def put_primitives(self, patch: Document, name: str, value: list[Any]) -> None:
        choice = self.random.randrange(4)
        if choice != 0:
            patch[name] = self.shuffled([*value, "x.io/new", "x.io/newer"])
        if choice <= 1:
            patch[f"$deleteFromPrimitiveList/{name}"] = self.shuffled([*value, "x.io/odd"])
        if self.chance(0.4):
            patch[f"$setElementOrder/{name}"] = self.shuffled([*value, "x.io/new", "x.io/newer"])

    def put_items(self, patch: Document, name: str, value: list[Document], depth: int) -> None:
        key = MERGE_KEYS.get(name, "")
        if value and key not in value[0]:
            key = "port" if name == "ports" else ""
        items = [self.item(one, key, depth) for one in self.shuffled(value)]
        if key and self.chance(0.3):
            fresh = copy.deepcopy(self.random.choice(value))
            fresh[key] = 99 if isinstance(fresh[key], int) else f"{fresh[key]}9"
            items.insert(self.random.randrange(0, len(items) + 1), fresh)
        if self.chance(0.05):
            items.insert(
                self.random.randrange(0, len(items) + 1), {"$patch": self.random.choice(["replace", "delete", "merge"])}
            )
        if items or self.chance(0.5):
            patch[name] = items
        if key and self.chance(0.4):
            listed = [{key: one[key]} for one in self.shuffled([*value, *(item for item in items if key in item)])]
            if self.chance(0.7):
                named = [{key: item[key]} for item in items if item.get("$patch") != "delete" and key in item]
                listed = [*named, *(one for one in listed if one not in named)]
            patch[f"$setElementOrder/{name}"] = listed

    def item(self, value: Document, key: str, depth: int) -> Document:
        if not key:
            return copy.deepcopy(value) if self.chance(0.7) else self.changed_map(value, depth)
        found = {key: value[key]} if not self.chance(self.wrong / 2) else {}
        choice = self.random.random()
        if choice < 0.15:
            return {**found, "$patch": "delete"}
        if choice < 0.25:
            return {
                **found,
                **{name: copy.deepcopy(one) for name, one in value.items() if name != key},
                "$patch": "replace",
            }
        change = self.changed_map({name: one for name, one in value.items() if name != key}, depth)
        return {**change, **found, **({"$patch": "merge"} if choice < 0.3 else {})}
