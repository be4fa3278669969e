from __future__ import annotations

import pytest

CORE = "/api/v1"


@pytest.fixture
def web(api, ns, make):
    path = f"/apis/apps/v1/{ns}/deployments"
    api.made(path, make.deployment("web"))
    return f"{path}/web"


def containers(answer):
    return [c["name"] for c in answer.body["spec"]["template"]["spec"]["containers"]]


def test_merge_patch_merges_and_removes(api, ns, make):
    api.made(f"{CORE}/{ns}/configmaps", make.config_map("a", x="1", y="2"))

    answer = api.patch(f"{CORE}/{ns}/configmaps/a", {"data": {"x": None, "z": "3"}})

    assert answer.body["data"] == {"y": "2", "z": "3"}


def test_json_patch_and_its_one_answer_to_everything_that_does_not_apply(api, ns, make):
    path = f"{CORE}/{ns}/configmaps/a"
    api.made(f"{CORE}/{ns}/configmaps", make.config_map("a", x="1"))

    done = api.patch(path, [{"op": "add", "path": "/data/y", "value": "2"}], "json-patch")
    refused = [
        api.patch(path, [{"op": "test", "path": "/data/x", "value": "9"}], "json-patch"),
        api.patch(path, [{"op": "remove", "path": "/data/none"}], "json-patch"),
        api.patch(path, [{"op": "jump", "path": "/data/x"}], "json-patch"),
    ]

    assert done.body["data"] == {"x": "1", "y": "2"}
    for answer in refused:
        assert (answer.code, answer.reason) == (422, "Invalid")
        assert answer.message == "the server rejected our request due to an error in our request"
    assert api.patch(path, {"op": "add"}, "json-patch").code == 400
    assert api.patch(path, [{"op": "test"}] * 10_001, "json-patch").code == 413
    assert api.patch(path, b"{", "merge-patch").message.startswith("error decoding patch: ")


def test_a_patch_with_a_version_is_checked_and_one_without_is_not(api, ns, make):
    made = api.made(f"{CORE}/{ns}/configmaps", make.config_map("a"))
    path = f"{CORE}/{ns}/configmaps/a"
    api.patch(path, {"data": {"k": "1"}})

    stale = api.patch(path, {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"k": "2"}})

    assert stale.code == 409
    assert api.patch(path, {"data": {"k": "3"}}).code == 200


def test_a_patch_to_a_wrong_type_is_422(api, web):
    answer = api.patch(web, {"spec": {"replicas": "three"}})

    assert (answer.code, answer.reason) == (422, "Invalid")
    assert answer.causes == [("patch", "FieldValueInvalid")]


def test_a_patch_of_a_missing_object_is_404(api, ns):
    assert api.patch(f"{CORE}/{ns}/configmaps/none", {"data": {}}).code == 404


def test_strategic_merge_adds_containers_in_front_and_merges_by_name(api, web):
    spec = {"containers": [{"name": "side", "image": "s:1"}, {"name": "c", "image": "nginx:2"}]}

    added = api.patch(
        web, {"spec": {"template": {"spec": {"containers": spec["containers"][:1]}}}}, "strategic-merge-patch"
    )
    merged = api.patch(
        web, {"spec": {"template": {"spec": {"containers": spec["containers"][1:]}}}}, "strategic-merge-patch"
    )

    assert containers(added) == ["side", "c"]
    assert containers(merged) == ["side", "c"]
    assert merged.body["spec"]["template"]["spec"]["containers"][1]["image"] == "nginx:2"


def test_strategic_directives(api, web):
    def patch(spec):
        return api.patch(web, {"spec": {"template": {"spec": spec}}}, "strategic-merge-patch")

    order = [{"name": "c"}, {"name": "side"}]
    ordered = patch({"$setElementOrder/containers": order, "containers": [{"name": "side", "image": "s"}]})
    deleted = patch({"containers": [{"name": "side", "$patch": "delete"}]})
    replaced = patch({"containers": [{"name": "only", "image": "o"}, {"$patch": "replace"}]})

    assert containers(ordered) == ["c", "side"]
    assert containers(deleted) == ["c"]
    assert containers(replaced) == ["only"]


def test_strategic_retain_keys_changes_the_strategy_of_a_deployment(api, web):
    strategy = {"$retainKeys": ["type"], "type": "Recreate", "rollingUpdate": None}

    answer = api.patch(web, {"spec": {"strategy": strategy}}, "strategic-merge-patch")

    assert answer.body["spec"]["strategy"] == {"type": "Recreate"}


def test_finalizers_merge_as_a_set(api, ns, make):
    path = f"{CORE}/{ns}/configmaps/a"
    body = make.config_map("a")
    body["metadata"]["finalizers"] = ["x.io/a", "x.io/b"]
    api.made(f"{CORE}/{ns}/configmaps", body)

    added = api.patch(path, {"metadata": {"finalizers": ["x.io/c"]}}, "strategic-merge-patch").body
    removed = api.patch(
        path, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.io/a"]}}, "strategic-merge-patch"
    ).body

    assert sorted(added["metadata"]["finalizers"]) == ["x.io/a", "x.io/b", "x.io/c"]
    assert sorted(removed["metadata"]["finalizers"]) == ["x.io/b", "x.io/c"]


def test_strategic_errors_are_500_without_reason(api, web):
    unnamed = {"spec": {"template": {"spec": {"containers": [{"image": "nokey"}]}}}}

    missing = api.patch(web, unnamed, "strategic-merge-patch")
    bogus = api.patch(web, {"spec": {"$patch": "bogus"}}, "strategic-merge-patch")

    assert (missing.code, missing.reason) == (500, "")
    assert missing.message == "map: map[image:nokey] does not contain declared merge key: name"
    assert bogus.message == "unknown patch type: bogus in map: map[$patch:bogus]"


def test_custom_resources_have_no_strategic_merge(api, ns, widgets, make):
    api.made(f"{widgets}/{ns}/widgets", make.widget("w"))

    answer = api.patch(f"{widgets}/{ns}/widgets/w", {"spec": {"size": 2}}, "strategic-merge-patch")

    assert answer.code == 415
    assert "strategic" not in answer.message
    assert api.patch(f"{widgets}/{ns}/widgets/w", {"spec": {"size": 2}}).body["spec"]["size"] == 2


def test_unknown_patch_types_are_415_and_force_belongs_to_apply(api, web):
    assert (
        api.request("PATCH", web, {}, headers={"Content-Type": "text/plain"}).message == "415: Unsupported Media Type"
    )
    assert api.patch(web, {}, force="true").code == 422
