from __future__ import annotations

import itertools
import json
import threading

import pytest
from webhook_receiver import WebhookReceiver

from ctrlruntime.apiserver import Options, ServerThread

_groups = (f"c{number}.example.com" for number in itertools.count(1))


def convert(review):
    request = review["request"]
    found = [json.loads(json.dumps(one)) for one in request["objects"]]
    for one in found:
        source, one["apiVersion"] = one["apiVersion"], request["desiredAPIVersion"]
        one["spec"]["via"] = f"{source.split('/')[1]}-{one['apiVersion'].split('/')[1]}"
    return {"result": {"status": "Success"}, "convertedObjects": found}


def broken(_):
    return {"result": {"status": "Failure", "message": "boom"}}


@pytest.fixture(scope="module")
def receiver():
    with WebhookReceiver() as running:
        yield running


class Kind:
    def __init__(self, api, receiver, make, ns, storage="v1", unserved=()):
        self.api, self.make, self.ns, self.group = api, make, ns, next(_groups)
        self.receiver = receiver
        receiver.answers["/convert"] = convert
        receiver.received.clear()
        self.definition = self._definition(storage, unserved)
        api.made(make.definitions, self.definition)
        self.at_definition = f"{make.definitions}/convs.{self.group}"

    def _definition(self, storage, unserved):
        spec = {"type": "object", "properties": {"via": {"type": "string"}, "n": {"type": "integer"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        versions = [
            {"name": name, "served": name not in unserved, "storage": name == storage, "schema": schema}
            for name in ("v1", "v2", "v3")
        ]
        webhook = {"clientConfig": self.receiver.client("/convert"), "conversionReviewVersions": ["v1"]}
        return {
            "metadata": {"name": f"convs.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": "convs", "kind": "Conv"},
                "conversion": {"strategy": "Webhook", "webhook": webhook},
                "versions": versions,
            },
        }

    def path(self, version, name=""):
        return f"/apis/{self.group}/{version}/{self.ns}/convs" + (f"/{name}" if name else "")

    def create(self, version, name):
        body = {"apiVersion": f"{self.group}/{version}", "kind": "Conv", "metadata": {"name": name}, "spec": {"n": 1}}
        return self.api.post(self.path(version), body)

    def calls(self):
        found = self.receiver.at("/convert")
        self.receiver.received.clear()
        return [(len(one.request["objects"]), one.request["desiredAPIVersion"].split("/")[1]) for one in found]


@pytest.fixture
def kind(api, receiver, make, ns):
    return Kind(api, receiver, make, ns)


def test_the_stored_version_needs_no_webhook(api, kind):
    kind.create("v1", "a")
    api.get(kind.path("v1", "a"))
    api.get(kind.path("v1"))
    api.patch(kind.path("v1", "a"), {"spec": {"n": 2}})
    api.delete(kind.path("v1", "a"))

    assert kind.calls() == []


def test_a_list_is_one_review_and_asks_only_for_what_is_new(api, kind):
    for name in "abc":
        kind.create("v1", name)
    api.get(kind.path("v2"))
    first = kind.calls()
    kind.create("v1", "d")

    answer = api.get(kind.path("v2"))

    assert first == [(3, "v2")]
    assert kind.calls() == [(1, "v2")]
    assert [item["spec"]["via"] for item in answer.body["items"]] == ["v1-v2"] * 4


def test_many_watchers_ask_for_an_event_once(api, kind):
    kind.create("v1", "a")
    seen, ready = [], threading.Semaphore(0)

    def watch():
        with api.watch(kind.path("v2")) as frames:
            frames.next()
            ready.release()
            seen.append(frames.next()["object"]["spec"]["via"])

    threads = [threading.Thread(target=watch) for _ in range(5)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert ready.acquire(timeout=120)
    kind.calls()

    kind.create("v1", "b")

    for thread in threads:
        thread.join(10)
    assert seen == ["v1-v2"] * 5
    assert kind.calls() == [(1, "v2")]


def test_a_watch_ends_when_its_events_cannot_be_converted_and_lists_say_why(api, kind):
    kind.create("v1", "a")
    with api.watch(kind.path("v2")) as frames:
        first = frames.next()
        kind.receiver.answers["/convert"] = broken
        kind.create("v1", "b")

        assert first["object"]["metadata"]["name"] == "a"
        assert frames.next() is None
    answer = api.get(kind.path("v2"))
    assert (answer.code, answer.message) == (
        500,
        f"conversion webhook for {kind.group}/v1, Kind=Conv failed: boom",
    )


def test_a_watch_that_cannot_begin_says_why(api, kind):
    kind.create("v1", "a")
    kind.receiver.answers["/convert"] = broken

    with api.watch(kind.path("v2")) as frames:
        frame = frames.next()

    assert frame["type"] == "ERROR"
    assert frame["object"]["message"].endswith("failed: boom")


def test_a_new_storage_version_leaves_old_objects_as_they_are_stored(api, kind):
    kind.create("v1", "a")
    found = api.get(kind.at_definition).body
    for version in found["spec"]["versions"]:
        version["storage"] = version["name"] == "v2"
    api.put(kind.at_definition, found)
    kind.calls()

    old = api.get(kind.path("v3", "a")).body["spec"]["via"]
    kind.create("v2", "b")
    written = api.patch(kind.path("v3", "b"), {"spec": {"n": 2}})

    assert old == "v1-v3"
    assert written.body["spec"] == {"n": 2, "via": "v2-v3"}
    assert api.get(kind.path("v2", "b")).body["spec"]["via"] == "v3-v2"


def test_objects_of_a_version_that_is_not_served_are_read_by_the_others(api, receiver, make, ns):
    kind = Kind(api, receiver, make, ns, storage="v1", unserved=("v1",))

    created = kind.create("v2", "a")

    assert created.body["spec"]["via"] == "v1-v2"
    assert api.get(kind.path("v1", "a")).code == 404
    assert api.get(kind.path("v3", "a")).body["spec"]["via"] == "v1-v3"


def test_a_definition_goes_though_its_webhook_is_broken(api, kind):
    kind.create("v1", "a")
    kind.receiver.answers["/convert"] = broken

    answer = api.delete(kind.at_definition)

    assert answer.code == 200
    assert api.get(kind.at_definition).code == 404


def test_what_the_webhook_did_to_an_object_is_stored(api, kind):
    kind.create("v2", "a")

    assert api.get(kind.path("v1", "a")).body["spec"]["via"] == "v2-v1"


def test_a_dry_run_converts_and_stores_nothing(api, kind):
    answer = api.post(
        f"{kind.path('v2')}?dryRun=All",
        {"apiVersion": f"{kind.group}/v2", "kind": "Conv", "metadata": {"name": "a"}, "spec": {"n": 1}},
    )

    assert answer.body["spec"] == {"n": 1, "via": "v1-v2"}
    assert api.get(kind.path("v1", "a")).code == 404


def test_a_data_file_brings_back_what_is_converted(tmp_path, receiver, make):
    options = Options(controllers=[], data=tmp_path / "data")
    with ServerThread(options) as thread:
        api = make.client(thread)
        kind = Kind(api, receiver, make, "namespaces/default")
        kind.create("v1", "a")
        api.close()

    with ServerThread(options) as thread:
        api = make.client(thread)
        answer = api.get(kind.path("v2", "a"))
        api.close()

    assert answer.body["spec"]["via"] == "v1-v2"
