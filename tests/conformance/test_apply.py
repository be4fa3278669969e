"""Server-side apply and managedFields on both servers: who owns what, who may take it, and what the refusals say."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ctrlruntime.errors import APIStatusError
from ctrlruntime.testing import Environment

Document = dict[str, Any]
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
GROUP = "owners.example.com"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def schema(**spec: Any) -> Document:
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }


TEXT = {"type": "string"}
ITEM = {
    "type": "object",
    "required": ["port"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "note": TEXT,
    },
}
FIELDS = {
    "replicas": {"type": "integer"},
    "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "ports": {
        "type": "array",
        "items": ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    "steps": {"type": "array", "items": TEXT},
    "whole": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
    "options": {"type": "object", "additionalProperties": TEXT},
}
PARCEL = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"parcels.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "parcels", "kind": "Parcel"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {"openAPIV3Schema": schema(**FIELDS)},
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
            }
            for name in ("v1", "v2")
        ],
    },
}

UNTYPED = "failed to create typed patch object (/a; /v1, Kind=ConfigMap): "
REFUSED = 'Operation cannot be fulfilled on configmaps "a"'


class Client:
    """Writes to objects of one namespace, as this or that manager."""

    def __init__(self, server: Environment, namespace: str) -> None:
        self._connection = server.connection
        self.namespace = namespace

    def path(self, kind: str, name: str = "", subresource: str = "", version: str = "") -> str:
        root = {
            "ConfigMap": f"/api/v1/namespaces/{self.namespace}/configmaps",
            "Deployment": f"/apis/apps/v1/namespaces/{self.namespace}/deployments",
            "Service": f"/api/v1/namespaces/{self.namespace}/services",
            "Pod": f"/api/v1/namespaces/{self.namespace}/pods",
            "Parcel": f"/apis/{GROUP}/{version or 'v1'}/namespaces/{self.namespace}/parcels",
        }[kind]
        return "/".join(filter(None, (root, name, subresource)))

    def send(self, method: str, path: str, body: Any = None, content_type: str = "", **query: str) -> Document:
        text = "&".join(f"{key}={value}" for key, value in query.items())
        return self._connection.request(method, f"{path}?{text}", body, content_type=content_type)

    def create(self, body: Document, manager: str = "creator") -> Document:
        return self.send("POST", self.path(body["kind"]), body, fieldManager=manager)

    def apply(
        self, body: Document, manager: str, *, subresource: str = "", version: str = "", **query: str
    ) -> Document:
        path = self.path(body["kind"], body["metadata"]["name"], subresource, version)
        return self.send("PATCH", path, body, APPLY, fieldManager=manager, **query)

    def patch(
        self, document: Document, change: Any, manager: str, *, subresource: str = "", form: str = MERGE
    ) -> Document:
        path = self.path(document["kind"], document["metadata"]["name"], subresource)
        return self.send("PATCH", path, change, form, fieldManager=manager)

    def put(self, document: Document, manager: str, subresource: str = "") -> Document:
        path = self.path(document["kind"], document["metadata"]["name"], subresource)
        return self.send("PUT", path, document, fieldManager=manager)

    def get(self, document: Document) -> Document:
        return self.send("GET", self.path(document["kind"], document["metadata"]["name"]))


@pytest.fixture
def api(server: Environment, namespace: str) -> Client:
    return Client(server, namespace)


@pytest.fixture(scope="module")
def parcels(server: Environment) -> Iterator[None]:
    names = server.install_crds(PARCEL)
    yield
    server.uninstall_crds(names)


def refused(action: Callable[[], Any]) -> APIStatusError:
    with pytest.raises(APIStatusError) as caught:
        action()
    return caught.value


def config_map(name: str = "a", **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **({"data": data} if data else {})}


def parcel(**spec: Any) -> Document:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Parcel", "metadata": {"name": "p"}, "spec": spec}


def deployment(replicas: int | None = 1, **container: Any) -> Document:
    spec: Document = {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x:1", **container}]},
        },
    }
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def owned(document: Document) -> dict[str, Document]:
    """Fields by `manager operation`, with the subresource where there is one."""
    return {
        " ".join(filter(None, (entry["manager"], entry["operation"], entry.get("subresource")))): entry["fieldsV1"]
        for entry in document["metadata"].get("managedFields", [])
    }


def eventually_sync(claim: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until a claim holds: kube-apiserver takes a moment to serve a changed definition."""
    limit = time.monotonic() + seconds
    while not claim():
        assert time.monotonic() < limit, "the definition's change did not come into force"
        time.sleep(0.05)


# Updates


def test_a_create_owns_what_was_sent_and_what_was_defaulted(api) -> None:
    created = api.create(deployment(ports=[{"containerPort": 80}]))

    (entry,) = created["metadata"]["managedFields"]
    assert {key: entry[key] for key in ("manager", "operation", "apiVersion", "fieldsType")} == {
        "manager": "creator",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
    }
    assert "time" in entry
    spec = entry["fieldsV1"]["f:spec"]
    assert "f:progressDeadlineSeconds" in spec
    assert spec["f:selector"] == {}
    assert spec["f:strategy"] == {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}}
    container = spec["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["f:ports"] == {
        ".": {},
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}, "f:protocol": {}},
    }


def test_an_update_owns_what_it_changed_and_takes_it_from_the_others(api) -> None:
    api.create(config_map(a="1", b="1"), "first")

    changed = api.patch(config_map(), {"data": {"b": "2", "c": "1"}}, "second")

    assert owned(changed) == {
        "first Update": {"f:data": {".": {}, "f:a": {}}},
        "second Update": {"f:data": {"f:b": {}, "f:c": {}}},
    }


def test_a_removed_field_leaves_all_owners_and_an_empty_one_goes(api) -> None:
    api.create(config_map(a="1"), "first")
    api.patch(config_map(), {"data": {"b": "1"}}, "second")

    changed = api.patch(config_map(), {"data": {"b": None}}, "third")

    assert owned(changed) == {"first Update": {"f:data": {".": {}, "f:a": {}}}}


def test_an_update_that_changes_nothing_is_none(api) -> None:
    created = api.create(config_map(a="1"))

    again = api.put(created, "other")

    assert again["metadata"] == created["metadata"]


def test_a_put_without_managed_fields_keeps_them(api) -> None:
    created = api.create(config_map(a="1"), "first")
    bare = {**created, "metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}}

    changed = api.put(bare, "second")

    assert owned(changed) == {
        "first Update": {"f:data": {".": {}, "f:a": {}}},
        "second Update": {"f:data": {"f:b": {}}},
    }


def test_an_object_of_which_nothing_is_owned_has_no_managed_fields(api) -> None:
    created = api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})

    assert "managedFields" not in created["metadata"]


@pytest.mark.parametrize("cleared", [[], [{}]])
def test_cleared_managed_fields_stay_away_until_the_next_apply(api, cleared) -> None:
    api.create(config_map(a="1"), "first")

    emptied = api.patch(config_map(), {"metadata": {"managedFields": cleared}, "data": {"b": "1"}}, "second")
    later = api.patch(config_map(), {"data": {"c": "1"}}, "second")
    applied = api.apply(config_map(a="1"), "third")

    assert owned(emptied) == owned(later) == {}
    assert owned(applied) == {
        "third Apply": {"f:data": {"f:a": {}}},
        "before-first-apply Update": {"f:data": {".": {}, "f:a": {}, "f:b": {}, "f:c": {}}},
    }


def test_a_client_may_write_managed_fields(api) -> None:
    entry = {
        "manager": "history",
        "operation": "Apply",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    api.create(config_map(a="1"), "first")

    changed = api.patch(config_map(), {"metadata": {"managedFields": [entry]}}, "second")

    assert changed["metadata"]["managedFields"] == [entry]


def test_more_than_ten_updaters_are_merged_into_ancient_changes(api) -> None:
    api.create(config_map(k="1"), "m00")

    for number in range(1, 13):
        changed = api.patch(config_map(), {"data": {f"k{number}": "1"}}, f"m{number:02}")

    managers = [entry["manager"] for entry in changed["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert "ancient-changes" in managers
    assert owned(changed)["ancient-changes Update"]["f:data"].keys() >= {"f:k", "f:k1"}


def test_status_and_object_are_owned_apart(api) -> None:
    created = api.create(deployment(), "owner")
    status = {"status": {"collisionCount": 7}, "spec": {"replicas": 9}, "metadata": {"annotations": {"a": "b"}}}

    changed = api.patch(created, status, "reporter", subresource="status")

    assert changed["spec"]["replicas"] == 1
    assert "f:status" not in owned(created)["owner Update"]
    fields = owned(changed)["reporter Update status"]
    assert fields["f:status"] == {"f:collisionCount": {}}
    assert "f:a" in fields["f:metadata"]["f:annotations"]
    assert fields.keys() == {"f:metadata", "f:status"}


# Apply


def test_an_apply_creates_and_owns_what_it_names(api) -> None:
    applied = api.apply(deployment(), "mine")

    (entry,) = [e for e in applied["metadata"]["managedFields"] if e["operation"] == "Apply"]
    assert entry["manager"] == "mine"
    spec = entry["fieldsV1"]["f:spec"]
    assert spec.keys() == {"f:replicas", "f:selector", "f:template"}
    container = spec["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container == {".": {}, "f:image": {}, "f:name": {}}


def test_the_same_apply_again_writes_nothing(api) -> None:
    first = api.apply(config_map(a="1"), "mine")
    second = api.apply(config_map(a="1"), "mine")

    assert second == first


def test_an_apply_that_only_shares_fields_has_no_time(api) -> None:
    api.apply(config_map(a="1"), "first")

    shared = api.apply(config_map(a="1"), "second")

    times = {entry["manager"]: "time" in entry for entry in shared["metadata"]["managedFields"]}
    assert times == {"first": True, "second": False}


def test_a_field_goes_when_its_only_applier_leaves_it_out(api) -> None:
    api.apply(config_map(a="1", b="1"), "mine")

    applied = api.apply(config_map(a="1"), "mine")

    assert applied["data"] == {"a": "1"}


def test_a_shared_field_stays_for_the_other_owner(api) -> None:
    api.apply(config_map(a="1", b="1"), "first")
    api.apply(config_map(b="1"), "second")

    applied = api.apply(config_map(a="1"), "first")

    assert applied["data"] == {"a": "1", "b": "1"}
    assert owned(applied)["second Apply"] == {"f:data": {"f:b": {}}}


def test_a_conflict_names_owner_and_field(api) -> None:
    api.create(deployment(), "m1")

    error = refused(lambda: api.apply(deployment(replicas=3), "m2"))

    assert error.code == 409
    assert error.status["message"] == 'Apply failed with 1 conflict: conflict with "m1" using apps/v1: .spec.replicas'
    assert [(cause.reason, cause.field) for cause in error.causes] == [("FieldManagerConflict", ".spec.replicas")]


def test_several_conflicts_are_listed_by_owner(api) -> None:
    api.apply(deployment(command=["a"]), "m1")
    api.patch(deployment(), {"spec": {"paused": True}}, "m0")
    other = deployment(replicas=2, image="x:2", command=["b"])
    other["spec"]["paused"] = False

    error = refused(lambda: api.apply(other, "m2"))

    container = '.spec.template.spec.containers[name="c"]'
    assert error.status["message"] == (
        'Apply failed with 4 conflicts: conflicts with "m0" using apps/v1:\n- .spec.paused\n'
        f'conflicts with "m1":\n- .spec.replicas\n- {container}.command\n- {container}.image'
    )


def test_force_takes_the_fields(api) -> None:
    api.apply(config_map(a="1", b="1"), "first")

    applied = api.apply(config_map(a="2"), "second", force="true")

    assert applied["data"] == {"a": "2", "b": "1"}
    assert owned(applied) == {
        "first Apply": {"f:data": {"f:b": {}}},
        "second Apply": {"f:data": {"f:a": {}}},
    }


def test_equal_values_are_no_conflict(api) -> None:
    api.apply(config_map(a="1"), "first")

    applied = api.apply(config_map(a="1"), "second")

    assert owned(applied) == {"first Apply": {"f:data": {"f:a": {}}}, "second Apply": {"f:data": {"f:a": {}}}}


def test_items_of_a_list_with_keys_merge_and_keep_their_order(api) -> None:
    api.apply(deployment(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]), "first")

    applied = api.apply(deployment(env=[{"name": "C", "value": "1"}, {"name": "A", "value": "1"}]), "second")

    (container,) = applied["spec"]["template"]["spec"]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["C", "A", "B"]


def test_a_default_tells_items_apart(api) -> None:
    api.apply(deployment(ports=[{"containerPort": 80, "protocol": "TCP"}]), "first")

    applied = api.apply(deployment(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]), "second")

    (container,) = applied["spec"]["template"]["spec"]["containers"]
    assert [port["protocol"] for port in container["ports"]] == ["TCP", "UDP"]


def test_finalizers_are_a_set(api) -> None:
    one, two = config_map(), config_map()
    one["metadata"]["finalizers"] = ["x.io/a"]
    two["metadata"]["finalizers"] = ["x.io/b"]
    api.apply(one, "first")

    both = api.apply(two, "second")
    left = api.apply(config_map(), "first")

    assert both["metadata"]["finalizers"] == ["x.io/a", "x.io/b"]
    assert left["metadata"]["finalizers"] == ["x.io/b"]
    api.apply(config_map(), "second")


def test_a_stale_resource_version_is_refused(api) -> None:
    applied = api.apply(config_map(a="1"), "mine")
    api.apply(config_map(a="2"), "mine")
    stale = config_map(a="3")
    stale["metadata"]["resourceVersion"] = applied["metadata"]["resourceVersion"]

    error = refused(lambda: api.apply(stale, "mine"))

    assert (error.code, error.status["reason"]) == (409, "Conflict")
    assert "the object has been modified" in error.status["message"]


def test_a_dry_run_stores_nothing(api) -> None:
    shown = api.apply(config_map(a="1"), "mine", dryRun="All")

    assert shown["data"] == {"a": "1"}
    assert refused(lambda: api.get(config_map())).code == 404


def test_a_status_apply_owns_the_status(api) -> None:
    created = api.create(deployment(), "owner")
    condition = {"type": "Tested", "status": "True"}
    config = {**deployment(replicas=5), "status": {"conditions": [condition]}}

    applied = api.apply(config, "reporter", subresource="status")

    assert applied["spec"]["replicas"] == created["spec"]["replicas"]
    assert owned(applied)["reporter Apply status"] == {
        "f:status": {"f:conditions": {'k:{"type":"Tested"}': {".": {}, "f:status": {}, "f:type": {}}}}
    }


# Refusals


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap"),
        ({"kind": "Secret"}, 400, "invalid object type: /v1, Kind=Secret"),
        ({"metadata": {"name": "a", "managedFields": [{}]}}, 400, "metadata.managedFields must be nil"),
        (
            {"bogus": 1},
            500,
            f"{UNTYPED}.bogus: field not declared in schema",
        ),
        (
            {"data": {"x": 1}},
            500,
            f"{UNTYPED}.data.x: expected string, got &value.valueUnstructured{{Value:1}}",
        ),
        (
            {"data": []},
            500,
            f"{UNTYPED}.data: expected map, got &{{[]}}",
        ),
        (
            {"metadata": {"name": "b"}},
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            {"metadata": {"name": "a", "uid": "x"}},
            409,
            f"{REFUSED}: uid mismatch: the provided object specified uid x, and no existing object was found",
        ),
    ],
)
def test_what_cannot_be_applied_is_refused_with_these_words(api, change, code, message) -> None:
    error = refused(
        lambda: api.send("PATCH", api.path("ConfigMap", "a"), {**config_map(), **change}, APPLY, fieldManager="m")
    )

    assert (error.code, error.status["message"]) == (code, message)


def test_an_apply_to_another_objects_uid_is_refused(api) -> None:
    api.create(config_map(a="1"))
    other = config_map(a="1")
    other["metadata"]["uid"] = "x"

    error = refused(lambda: api.apply(other, "m"))

    assert error.code == 422
    assert {(cause.field, cause.message) for cause in error.causes} == {
        ("metadata.uid", 'Invalid value: "x": field is immutable')
    }


def test_items_with_the_same_keys_are_refused(api) -> None:
    error = refused(lambda: api.apply(deployment(env=[{"name": "A"}, {"name": "A", "value": "1"}]), "m"))

    assert error.code == 500
    assert error.status["message"] == (
        "failed to create typed patch object (/d; apps/v1, Kind=Deployment): "
        '.spec.template.spec.containers[name="c"].env: duplicate entries for key [name="A"]'
    )


def test_an_apply_names_its_manager(api) -> None:
    error = refused(lambda: api.send("PATCH", api.path("ConfigMap", "a"), config_map(), APPLY))

    assert error.code == 422
    assert [(cause.field, cause.message) for cause in error.causes] == [
        ("fieldManager", "Required value: is required for apply patch")
    ]


def test_only_an_apply_can_be_forced(api) -> None:
    api.create(config_map())

    error = refused(lambda: api.send("PATCH", api.path("ConfigMap", "a"), {}, MERGE, force="true"))

    assert error.code == 422
    assert [cause.field for cause in error.causes] == ["force"]


def test_a_subresource_is_not_created_by_an_apply(api) -> None:
    error = refused(lambda: api.apply(deployment(), "m", subresource="status"))

    assert (error.code, error.status["reason"]) == (404, "NotFound")


# Custom resources


@pytest.mark.usefixtures("parcels")
def test_sets_maps_and_atomic_lists_of_a_custom_resource(api) -> None:
    one = parcel(tags=["a"], ports=[{"port": 1}], steps=["x"], whole={"a": "1"}, options={"a": "1"})
    two = parcel(tags=["b"], ports=[{"port": 1, "protocol": "UDP"}], options={"b": "1"})
    api.apply(one, "first")

    both = api.apply(two, "second")
    error = refused(lambda: api.apply(parcel(steps=["y"], whole={"b": "1"}), "third"))

    assert both["spec"] == {
        "tags": ["a", "b"],
        "ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}],
        "steps": ["x"],
        "whole": {"a": "1"},
        "options": {"a": "1", "b": "1"},
    }
    assert owned(both)["second Apply"] == {
        "f:spec": {
            "f:options": {"f:b": {}},
            "f:ports": {'k:{"port":1,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:tags": {'v:"b"': {}},
        }
    }
    assert sorted(cause.field for cause in error.causes) == [".spec.steps", ".spec.whole"]


@pytest.mark.usefixtures("parcels")
def test_two_versions_of_a_kind_share_its_owners(api) -> None:
    later = {**parcel(replicas=2), "apiVersion": f"{GROUP}/v2"}
    api.apply(parcel(replicas=1, tags=["a"]), "first")

    error = refused(lambda: api.apply(later, "second", version="v2"))
    taken = api.apply(later, "second", version="v2", force="true")

    assert [cause.field for cause in error.causes] == [".spec.replicas"]
    assert {(e["manager"], e["apiVersion"]) for e in taken["metadata"]["managedFields"]} == {
        ("first", f"{GROUP}/v1"),
        ("second", f"{GROUP}/v2"),
    }
    assert owned(taken)["first Apply"] == {"f:spec": {"f:tags": {'v:"a"': {}}}}


@pytest.mark.usefixtures("parcels")
def test_a_custom_status_write_owns_nothing_else(api) -> None:
    api.create(parcel(replicas=1), "owner")
    change = {"status": {"ready": True}, "metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}}

    changed = api.patch(parcel(), change, "reporter", subresource="status")

    assert owned(changed)["reporter Update status"] == {"f:status": {".": {}, "f:ready": {}}}


def test_a_map_that_becomes_atomic_has_one_owner(api, server) -> None:
    document = json.loads(json.dumps(PARCEL).replace(f"parcels.{GROUP}", f"crates.{GROUP}"))
    document["spec"]["names"] = {"plural": "crates", "kind": "Crate"}
    del document["spec"]["versions"][1]
    names = server.install_crds(document)
    crate = {"apiVersion": f"{GROUP}/v1", "kind": "Crate", "metadata": {"name": "c"}, "spec": {"options": {"a": "1"}}}
    path = f"/apis/{GROUP}/v1/namespaces/{api.namespace}/crates/c"
    api.send("PATCH", path, crate, APPLY, fieldManager="first")

    properties = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["options"]["x-kubernetes-map-type"] = "atomic"
    server.install_crds(document)
    other = {**crate, "spec": {"options": {"b": "1"}}}

    def is_in_force() -> bool:
        try:
            api.send("PATCH", path, other, APPLY, fieldManager="second", dryRun="All")
        except APIStatusError:
            return True
        return False

    eventually_sync(is_in_force)
    error = refused(lambda: api.send("PATCH", path, other, APPLY, fieldManager="second"))
    forced = api.send("PATCH", path, other, APPLY, fieldManager="second", force="true")

    assert [cause.field for cause in error.causes] == [".spec.options"]
    assert forced["spec"] == {"options": {"b": "1"}}
    assert owned(forced) == {"second Apply": {"f:spec": {"f:options": {}}}}
    server.uninstall_crds(names)


def test_two_versions_of_a_built_in_kind_share_its_owners(api) -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
    }
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}

    def path(version: str) -> str:
        return f"/apis/autoscaling/{version}/namespaces/{api.namespace}/horizontalpodautoscalers/h"

    def scaler(version: str, **spec: Any) -> Document:
        head = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
        return {**head, "spec": spec}

    later = scaler("v2", maxReplicas=5, minReplicas=2, scaleTargetRef=reference, metrics=[metric])
    older = scaler("v1", maxReplicas=6, targetCPUUtilizationPercentage=50)
    api.send("PATCH", path("v2"), later, APPLY, fieldManager="first")

    error = refused(lambda: api.send("PATCH", path("v1"), older, APPLY, fieldManager="second"))
    taken = api.send("PATCH", path("v1"), older, APPLY, fieldManager="second", force="true")

    assert error.status["message"] == 'Apply failed with 1 conflict: conflict with "first": .spec.maxReplicas'
    assert owned(taken)["second Apply"] == {"f:spec": {"f:maxReplicas": {}, "f:targetCPUUtilizationPercentage": {}}}
    assert "f:maxReplicas" not in owned(taken)["first Apply"]["f:spec"]
    assert api.send("GET", path("v2"))["spec"]["metrics"] == [metric]


# Scale


def scale(replicas: int) -> Document:
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}}


def test_a_write_to_scale_owns_the_replicas(api) -> None:
    api.create(deployment(replicas=0), "owner")
    path = api.path("Deployment", "d", "scale")
    body = {**scale(2), "metadata": {"name": "d", "namespace": api.namespace}}

    api.send("PUT", path, body, fieldManager="scaler")
    changed = api.get(deployment())

    (entry,) = [e for e in changed["metadata"]["managedFields"] if e["manager"] == "scaler"]
    assert {key: value for key, value in entry.items() if key != "time"} == {
        "manager": "scaler",
        "operation": "Update",
        "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
        "subresource": "scale",
    }
    assert "f:replicas" not in owned(changed)["owner Update"]["f:spec"]


def test_an_apply_of_the_object_conflicts_with_an_apply_of_its_scale(api) -> None:
    api.apply(deployment(replicas=None), "owner")
    path = api.path("Deployment", "d", "scale")
    api.send("PATCH", path, scale(3), APPLY, fieldManager="scaler", force="true")

    error = refused(lambda: api.apply(deployment(replicas=5), "owner"))

    assert error.status["message"] == (
        'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale": .spec.replicas'
    )


# kubectl


def test_client_side_apply_migrates_without_conflicts(api) -> None:
    before = config_map(a="1", b="1")
    text = json.dumps(before)
    before["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(before, "kubectl-client-side-apply")

    applied = api.apply(config_map(a="2", b="1"), "kubectl")

    assert applied["data"] == {"a": "2", "b": "1"}
    assert json.loads(applied["metadata"]["annotations"][LAST_APPLIED])["data"] == {"a": "2", "b": "1"}


def test_client_side_apply_does_not_take_what_others_changed(api) -> None:
    before = config_map(a="1", b="1")
    text = json.dumps(before)
    before["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(before, "kubectl-client-side-apply")
    api.patch(config_map(), {"data": {"a": "9"}}, "other")

    error = refused(lambda: api.apply(config_map(a="2", b="2"), "kubectl"))

    assert error.status["message"] == 'Apply failed with 1 conflict: conflict with "other" using v1: .data.a'


def test_kubectls_migration_of_managers_passes(api) -> None:
    """Apply as kubectl, apply the last configuration, hand the entries over by JSON patch, apply again."""
    before = config_map(a="1", b="1")
    text = json.dumps(before)
    before["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(before, "kubectl-client-side-apply")

    api.apply(config_map(a="1", b="1"), "kubectl")
    last = api.apply(config_map(a="1", b="1"), "kubectl-last-applied", force="true")
    entries = [e for e in last["metadata"]["managedFields"] if e["manager"] == "kubectl"]
    replaced = api.patch(
        last,
        [
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": last["metadata"]["resourceVersion"]},
        ],
        "kubectl",
        form=JSON_PATCH,
    )
    final = api.apply(config_map(a="1"), "kubectl")

    assert [entry["manager"] for entry in replaced["metadata"]["managedFields"]] == ["kubectl"]
    assert final["data"] == {"a": "1"}


def test_entries_are_sorted_by_operation_time_and_name(api) -> None:
    api.create(config_map(z="1"), "zz")
    for manager in ("b", "a"):
        api.apply(config_map(**{manager: manager}), manager)

    entries = api.get(config_map())["metadata"]["managedFields"]

    assert [entry["operation"] for entry in entries] == ["Apply", "Apply", "Update"]
    applied = [(entry["time"], entry["manager"]) for entry in entries[:2]]
    assert applied == sorted(applied)


@pytest.fixture
def kubectl(server: Environment, namespace: str) -> Callable[..., tuple[int, str]]:
    """Run kubectl in the namespace with a manifest on its standard input; the exit code and both outputs."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("needs kubectl in the PATH")

    def run(*words: str, manifest: Document | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [program, "--kubeconfig", str(server.kubeconfig_path), "-n", namespace, *words],
            input="" if manifest is None else json.dumps(manifest),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_kubectl_moves_from_client_side_to_server_side_and_back(api, kubectl) -> None:
    server_side = ("apply", "--server-side", "-f", "-")

    first = kubectl("apply", "-f", "-", manifest=config_map(a="1", b="1"))
    moved = kubectl(*server_side, manifest=config_map(a="2"))
    again = kubectl(*server_side, manifest=config_map(a="2"))
    after = api.get(config_map())
    back = kubectl("apply", "-f", "-", manifest=config_map(a="3"))

    assert [code for code, _ in (first, moved, again, back)] == [0, 0, 0, 0]
    assert moved[1] == again[1] == "configmap/a serverside-applied\n"
    assert after["data"] == {"a": "2"}
    assert owned(after).keys() == {"kubectl Apply", "kubectl-last-applied Apply"}
    assert api.get(config_map())["data"] == {"a": "3"}


def test_kubectl_tells_conflicts_and_forces_them(api, kubectl) -> None:
    api.create(deployment(replicas=0), "other")

    refusal = kubectl("apply", "--server-side", "-f", "-", manifest=deployment(replicas=1))
    forced = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", manifest=deployment(replicas=1))
    code, shown = kubectl("get", "deployment", "d", "-o", "yaml", "--show-managed-fields")

    assert refusal[0] == 1
    assert 'error: Apply failed with 1 conflict: conflict with "other" using apps/v1: .spec.replicas' in refusal[1]
    assert forced == (0, "deployment.apps/d serverside-applied\n")
    assert code == 0
    assert "manager: kubectl" in shown
