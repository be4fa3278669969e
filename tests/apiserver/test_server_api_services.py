"""APIServices: one for each group version, built in or defined."""

import time

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
LABEL = "kube-aggregator.kubernetes.io/automanaged"


def status_of(api, name, wanted, seconds=5.0):
    """Wait until a GET answers with the code."""
    end = time.monotonic() + seconds
    while (code := api.get(f"{SERVICES}/{name}").code) != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return code


def test_built_in_group_versions_have_one_each(api):
    items = {item["metadata"]["name"]: item for item in api.get(SERVICES).body["items"]}

    assert len([item for item in items.values() if item["metadata"]["labels"][LABEL] == "onstart"]) == 21
    core = items["v1."]
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert items["v2.autoscaling"]["spec"]["versionPriority"] == 30
    (condition,) = core["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")


def test_defined_group_version_has_one_while_it_is_served(api, make):
    definition = make.definition("gadgets", "Gadget")
    group = "gadgets.example.com"
    definition["spec"]["group"], definition["metadata"]["name"] = group, f"gadgets.{group}"
    name = f"v1.{group}"

    api.made(make.definitions, definition)
    assert status_of(api, name, 200) == 200
    found = api.get(f"{SERVICES}/{name}").body
    assert found["metadata"]["labels"] == {LABEL: "true"}
    assert found["spec"] == {"group": group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}

    first = found["metadata"]["uid"]
    api.delete(f"{SERVICES}/{name}")
    assert status_of(api, name, 200) == 200
    assert api.get(f"{SERVICES}/{name}").body["metadata"]["uid"] != first

    api.delete(f"{make.definitions}/gadgets.{group}")
    assert status_of(api, name, 404) == 404


def test_table_of_api_services_says_local(api):
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = api.get(SERVICES, headers=accept).body

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Service", "Available", "Age"]
    assert ["v1.apps", "Local", "True"] in [row["cells"][:3] for row in table["rows"]]
