from __future__ import annotations

import base64
import json
import threading

import pytest

CORE = "/api/v1"


@pytest.fixture
def five(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    for number in (3, 1, 5, 2, 4):
        body = make.config_map(f"c{number}", k="v")
        body["metadata"]["labels"] = {"odd": str(number % 2), "n": str(number)}
        api.made(path, body)
    return path


def names(answer):
    return [item["metadata"]["name"] for item in answer.body["items"]]


def test_lists_are_sorted_and_carry_the_counter(api, five, make):
    answer = api.get(five)
    again = api.get(five)

    assert names(answer) == ["c1", "c2", "c3", "c4", "c5"]
    assert list(answer.body) == ["kind", "apiVersion", "metadata", "items"]
    assert answer.body["kind"] == "ConfigMapList"
    assert answer.version == again.version
    assert "kind" not in answer.body["items"][0]
    assert set(answer.body["metadata"]) == {"resourceVersion"}


def test_items_of_custom_resources_keep_their_kind_and_keys_are_sorted(api, ns, widgets, make):
    api.made(f"{widgets}/{ns}/widgets", make.widget("w"))

    body = api.get(f"{widgets}/{ns}/widgets").body

    assert list(body) == ["apiVersion", "items", "kind", "metadata"]
    assert list(body["items"][0]) == ["apiVersion", "kind", "metadata", "spec"]
    assert body["kind"] == "WidgetList"


def test_all_namespaces_are_listed_in_order(api, five, make):
    api.made(f"{CORE}/namespaces/default/configmaps", make.config_map("zz"))

    items = api.get(f"{CORE}/configmaps").body["items"]
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items]

    assert keys == sorted(keys)
    assert ("default", "zz") in keys
    assert api.get(f"{CORE}/namespaces/nowhere/configmaps").body["items"] == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"labelSelector": "odd=1"}, ["c1", "c3", "c5"]),
        ({"labelSelector": "odd!=1,n in (2)"}, ["c2"]),
        ({"labelSelector": "n>3"}, ["c4", "c5"]),
        ({"labelSelector": "!odd"}, []),
        ({"fieldSelector": "metadata.name=c4"}, ["c4"]),
        ({"fieldSelector": "metadata.name!=c4", "labelSelector": "odd=0"}, ["c2"]),
    ],
)
def test_selectors(api, five, query, expected):
    assert names(api.get(five, **query)) == expected


def test_selector_errors_are_400_with_the_parsers_text(api, five, ns):
    label = api.get(five, labelSelector="a b")
    field = api.get(five, fieldSelector="bad")
    unknown = api.get(five, fieldSelector="data.k=v")
    pods = api.get(f"{CORE}/{ns}/pods", fieldSelector="spec.foo=x")

    assert label.message.startswith("unable to parse requirement: found 'b', expected: in, notin")
    assert field.message == "invalid selector: 'bad'; can't understand 'bad'"
    assert unknown.message == '"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"'
    assert pods.message == "field label not supported: spec.foo"
    assert {label.code, field.code, unknown.code, pods.code} == {400}


def test_pages_are_one_consistent_state(api, five, make):
    first = api.get(five, limit=2)
    api.made(five, make.config_map("c0"))
    api.delete(f"{five}/c4")

    second = api.get(five, limit=2, **{"continue": first.body["metadata"]["continue"]})
    third = api.get(five, limit=2, **{"continue": second.body["metadata"]["continue"]})

    assert first.body["metadata"]["remainingItemCount"] == 3
    assert names(first) + names(second) + names(third) == ["c1", "c2", "c3", "c4", "c5"]
    assert first.version == second.version == third.version
    assert "continue" not in third.body["metadata"]


def test_no_count_of_the_rest_with_a_selector(api, five):
    metadata = api.get(five, limit=1, labelSelector="odd=1").body["metadata"]

    assert "continue" in metadata
    assert "remainingItemCount" not in metadata


def test_pages_over_all_namespaces(api, five):
    seen, token = [], ""
    while True:
        page = api.get(f"{CORE}/configmaps", limit=2, **({"continue": token} if token else {})).body
        seen += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break

    assert seen == sorted(set(seen))
    assert len(seen) == len(api.get(f"{CORE}/configmaps").body["items"])


def test_bad_continue_tokens(api, five):
    token = api.get(five, limit=2).body["metadata"]["continue"]

    garbage = api.get(five, **{"continue": "garbage"})
    with_version = api.get(five, resourceVersion="1", **{"continue": token})

    assert garbage.code == 400
    assert garbage.message.startswith("invalid continue token: continue key is not valid: ")
    assert with_version.message == "specifying resource version is not allowed when using continue"


def test_the_token_is_what_upstream_writes(api, five):
    token = api.get(five, limit=2).body["metadata"]["continue"]

    value = json.loads(base64.urlsafe_b64decode(token + "=="))

    assert value["v"] == "meta.k8s.io/v1"
    assert value["start"] == "/c2\0"
    assert isinstance(value["rv"], int)


def test_an_expired_token_is_410_with_one_that_goes_on(api, five):
    token = api.get(five, limit=2).body["metadata"]["continue"]
    api.call(api.server.faults.expire_history)

    expired = api.get(five, **{"continue": token})
    rest = api.get(five, **{"continue": expired.body["metadata"]["continue"]})

    assert (expired.code, expired.reason) == (410, "Expired")
    assert names(rest) == ["c3", "c4", "c5"]


def test_an_exact_version_is_that_snapshot(api, five, make):
    version = api.get(five).version
    api.delete(f"{five}/c1")
    api.patch(f"{five}/c2", {"data": {"k": "new"}})
    api.made(five, make.config_map("c9"))

    answer = api.get(five, resourceVersion=version, resourceVersionMatch="Exact")

    assert names(answer) == ["c1", "c2", "c3", "c4", "c5"]
    assert answer.body["items"][1]["data"] == {"k": "v"}
    assert answer.version == version
    assert names(api.get(five, resourceVersion=version)) == ["c2", "c3", "c4", "c5", "c9"]
    assert names(api.get(five, resourceVersion=version, limit=2)) == ["c1", "c2"]
    assert names(api.get(five, resourceVersion="0", limit=2)) == ["c2", "c3", "c4", "c5", "c9"]


def test_an_exact_version_out_of_the_history_is_410(api, five):
    version = api.get(five).version
    api.call(api.server.faults.expire_history)

    answer = api.get(five, resourceVersion=version, resourceVersionMatch="Exact")

    assert (answer.code, answer.message) == (410, "The resourceVersion for the provided list is too old.")


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Bogus", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
    ],
)
def test_options_that_do_not_fit_a_list_are_422(api, five, query):
    answer = api.get(five, **query)

    assert (answer.code, answer.body["details"]["kind"]) == (422, "ListOptions")


def test_a_version_that_is_no_number_is_400(api, five):
    assert api.get(five, resourceVersion="abc").message.startswith("invalid resource version: ")
    assert api.get(f"{five}/c1", resourceVersion="abc").code == 500


def test_a_read_waits_for_a_version_of_the_near_future(api, five, make, thread):
    wanted = int(api.get(five).version) + 1
    writer = make.client(thread)
    timer = threading.Timer(0.2, lambda: writer.made(five, make.config_map("late")))
    timer.start()

    answer = api.get(five, resourceVersion=str(wanted))

    timer.join()
    writer.close()
    assert "late" in names(answer)


def test_a_version_of_the_far_future_is_504_after_three_seconds(api, five):
    answer = api.get(five, resourceVersion=str(int(api.get(five).version) + 1000))

    assert (answer.code, answer.reason) == (504, "Timeout")
    assert answer.message.startswith("Timeout: Too large resource version: ")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert answer.headers["Retry-After"] == "1"


def test_tables_and_metadata_lists(api, five):
    table = api.get(
        five, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}, limit=2
    ).body
    whole = api.get(
        f"{five}/c1", headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}, includeObject="Object"
    ).body
    metadata = api.get(
        five, headers={"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    ).body

    assert table["kind"] == "Table"
    assert [row["cells"][0] for row in table["rows"]] == ["c1", "c2"]
    assert table["metadata"]["remainingItemCount"] == 3
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert whole["rows"][0]["object"]["data"] == {"k": "v"}
    assert metadata["kind"] == "PartialObjectMetadataList"
    assert metadata["items"][0].keys() == {"kind", "apiVersion", "metadata"}


def test_forms_that_do_not_fit_are_refused(api, five):
    listed = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    single = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    unknown = {"Accept": "application/json;as=Thing;g=meta.k8s.io;v=v1"}
    table = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}

    assert api.get(f"{five}/c1", headers=listed).code == 406
    assert api.get(five, headers=single).code == 406
    assert api.get(five, headers=unknown).code == 406
    assert api.get(five, headers=table, includeObject="Bogus").code == 400
