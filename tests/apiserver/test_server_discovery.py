from __future__ import annotations

import hashlib

import pytest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_version_and_health_need_no_credentials(api, thread, make):
    anonymous = make.client(thread, token="")

    assert anonymous.get("/version").body["gitVersion"] == "v1.36.1"
    assert anonymous.get("/version/").code == 200
    for path in ("/healthz", "/livez", "/readyz"):
        assert anonymous.get(path).raw == b"ok"
    assert anonymous.get("/readyz?verbose").raw.startswith(b"[+]ping ok\n")
    assert anonymous.get("/api").code == 403
    assert anonymous.get("/readyz/ping").code == 403
    assert api.get("/readyz/ping").raw == b"ok"
    anonymous.close()


@pytest.mark.parametrize(
    "accept",
    [
        AGGREGATED,
        "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        f"{AGGREGATED},application/json;q=0.9",
        f"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,{AGGREGATED},application/json",
    ],
)
def test_aggregated_discovery_in_any_order_of_parameters(api, accept):
    answer = api.get("/apis", headers={"Accept": accept})

    assert answer.body["kind"] == "APIGroupDiscoveryList"
    assert "as=APIGroupDiscoveryList" in answer.headers["Content-Type"]
    assert answer.headers["Vary"] == "Accept"
    assert "apps" in [item["metadata"]["name"] for item in answer.body["items"]]
    assert api.get("/api", headers={"Accept": accept}).body["items"][0]["metadata"] == {}


def test_an_unchanged_discovery_is_304(api, make):
    first = api.get("/apis", headers={"Accept": AGGREGATED})
    tag = first.headers["ETag"]
    unchanged = api.get("/apis", headers={"Accept": AGGREGATED, "If-None-Match": tag})
    api.made(
        make.definitions,
        make.definition("discoverees", "Discoveree", names={"shortNames": ["dc"], "categories": ["all"]}),
    )
    changed = api.get("/apis", headers={"Accept": AGGREGATED, "If-None-Match": tag})

    assert (unchanged.code, unchanged.raw) == (304, b"")
    assert changed.code == 200
    group = changed.body["items"][-1]
    assert group["metadata"]["name"] == make.group
    (resource,) = [r for r in group["versions"][0]["resources"] if r["resource"] == "discoverees"]
    assert resource["responseKind"] == {"group": make.group, "version": "v1", "kind": "Discoveree"}
    assert resource["verbs"] == ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    assert (resource["shortNames"], resource["categories"]) == (["dc"], ["all"])
    assert [sub["subresource"] for sub in resource["subresources"]] == ["status"]


def test_what_discovery_has_not_is_406(api):
    old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

    assert api.get("/apis", headers={"Accept": old}).code == 406
    assert api.get("/apis/apps", headers={"Accept": AGGREGATED}).code == 406
    assert api.get("/apis/apps", headers={"Accept": f"{AGGREGATED},application/json"}).body["kind"] == "APIGroup"


def test_legacy_discovery(api, widgets, make):
    core = api.get("/api").body
    groups = api.get("/apis/").body
    group = api.get(f"/apis/{make.group}").body
    resources = api.get(f"/apis/{make.group}/v1").body

    assert core["kind"] == "APIVersions"
    assert core["serverAddressByClientCIDRs"][0]["serverAddress"] == f"127.0.0.1:{api.server.port}"
    assert groups["kind"] == "APIGroupList"
    assert groups["groups"][-1]["name"] == make.group
    assert group["preferredVersion"] == {"groupVersion": f"{make.group}/v1", "version": "v1"}
    by_name = {resource["name"]: resource for resource in resources["resources"]}
    assert by_name["widgets"]["kind"] == "Widget"
    assert by_name["widgets"]["storageVersionHash"]
    assert by_name["widgets/status"]["verbs"] == ["get", "patch", "update"]
    assert "pods/log" in [resource["name"] for resource in api.get("/api/v1").body["resources"]]


def test_versions_of_a_group_stand_best_first(api, make):
    schema = {"openAPIV3Schema": {"type": "object"}}
    names = ["v1alpha1", "v2beta1", "v1", "v10", "v2beta2", "v2"]
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in names]
    body = make.definition("agers", "Ager", versions=versions)
    body["metadata"]["name"], body["spec"]["group"] = "agers.ages.example.com", "ages.example.com"
    api.made(make.definitions, body)

    listed = [version["version"] for version in api.get("/apis/ages.example.com").body["versions"]]

    assert listed == ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1"]


def test_the_openapi_index_leads_to_documents_by_hash(api):
    index = api.get("/openapi/v3").body["paths"]
    url = index["apis/apps/v1"]["serverRelativeURL"]
    document = api.get(url)
    wrong = api.get("/openapi/v3/apis/apps/v1", hash="OLD")

    assert "api/v1" in index
    assert url.endswith(f"?hash={hashlib.sha512(document.raw).hexdigest().upper()}")
    assert document.headers["Cache-Control"] == "public, immutable"
    assert "io.k8s.api.apps.v1.Deployment" in document.body["components"]["schemas"]
    assert (wrong.code, wrong.headers["Location"], wrong.raw) == (301, url, b"")
    assert api.get("/openapi/v3/apis/none/v1").code == 404


def test_openapi_v2_follows_the_definitions(api, make):
    before = api.get("/openapi/v2")
    api.made(make.definitions, make.definition("lids", "Lid"))

    after = api.get("/openapi/v2")

    old, new = before.body, after.body
    names = new["definitions"].keys() - old["definitions"].keys()
    assert {name.rpartition(".")[2] for name in names} == {"Lid", "LidList"}
    assert {tuple(new["paths"][path]) for path in new["paths"].keys() - old["paths"].keys()} == {("patch",)}
    assert before.headers["ETag"] != after.headers["ETag"]


def test_custom_kinds_are_in_openapi_and_their_hash_follows_their_schema(api, make):
    api.made(make.definitions, make.definition("openers", "Opener"))
    key = f"apis/{make.group}/v1"
    before = api.get("/openapi/v3").body["paths"][key]["serverRelativeURL"]
    document = api.get(before).body
    api.patch(
        f"{make.definitions}/openers.{make.group}",
        {
            "spec": {
                "names": {"shortNames": ["op"]},
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
                ],
            }
        },
    )

    after = api.get("/openapi/v3").body["paths"][key]["serverRelativeURL"]

    schema = document["components"]["schemas"]["com.example.stable.v1.Opener"]
    patch = document["paths"][f"/{key}/namespaces/{{namespace}}/openers/{{name}}"]["patch"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": make.group, "kind": "Opener", "version": "v1"}]
    assert schema["properties"]["spec"]["properties"]["size"] == {"type": "integer", "minimum": 0}
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]
    assert before != after


def test_head_and_options_are_405(api):
    assert api.request("OPTIONS", "/api/v1/namespaces").code == 405
    assert api.request("POST", "/version", {}).code == 405
