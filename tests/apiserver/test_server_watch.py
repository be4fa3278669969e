from __future__ import annotations

import pytest

from ctrlruntime.apiserver import Options

CORE = "/api/v1"


@pytest.fixture(scope="module")
def server_options():
    return Options(controllers=[], history=50, bookmark_interval=0.2)


def labelled(make, name, **labels):
    body = make.config_map(name)
    body["metadata"]["labels"] = labels
    return body


def test_a_watch_without_version_sends_the_present_state_then_changes(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, make.config_map("b"))
    api.made(path, make.config_map("a"))

    with api.watch(path) as frames:
        assert frames.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        api.made(path, make.config_map("c"))
        changed = api.patch(f"{path}/c", {"data": {"k": "v"}}).body
        api.delete(f"{path}/c")

        assert frames.take(1) == [("ADDED", "c")]
        modified, deleted = frames.next(), frames.next()

    assert modified == {"type": "MODIFIED", "object": changed}
    assert deleted["type"] == "DELETED"
    assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])
    assert "deletionTimestamp" not in deleted["object"]["metadata"]


def test_a_watch_from_a_version_replays_every_later_event(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    version = api.get(path).version
    api.made(path, make.config_map("a"))
    api.patch(f"{path}/a", {"data": {"k": "v"}})
    api.delete(f"{path}/a")

    with api.watch(path, resourceVersion=version) as frames:
        assert frames.take(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_other_namespaces_are_not_seen(api, ns, make):
    api.made(f"{CORE}/namespaces/default/configmaps", make.config_map(f"other-{ns[-2:]}"))

    with api.watch(f"{CORE}/{ns}/configmaps", resourceVersion="0") as frames:
        api.made(f"{CORE}/{ns}/configmaps", make.config_map("mine"))
        assert frames.take(1) == [("ADDED", "mine")]


def test_an_object_that_leaves_the_selector_is_deleted_with_its_old_state_and_the_new_version(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, labelled(make, "a", app="x"))

    with api.watch(path, labelSelector="app=x") as frames:
        assert frames.take(1) == [("ADDED", "a")]
        left = api.patch(f"{path}/a", {"metadata": {"labels": {"app": "y"}}})
        api.patch(f"{path}/a", {"metadata": {"labels": {"seen": "no"}}})
        api.patch(f"{path}/a", {"metadata": {"labels": {"app": "x"}}})
        gone, back = frames.next(), frames.next()

    assert gone["type"] == "DELETED"
    assert gone["object"]["metadata"]["labels"] == {"app": "x"}
    assert gone["object"]["metadata"]["resourceVersion"] == left.version
    assert (back["type"], back["object"]["metadata"]["labels"]) == ("ADDED", {"app": "x", "seen": "no"})


def test_a_watch_of_one_name(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, make.config_map("a"))
    api.made(path, make.config_map("b"))

    with (
        api.watch(path, fieldSelector="metadata.name=b") as by_field,
        api.watch(f"{CORE}/watch/{ns}/configmaps/b") as by_path,
    ):
        api.patch(f"{path}/a", {"data": {"k": "v"}})
        api.patch(f"{path}/b", {"data": {"k": "v"}})

        assert by_field.take(2) == by_path.take(2) == [("ADDED", "b"), ("MODIFIED", "b")]


def test_field_selectors_follow_the_object(api, ns):
    path = f"{CORE}/{ns}/pods"
    api.made(path, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}})

    with api.watch(path, fieldSelector="status.phase=Running") as frames:
        api.patch(f"{path}/p/status", {"status": {"phase": "Running"}})
        assert frames.take(1) == [("ADDED", "p")]


def test_emptying_the_finalizers_sends_only_deleted(api, ns, widgets, make):
    path = f"{widgets}/{ns}/widgets"
    body = make.widget("w")
    body["metadata"]["finalizers"] = ["example.com/hold"]
    api.made(path, body)

    with api.watch(path) as frames:
        api.delete(f"{path}/w")
        api.patch(f"{path}/w", {"metadata": {"finalizers": None}})
        assert frames.take(3) == [("ADDED", "w"), ("MODIFIED", "w"), ("DELETED", "w")]


def test_a_write_that_changes_nothing_sends_nothing(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    made = api.made(path, make.config_map("a"))

    with api.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as frames:
        api.put(f"{path}/a", made)
        api.patch(f"{path}/a", {"metadata": {}})
        api.delete(f"{path}/a")
        assert frames.take(1) == [("DELETED", "a")]


def test_bookmarks_carry_kind_and_version_only(api, ns):
    path = f"{CORE}/{ns}/configmaps"

    with api.watch(path, allowWatchBookmarks="true", resourceVersion=api.get(path).version) as frames:
        bookmark = frames.next()

    assert bookmark["type"] == "BOOKMARK"
    assert bookmark["object"].keys() == {"kind", "apiVersion", "metadata"}
    assert bookmark["object"]["metadata"].keys() == {"resourceVersion"}


def test_streaming_lists_end_with_the_marked_bookmark(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, make.config_map("a"))
    streaming = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    with api.watch(path, allowWatchBookmarks="true", **streaming) as frames:
        added, end = frames.next(), frames.next()
        later = api.made(path, make.config_map("b"))
        live = frames.next()
        while live["type"] == "BOOKMARK":
            live = frames.next()

    assert added["object"]["metadata"]["name"] == "a"
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(end["object"]["metadata"]["resourceVersion"]) >= int(added["object"]["metadata"]["resourceVersion"])
    assert live["object"] == later


def test_no_end_bookmark_without_bookmarks_and_no_state_when_not_wanted(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    api.made(path, make.config_map("a"))

    with api.watch(path, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", timeoutSeconds="1") as frames:
        assert [frame["type"] for frame in frames.rest()] == ["ADDED"]
    with api.watch(path, sendInitialEvents="false", resourceVersionMatch="NotOlderThan", timeoutSeconds="1") as frames:
        assert frames.rest() == []


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"continue": "x"},
    ],
)
def test_options_that_do_not_fit_a_watch_are_422(api, ns, query):
    answer = api.get(f"{CORE}/{ns}/configmaps", watch="1", **query)

    assert (answer.code, answer.body["details"]["kind"]) == (422, "ListOptions")


def test_a_version_out_of_the_history_is_an_error_in_the_stream(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    version = api.get(path).version
    api.made(path, make.config_map("a"))
    for number in range(60):
        api.patch(f"{path}/a", {"data": {"n": str(number)}})

    with api.watch(path, resourceVersion=version) as frames:
        assert frames.code == 200
        (only,) = frames.rest()

    assert only["type"] == "ERROR"
    assert (only["object"]["code"], only["object"]["reason"]) == (410, "Expired")
    assert only["object"]["message"].startswith(f"too old resource version: {version} (")


def test_a_version_that_is_no_number_is_500_and_one_in_the_future_is_silence(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    future = int(api.get(path).version) + 1_000_000

    assert api.get(path, watch="1", resourceVersion="abc").code == 500
    with api.watch(path, resourceVersion=str(future), timeoutSeconds="1") as frames:
        api.made(path, make.config_map("a"))
        assert frames.rest() == []


def test_a_watch_ends_cleanly_after_its_time(api, ns):
    with api.watch(f"{CORE}/{ns}/configmaps", timeoutSeconds="1") as frames:
        assert frames.rest() == []


def test_two_watchers_get_the_same_bytes_in_the_same_order(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"

    with api.watch(path, resourceVersion="0") as one, api.watch(path, resourceVersion="0") as two:
        for number in range(40):
            api.made(path, make.config_map(f"n{number:02}"))
        seen = [one.next() for _ in range(40)]
        assert seen == [two.next() for _ in range(40)]

    versions = [int(frame["object"]["metadata"]["resourceVersion"]) for frame in seen]
    assert versions == sorted(versions)
    assert [frame["object"]["metadata"]["name"] for frame in seen] == [f"n{number:02}" for number in range(40)]


def test_metadata_only_watches(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    made = api.made(path, make.config_map("a", k="v"))

    with api.watch(path, headers=accept) as frames:
        frame = frames.next()

    assert frame["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": made["metadata"],
    }


def test_table_watches_name_their_columns_once(api, ns, make):
    path = f"{CORE}/{ns}/configmaps"
    accept = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    api.made(path, make.config_map("a", k="v"))

    with api.watch(path, headers=accept) as frames:
        first = frames.next()["object"]
        api.made(path, make.config_map("b"))
        second = frames.next()["object"]

    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert first["rows"][0]["cells"][:2] == ["a", 1]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def test_a_changed_definition_closes_the_watches_and_an_annotated_one_does_not(api, ns, make):
    body = make.definition("closers", "Closer")
    api.made(make.definitions, body)
    path = f"/apis/{make.group}/v1/{ns}/closers"
    name = f"{make.definitions}/closers.{make.group}"

    with api.watch(path) as frames:
        api.patch(name, {"metadata": {"annotations": {"a": "b"}}})
        api.made(
            path, {"apiVersion": f"{make.group}/v1", "kind": "Closer", "metadata": {"name": "c"}, "spec": {"size": 1}}
        )
        assert frames.take(1) == [("ADDED", "c")]

        api.patch(name, {"spec": {"names": {"shortNames": ["cl"]}}})
        assert frames.next() is None
