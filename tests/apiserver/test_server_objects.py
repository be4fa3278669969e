from __future__ import annotations

import re

import pytest

CORE = "/api/v1"


def test_create_sets_what_only_the_server_knows(api, ns, make):
    body = make.config_map("a", k="v")
    body["metadata"].update({"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "labels": {}})

    answer = api.post(f"{CORE}/{ns}/configmaps", body)

    assert answer.code == 201
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-cache, private"
    metadata = answer.body["metadata"]
    assert list(answer.body) == ["kind", "apiVersion", "metadata", "data"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2020"
    assert metadata["namespace"] == ns.removeprefix("namespaces/")
    assert metadata["resourceVersion"].isdigit()
    assert "labels" not in metadata
    assert "generation" not in metadata
    assert api.get(f"{CORE}/{ns}/configmaps/a").raw == answer.raw


@pytest.mark.parametrize(
    ("path", "code", "reason", "message"),
    [
        ("/api/v1/{ns}/configmaps/nope", 404, "NotFound", 'configmaps "nope" not found'),
        ("/apis/apps/v1/{ns}/deployments/nope", 404, "NotFound", 'deployments.apps "nope" not found'),
        ("/api/v2", 404, "NotFound", "the server could not find the requested resource"),
        ("/api/v1/widgets", 404, "NotFound", "the server could not find the requested resource"),
    ],
)
def test_missing_things_are_404_with_a_status(api, ns, path, code, reason, message):
    answer = api.get(path.format(ns=ns))

    assert (answer.code, answer.reason, answer.message) == (code, reason, message)


def test_details_of_not_found_name_the_plural(api, ns):
    details = api.get(f"/apis/apps/v1/{ns}/deployments/nope").body["details"]

    assert details == {"name": "nope", "group": "apps", "kind": "deployments"}


@pytest.mark.parametrize("path", ["/apis/nope.io/v1/things", "/apis/nope.io", "/nope"])
def test_unknown_groups_and_paths_are_plain_404(api, path):
    answer = api.get(path)

    assert (answer.code, answer.raw) == (404, b"404 page not found\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_verbs_that_a_path_does_not_have_are_405(api, ns):
    for method, path in (
        ("PUT", f"{CORE}/{ns}/configmaps"),
        ("POST", f"{CORE}/{ns}/configmaps/a"),
        ("POST", f"{CORE}/configmaps"),
        ("DELETE", f"{CORE}/namespaces"),
    ):
        answer = api.request(method, path, {})
        assert (answer.code, answer.reason) == (405, "MethodNotAllowed"), (method, path)
        assert answer.message == "the server does not allow this method on the requested resource"


def test_an_existing_name_is_a_conflict(api, ns, make):
    api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))

    answer = api.post(f"{CORE}/{ns}/configmaps", make.config_map("a"))

    assert (answer.code, answer.reason, answer.message) == (409, "AlreadyExists", 'configmaps "a" already exists')


def test_a_missing_namespace_beats_an_invalid_object(api):
    answer = api.post(f"{CORE}/namespaces/nowhere/configmaps", {"metadata": {"name": "BAD"}})

    assert (answer.code, answer.message) == (404, 'namespaces "nowhere" not found')


def test_a_resource_version_on_create_is_a_500_without_reason(api, ns, make):
    body = make.config_map("a")
    body["metadata"]["resourceVersion"] = "1"

    answer = api.post(f"{CORE}/{ns}/configmaps", body)

    assert (answer.code, answer.reason) == (500, "")
    assert answer.message == "resourceVersion should not be set on objects to be created"


def test_bad_metadata_is_422_with_a_cause_for_each_field(api, ns):
    metadata = {
        "name": "Bad_Name",
        "labels": {"-x": "y", "ok": "-no"},
        "finalizers": ["plain"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": ""}],
    }

    answer = api.post(f"{CORE}/{ns}/configmaps", {"metadata": metadata})

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'ConfigMap "Bad_Name" is invalid: [metadata.name: Invalid value: "Bad_Name": a lowercase RFC'
    )
    assert answer.body["details"]["kind"] == "ConfigMap"
    assert {field for field, _ in answer.causes} == {
        "metadata.name",
        "metadata.labels",
        "metadata.finalizers[0]",
        "metadata.ownerReferences.uid",
    }


def test_no_name_at_all_is_required(api, ns):
    answer = api.post(f"{CORE}/{ns}/configmaps", {"metadata": {}})

    assert answer.code == 422
    assert ("metadata.name", "FieldValueRequired") in answer.causes


def test_generate_name_appends_five_letters_of_the_safe_alphabet(api, ns):
    made = api.made(f"{CORE}/{ns}/configmaps", {"metadata": {"generateName": "g-"}})
    long = api.made(f"{CORE}/{ns}/configmaps", {"metadata": {"generateName": "x" * 70}})

    assert re.fullmatch(r"g-[bcdfghjklmnpqrstvwxz2456789]{5}", made["metadata"]["name"])
    assert len(long["metadata"]["name"]) == 63


def test_name_wins_over_generate_name_and_a_clash_says_so(api, ns):
    body = {"metadata": {"name": "n", "generateName": "g-"}}
    api.made(f"{CORE}/{ns}/configmaps", body)

    answer = api.post(f"{CORE}/{ns}/configmaps", body)

    assert answer.code == 409
    assert answer.message.endswith("the server was not able to generate a unique name for the object")
    assert answer.headers["Retry-After"] == "1"


def test_namespace_and_name_in_the_body_must_fit_the_path(api, ns, make):
    other = make.config_map("a")
    other["metadata"]["namespace"] = "other"
    api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))

    wrong_namespace = api.post(f"{CORE}/{ns}/configmaps", other)
    wrong_name = api.put(f"{CORE}/{ns}/configmaps/a", make.config_map("b"))

    assert (
        wrong_namespace.message
        == "the namespace of the provided object does not match the namespace sent on the request"
    )
    assert wrong_name.message == "the name of the object (b) does not match the name on the URL (a)"
    assert (wrong_namespace.code, wrong_name.code) == (400, 400)


def test_bodies_of_the_wrong_kind_or_type_are_400(api, ns, make):
    wrong_kind = api.post(f"{CORE}/{ns}/configmaps", {**make.config_map("a"), "kind": "Secret"})
    wrong_type = api.post(f"/apis/apps/v1/{ns}/deployments", {**make.deployment("a"), "spec": {"replicas": "three"}})
    broken = api.post(f"{CORE}/{ns}/configmaps", b"{")
    text = api.request("POST", f"{CORE}/{ns}/configmaps", b"x", headers={"Content-Type": "text/plain"})

    assert wrong_kind.message.startswith('Secret in version "v1" cannot be handled as a ConfigMap')
    assert wrong_type.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field '
        "DeploymentSpec.spec.replicas of type int32"
    )
    assert broken.message.startswith("the object provided is unrecognized (must be of type ConfigMap)")
    assert [wrong_kind.code, wrong_type.code, broken.code, text.code] == [400, 400, 400, 415]


def test_unknown_and_duplicate_fields_follow_field_validation(api, ns):
    body = b'{"metadata":{"name":"%s","bogus":1},"data":{"a":"1","a":"2"}}'

    warned = api.post(f"{CORE}/{ns}/configmaps", body % b"w")
    ignored = api.post(f"{CORE}/{ns}/configmaps", body % b"i", fieldValidation="Ignore")
    strict = api.post(f"{CORE}/{ns}/configmaps", body % b"s", fieldValidation="Strict")
    nonsense = api.post(f"{CORE}/{ns}/configmaps", body % b"n", fieldValidation="Maybe")

    assert warned.warnings == [r'299 - "unknown field \"metadata.bogus\""', r'299 - "duplicate field \"data.a\""']
    assert "bogus" not in warned.body["metadata"]
    assert ignored.code == 201
    assert not ignored.warnings
    assert strict.code == 400
    assert 'strict decoding error: unknown field "metadata.bogus", duplicate field "data.a"' in strict.message
    assert (nonsense.code, nonsense.body["details"]["kind"]) == (422, "CreateOptions")


def test_update_needs_the_present_version_when_it_names_one(api, ns, make):
    first = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a", k="1"))
    second = api.put(f"{CORE}/{ns}/configmaps/a", {**first, "data": {"k": "2"}})

    stale = api.put(f"{CORE}/{ns}/configmaps/a", {**first, "data": {"k": "3"}})
    unversioned = api.put(f"{CORE}/{ns}/configmaps/a", make.config_map("a", k="4"))

    assert second.code == 200
    assert int(second.version) > int(first["metadata"]["resourceVersion"])
    assert (stale.code, stale.reason) == (409, "Conflict")
    assert stale.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the '
        "latest version and try again"
    )
    assert unversioned.code == 200


def test_custom_resources_and_leases_need_a_version_for_an_update(api, ns, widgets, make):
    api.made(f"{widgets}/{ns}/widgets", make.widget("w"))
    lease = {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 5}}

    refused = api.put(f"{widgets}/{ns}/widgets/w", make.widget("w", 2))
    created = api.put(f"/apis/coordination.k8s.io/v1/{ns}/leases/l", lease)
    again = api.put(f"/apis/coordination.k8s.io/v1/{ns}/leases/l", lease)

    assert refused.message == (
        f'widgets.{make.group} "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )
    assert (created.code, again.code) == (201, 422)


def test_an_update_that_changes_nothing_writes_nothing(api, ns, make):
    made = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a", k="1"))

    answer = api.put(f"{CORE}/{ns}/configmaps/a", made)

    assert answer.code == 200
    assert answer.version == made["metadata"]["resourceVersion"]


def test_uid_in_an_update_must_be_the_stored_one(api, ns, make):
    made = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))
    made["metadata"]["uid"] = "other"

    answer = api.put(f"{CORE}/{ns}/configmaps/a", made)

    assert (answer.code, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in answer.message


def test_generation_counts_spec_changes_only(api, ns, make):
    path = f"/apis/apps/v1/{ns}/deployments"
    made = api.made(path, make.deployment("d"))
    assert made["metadata"]["generation"] == 1

    labelled = api.patch(f"{path}/d", {"metadata": {"labels": {"a": "b"}}}).body
    scaled = api.patch(f"{path}/d", {"spec": {"replicas": 5}}).body
    annotated = api.patch(f"{path}/d", {"metadata": {"annotations": {"a": "b"}}}).body
    forged = api.patch(f"{path}/d", {"metadata": {"generation": 99}}).body

    assert [d["metadata"]["generation"] for d in (labelled, scaled, annotated, forged)] == [1, 2, 3, 3]


def test_status_and_spec_are_written_through_different_doors(api, ns, widgets, make):
    path = f"{widgets}/{ns}/widgets"
    made = api.made(path, make.widget("w", status={"phase": "Forged"}))
    assert "status" not in made

    through_main = api.patch(f"{path}/w", {"status": {"phase": "Forged"}, "spec": {"size": 2}}).body
    through_status = api.patch(
        f"{path}/w/status", {"status": {"phase": "Ready"}, "spec": {"size": 9}, "metadata": {"labels": {"a": "b"}}}
    ).body

    assert "status" not in through_main
    assert through_main["metadata"]["generation"] == 2
    assert through_status["status"] == {"phase": "Ready"}
    assert through_status["spec"]["size"] == 2
    assert "labels" not in through_status["metadata"]
    assert through_status["metadata"]["generation"] == 2


def test_a_status_of_a_deployment_needs_the_version_too(api, ns, make):
    path = f"/apis/apps/v1/{ns}/deployments"
    made = api.made(path, make.deployment("d"))
    written = api.put(f"{path}/d/status", {**made, "status": {"replicas": 1, "conditions": []}})

    stale = api.put(f"{path}/d/status", {**made, "status": {"replicas": 2}})

    assert written.body["status"] == {"replicas": 1}
    assert stale.code == 409


def test_dry_run_does_everything_but_write(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    made = api.made(path, make.config_map("a", k="1"))

    created = api.post(path, make.config_map("b"), dryRun="All")
    updated = api.put(f"{path}/a", {**made, "data": {"k": "2"}}, dryRun="All")
    deleted = api.delete(f"{path}/a", dryRun="All")
    refused = api.post(path, make.config_map("c"), dryRun="Some")

    assert created.code == 201
    assert created.body["metadata"]["uid"]
    assert "resourceVersion" not in created.body["metadata"]
    assert updated.body["data"] == {"k": "2"}
    assert updated.version == made["metadata"]["resourceVersion"]
    assert deleted.code == 200
    assert refused.code == 422
    assert api.get(f"{path}/a").body == made
    assert api.get(f"{path}/b").code == 404


def test_delete_answers_with_a_status_or_with_the_object(api, ns, make):
    made = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))
    api.made(f"{CORE}/{ns}/serviceaccounts", {"metadata": {"name": "sa"}})

    status = api.delete(f"{CORE}/{ns}/configmaps/a")
    account = api.delete(f"{CORE}/{ns}/serviceaccounts/sa")

    assert status.code == 200
    assert status.body["status"] == "Success"
    assert status.body["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert account.body["kind"] == "ServiceAccount"
    assert api.delete(f"{CORE}/{ns}/configmaps/a").code == 404


def test_finalizers_hold_an_object_until_they_are_removed(api, ns, widgets, make):
    path = f"{widgets}/{ns}/widgets"
    body = make.widget("w")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.made(path, body)

    first = api.delete(f"{path}/w")
    second = api.delete(f"{path}/w")
    added = api.patch(f"{path}/w", {"metadata": {"finalizers": ["example.com/hold", "example.com/new"]}})
    recreated = api.post(path, make.widget("w"))
    revived = api.patch(f"{path}/w", {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}})
    released = api.patch(f"{path}/w", {"metadata": {"finalizers": None}})

    assert first.code == 200
    assert first.body["metadata"]["deletionTimestamp"]
    assert first.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert first.body["metadata"]["generation"] == 2
    assert second.raw == first.raw
    assert added.code == 422
    assert ("metadata.finalizers", "FieldValueForbidden") in added.causes
    assert recreated.message == f'object is being deleted: widgets.{make.group} "w" already exists'
    assert revived.body["metadata"]["deletionTimestamp"] == first.body["metadata"]["deletionTimestamp"]
    assert released.code == 200
    assert released.version == revived.version
    assert api.get(f"{path}/w").code == 404


def test_delete_preconditions(api, ns, make):
    made = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))
    uid = made["metadata"]["uid"]

    wrong_uid = api.delete(f"{CORE}/{ns}/configmaps/a", {"preconditions": {"uid": "x"}})
    wrong_version = api.delete(f"{CORE}/{ns}/configmaps/a", {"preconditions": {"resourceVersion": "1"}})
    right = api.delete(f"{CORE}/{ns}/configmaps/a", {"preconditions": {"uid": uid}})

    assert wrong_uid.code == 409
    assert f"the UID in the precondition (x) does not match the UID in record ({uid})" in wrong_uid.message
    assert wrong_uid.body["details"]["kind"] == "ConfigMap"
    assert "the ResourceVersion in the precondition (1) does not match" in wrong_version.message
    assert right.code == 200


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_policies_leave_a_finalizer_for_the_collector(api, ns, make, policy, finalizer):
    api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))

    by_body = api.delete(f"{CORE}/{ns}/configmaps/a", {"propagationPolicy": policy})
    clash = api.delete(f"{CORE}/{ns}/configmaps/a", {"propagationPolicy": policy, "orphanDependents": True})
    nonsense = api.delete(f"{CORE}/{ns}/configmaps/a", propagationPolicy="Sideways")

    assert by_body.body["metadata"]["finalizers"] == [finalizer]
    assert (clash.code, nonsense.code) == (422, 422)
    assert api.delete(f"{CORE}/{ns}/configmaps/a", propagationPolicy="Background").code == 200
    assert api.get(f"{CORE}/{ns}/configmaps/a").code == 404


def test_delete_collection_takes_what_the_selector_names(api, ns, make):
    for name in ("a", "b", "c"):
        body = make.config_map(name)
        body["metadata"]["labels"] = {"keep": str(name == "b").lower()}
        api.made(f"{CORE}/{ns}/configmaps", body)

    answer = api.delete(f"{CORE}/{ns}/configmaps", labelSelector="keep!=true")

    assert answer.code == 200
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    left = [item["metadata"]["name"] for item in api.get(f"{CORE}/{ns}/configmaps").body["items"]]
    assert left == ["b"]


def test_a_scheduled_pod_is_given_its_grace_period(api, ns):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]}
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "p"}, "spec": spec})

    first = api.delete(f"{CORE}/{ns}/pods/p").body["metadata"]
    shorter = api.delete(f"{CORE}/{ns}/pods/p", {"gracePeriodSeconds": 5}).body["metadata"]
    longer = api.delete(f"{CORE}/{ns}/pods/p", {"gracePeriodSeconds": 50}).body["metadata"]
    at_once = api.delete(f"{CORE}/{ns}/pods/p", {"gracePeriodSeconds": 0})

    assert [m["deletionGracePeriodSeconds"] for m in (first, shorter, longer)] == [30, 5, 5]
    assert at_once.code == 200
    assert api.get(f"{CORE}/{ns}/pods/p").code == 404


def test_an_unscheduled_pod_goes_at_once(api, ns):
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})

    assert api.delete(f"{CORE}/{ns}/pods/p").code == 200
    assert api.get(f"{CORE}/{ns}/pods/p").code == 404


def test_a_namespace_terminates_until_it_is_finalized(api, ns, make):
    name = ns.removeprefix("namespaces/")
    assert api.get(f"{CORE}/{ns}").body["spec"] == {"finalizers": ["kubernetes"]}
    assert api.get(f"{CORE}/{ns}").body["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}

    deleted = api.delete(f"{CORE}/{ns}").body
    refused = api.post(f"{CORE}/{ns}/configmaps", make.config_map("a"))
    unchanged = api.put(f"{CORE}/{ns}", {**deleted, "spec": {}})
    api.put(f"{CORE}/{ns}/finalize", {**unchanged.body, "spec": {"finalizers": []}})

    assert deleted["status"]["phase"] == "Terminating"
    assert refused.code == 403
    assert refused.message.endswith(f"unable to create new content in namespace {name} because it is being terminated")
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert unchanged.body["spec"] == {"finalizers": ["kubernetes"]}
    assert api.get(f"{CORE}/{ns}").code == 404


def test_system_namespaces_may_not_be_deleted(api):
    answer = api.delete(f"{CORE}/namespaces/default")

    assert (answer.code, answer.message) == (
        403,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    )


def test_scale_of_a_deployment(api, ns, make):
    path = f"/apis/apps/v1/{ns}/deployments"
    api.made(path, make.deployment("d", 2))

    scale = api.get(f"{path}/d/scale").body
    scaled = api.put(f"{path}/d/scale", {**scale, "spec": {"replicas": 4}})
    patched = api.patch(f"{path}/d/scale", {"spec": {"replicas": 5}})
    negative = api.put(f"{path}/d/scale", {"metadata": {"name": "d"}, "spec": {"replicas": -1}})
    stale = api.put(f"{path}/d/scale", {**scale, "spec": {"replicas": 9}})

    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=d"}
    assert scaled.body["spec"] == {"replicas": 4}
    assert patched.body["spec"] == {"replicas": 5}
    assert api.get(f"{path}/d").body["spec"]["replicas"] == 5
    assert negative.message.startswith('Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1')
    assert stale.code == 409


def test_a_pod_is_bound_once(api, ns):
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}

    bound = api.post(f"{CORE}/{ns}/pods/p/binding", target)
    again = api.post(f"{CORE}/{ns}/pods/p/binding", target)

    assert bound.code == 201
    assert api.get(f"{CORE}/{ns}/pods/p").body["spec"]["nodeName"] == "n1"
    assert again.code == 409
    assert 'pod p is already assigned to node "n1"' in again.message


def test_log_and_exec_of_a_pod_that_nobody_runs_are_refused_with_the_reason(api, ns):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]}
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "p"}, "spec": spec})
    api.made(f"{CORE}/{ns}/pods", {"metadata": {"name": "q"}, "spec": {"containers": spec["containers"]}})

    log = api.get(f"{CORE}/{ns}/pods/p/log")
    exec_ = api.request("POST", f"{CORE}/{ns}/pods/p/exec?command=ls&stdout=1")
    forward = api.request("POST", f"{CORE}/{ns}/pods/p/portforward")
    proxy = api.get(f"{CORE}/{ns}/pods/p/proxy")
    unscheduled = api.request("POST", f"{CORE}/{ns}/pods/q/exec")

    assert (log.code, exec_.code, forward.code, proxy.code) == (400, 500, 400, 501)
    assert log.message == 'container "c" in pod "p" is waiting to start: ContainerCreating'
    assert exec_.message == 'unable to upgrade connection: container not found ("c")'
    assert forward.message == "Upgrade request required"
    assert "simulates Pods and runs no containers" in proxy.message
    assert api.get(f"{CORE}/{ns}/pods/q/log").code == 204
    assert unscheduled.message == "pod q does not have a host assigned"
    assert api.get(f"{CORE}/{ns}/pods/none/log").code == 404


def test_events_are_one_store_with_two_views(api, ns):
    name = ns.removeprefix("namespaces/")
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": name},
        "reason": "Because",
        "message": "hello",
        "type": "Normal",
    }
    api.made(f"{CORE}/{ns}/events", event)

    other = api.get(f"/apis/events.k8s.io/v1/{ns}/events/e").body
    selected = api.get(f"{CORE}/{ns}/events", fieldSelector="involvedObject.name=p,reason=Because").body["items"]

    assert other["regarding"]["name"] == "p"
    assert other["note"] == "hello"
    assert other["apiVersion"] == "events.k8s.io/v1"
    assert len(selected) == 1
    assert api.get(f"{CORE}/{ns}/events", fieldSelector="involvedObject.name=q").body["items"] == []


def test_autoscalers_are_served_in_two_versions(api, ns):
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70,
    }
    api.made(f"/apis/autoscaling/v1/{ns}/horizontalpodautoscalers", {"metadata": {"name": "h"}, "spec": spec})

    two = api.get(f"/apis/autoscaling/v2/{ns}/horizontalpodautoscalers/h").body
    one = api.get(f"/apis/autoscaling/v1/{ns}/horizontalpodautoscalers/h").body

    assert two["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 70}
    assert one["spec"]["targetCPUUtilizationPercentage"] == 70


def test_micro_times_must_have_six_digits(api, ns):
    path = f"/apis/coordination.k8s.io/v1/{ns}/leases"

    bad = api.post(path, {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00Z"}})
    good = api.post(path, {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00.000000Z"}})

    assert (bad.code, good.code) == (400, 201)


def test_sizes_are_limited(api, ns, widgets, make):
    huge = api.post(f"{CORE}/{ns}/configmaps", b" " * 3_145_729)
    large = api.post(f"{CORE}/{ns}/secrets", {"metadata": {"name": "a", "annotations": {"x": "y" * 262_145}}})

    assert (huge.code, huge.reason) == (413, "RequestEntityTooLarge")
    assert large.code == 422
    assert ("metadata.annotations", "FieldValueTooLong") in large.causes


def test_yaml_goes_in_and_out(api, ns):
    body = b"metadata:\n  name: doc\ndata:\n  day: 2024-01-01\n"

    made = api.request("POST", f"{CORE}/{ns}/configmaps", body, headers={"Content-Type": "application/yaml"})
    shown = api.get(f"{CORE}/{ns}/configmaps/doc", headers={"Accept": "application/yaml"})

    assert made.body["data"] == {"day": "2024-01-01"}
    assert shown.headers["Content-Type"] == "application/yaml"
    assert b"kind: ConfigMap" in shown.raw


def test_html_alone_is_not_acceptable(api):
    answer = api.get(f"{CORE}/namespaces", headers={"Accept": "text/html"})

    assert answer.code == 406
    assert answer.message.startswith("406: Not Acceptable")
    assert api.get(f"{CORE}/namespaces", headers={"Accept": "application/vnd.kubernetes.protobuf, */*"}).code == 200


def test_a_browser_or_pretty_gets_indented_json(api):
    assert b'\n  "kind"' in api.get(f"{CORE}/namespaces/default", pretty="1").raw
    assert b'\n  "kind"' in api.get(f"{CORE}/namespaces/default", headers={"User-Agent": "curl/8"}).raw
    assert b"\n  " not in api.get(f"{CORE}/namespaces/default").raw


def test_large_answers_are_compressed_when_asked(api, ns, make):
    for number in range(3):
        api.made(f"{CORE}/{ns}/configmaps", make.config_map(f"big{number}", x="y" * 60_000))

    packed = api.get(f"{CORE}/{ns}/configmaps", headers={"Accept-Encoding": "gzip"})
    plain = api.get(f"{CORE}/{ns}/configmaps")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.raw[:2] == b"\x1f\x8b"
    assert len(plain.raw) > 180_000
